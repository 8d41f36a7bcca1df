"""Where the host waits for the GPU: which lines of code make it wait (`synchronizations`,
`transfers`), and what a wait takes of a loop (`sync_points`), with a trace to look at.
"""
