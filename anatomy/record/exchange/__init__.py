"""Sets of recordings that go from one machine to another: packed, taken in, and held together."""
