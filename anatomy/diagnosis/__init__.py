"""What holds a step back, and whether a difference lasts: for a reader's own code. `steps` measures
one step by `profiles` and `op_counts`, and asks `bottleneck` for the name."""
