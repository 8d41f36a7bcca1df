"""CUDA graphs: what capturing costs, what replaying saves, and the memory of their pools."""
