"""torch.compile: what it saves, what it costs, and what breaks it."""
