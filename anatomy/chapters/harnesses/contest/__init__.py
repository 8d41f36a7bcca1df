"""The comparison of harnesses: its rules, who won, and which targets are met, as tables of text."""
