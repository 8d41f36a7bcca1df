"""Bytes of device memory that attention moves: counted by the card, and on paper."""
