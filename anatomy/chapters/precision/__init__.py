"""Number formats from fp32 down to FP8: what they save in time and memory, and cost in digits."""
