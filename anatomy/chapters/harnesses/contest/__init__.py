"""The comparison of harnesses: its rules, who won, which targets are met, and how that is shown."""
