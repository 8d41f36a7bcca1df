"""The curriculum: 70 days in five phases, where each stands, and how the pages list them."""
