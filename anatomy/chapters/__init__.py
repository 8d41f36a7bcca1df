"""What is measured, one topic a file. Each experiment returns one tidy table."""
