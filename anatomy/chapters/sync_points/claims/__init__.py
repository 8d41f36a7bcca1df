"""What the seed says of waits: of loops with lines that wait, and of which lines do."""
