"""One well-behaved toy, and one for each way to fail."""
