"""What makes a recording worth trusting: its form, what it must hold, and whether it is current."""
