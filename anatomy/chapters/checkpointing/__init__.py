"""Memory against time: checkpoints, and gradients accumulated over micro-batches."""
