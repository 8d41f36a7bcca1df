"""Attention by each of PyTorch's backends: time, memory, and which one is chosen."""
