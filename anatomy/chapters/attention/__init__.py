"""Fused attention: what each backend of PyTorch gives over the length, and which PyTorch
chooses."""
