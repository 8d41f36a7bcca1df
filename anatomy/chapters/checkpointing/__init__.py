"""Less memory for more time: activation checkpointing, and gradient accumulation beside it."""
