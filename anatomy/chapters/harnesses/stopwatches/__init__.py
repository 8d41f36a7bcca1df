"""What the comparison of stopwatches runs, and how."""
