"""torch.compile: over which sizes it pays, what its modes set, what breaks graphs, at what cost."""
