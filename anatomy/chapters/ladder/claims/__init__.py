"""What the ladder claims, and what the seed says of its rungs."""
