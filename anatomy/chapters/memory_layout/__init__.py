"""How a tensor lies in memory, what that costs, and when a copy into a better layout pays."""
