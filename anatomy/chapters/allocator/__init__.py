"""PyTorch's caching allocator: what it saves, where its memory gets lost, and what a step holds."""
