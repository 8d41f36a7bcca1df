"""One solution of build.py."""


# --8<-- [start:solution]
class Allocator:
    def __init__(self):
        self.segments = []  # each a list of pieces [start, size, used]

    def take(self, size):
        pieces = [(n, p) for n, each in enumerate(self.segments) for p in each]
        free = [(n, p) for n, p in pieces if not p[2] and p[1] >= size]
        if not free:
            self.segments.append([[0, size, True]])
            return len(self.segments) - 1, 0
        number, piece = min(free, key=lambda found: found[1][1])
        start, left = piece[0], piece[1] - size
        piece[1:] = [size, True]
        if left:
            pieces = self.segments[number]
            pieces.insert(pieces.index(piece) + 1, [start + size, left, False])
        return number, start

    def give_back(self, segment, start):
        merged = []
        for piece in self.segments[segment]:
            free = not piece[2] or piece[0] == start
            if free and merged and not merged[-1][2]:
                merged[-1][1] += piece[1]
            else:
                merged.append([piece[0], piece[1], not free])
        self.segments[segment] = merged


# --8<-- [end:solution]
