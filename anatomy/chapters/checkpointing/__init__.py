"""Less memory for more time: activation checkpointing, and gradient accumulation beside it. What
each costs, and whether the gradients stay those of the plain step.
"""
