"""CUDA graphs: how short kernels must be for a replay to pay, what graphs hold of memory, and the
forward and backward pass of a transformer captured as one.
"""
