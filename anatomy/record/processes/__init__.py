"""Where experiments run: in processes of their own, which the rest of the package outlives."""
