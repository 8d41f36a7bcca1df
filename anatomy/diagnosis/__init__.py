"""What holds a step back: a reader's script profiled, counted and named a bottleneck."""
