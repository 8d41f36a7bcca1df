"""Whether `diagnose` is right, and what a profile of a single call names as the longest."""
