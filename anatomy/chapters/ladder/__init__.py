"""One training step of one transformer, made faster rung by rung."""
