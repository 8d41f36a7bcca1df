"""Which machine this is: its device and host, its software, and what its driver says meanwhile."""
