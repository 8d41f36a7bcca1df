"""A caching allocator in a dozen lines. Fill in two methods, and run check.py."""


class Allocator:
    """Blocks out of segments. A piece is a list [start, size, used] of numbers and a bool."""

    def __init__(self):
        self.segments = []  # each a list of pieces, in the order of their starts

    def take(self, size):
        """A block of `size` bytes: its (segment number, start).

        It comes out of the smallest free piece that is large enough; what is left of the piece
        stays free behind it. Where none is, the driver gives a segment of just this size.
        """
        raise NotImplementedError

    def give_back(self, segment, start):
        """The block there is free again, and one piece with the free pieces on either side."""
        raise NotImplementedError
