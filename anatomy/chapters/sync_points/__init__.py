"""Where the host waits for the GPU: which lines make it wait, and what a wait takes of a loop."""
