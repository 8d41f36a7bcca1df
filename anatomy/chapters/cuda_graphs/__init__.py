"""CUDA graphs: how short kernels must be for a replay to pay, and what graphs hold of memory."""
