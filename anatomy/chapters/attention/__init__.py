"""Fused attention: what each backend gives over the length, and which one PyTorch chooses."""
