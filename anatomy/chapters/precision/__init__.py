"""Number formats from fp32 down to FP8: what they save in time and memory, and what they cost in
digits and in gradients that vanish or overflow.
"""
