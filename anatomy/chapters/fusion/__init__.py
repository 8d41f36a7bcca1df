"""Operator fusion: kernels, bytes and times of chains and patterns, eager and compiled."""
