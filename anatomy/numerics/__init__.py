"""What numbers are to torch: number formats by their names, and whether two answers agree."""
