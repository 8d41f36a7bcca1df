"""Who won the comparison of harnesses, which targets are met, and why others are not."""
