"""Number formats: a training step, its gradients, products in FP8, and inference."""
