"""What holds a step back, and whether a difference lasts: for a reader's own code.

`steps` measures one step and asks `bottleneck` for the name; `scripts` does it to a script's
`step()`, and `replicas` repeats a script's comparisons in several fresh processes. `profiles` and
`op_counts` are what it is told from; experiments use them too.
"""
