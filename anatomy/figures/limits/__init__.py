"""What a machine can do at most, on a page: ceilings, rooflines, curves, machines compared."""
