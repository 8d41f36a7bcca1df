"""torch.compile: over which sizes it pays, what its modes set, what breaks a graph or compiles it
again, and what that costs.
"""
