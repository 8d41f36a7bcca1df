"""How far away data lies: bandwidth and latency of each level of the memory, and what it holds."""
