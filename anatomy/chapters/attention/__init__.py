"""Fused attention: what each backend of PyTorch gives over the length of the sequence, and which
backend PyTorch chooses for which call.
"""
