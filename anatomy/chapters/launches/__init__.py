"""What a launch costs by who asks for it, and what the size of a block does to a kernel."""
