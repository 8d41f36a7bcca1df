"""What the card, its driver and the installed software say of themselves."""
