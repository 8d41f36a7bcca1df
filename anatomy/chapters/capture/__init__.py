"""Graph capture: six ways to run one function, what each of them breaks, and what they cost."""
