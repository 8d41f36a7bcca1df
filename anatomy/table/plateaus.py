"""The levels of a curve that goes by steps, such as a memory's over the size of a working set."""

from collections.abc import Sequence
from math import log

# A level holds this many points at least. What a step must explain before it is taken for one, in
# squared distances of logarithms: a point between levels costs as much as one that lies 10 % off
# its level, and a level as much as two such points.
LEAST_POINTS, BETWEEN, LEVEL = 3, 0.1**2, 2 * 0.1**2


def plateaus(values: Sequence[float]) -> list[tuple[int, int]]:
    """Stretches on which positive values stay at one level: first and last place of each. A place
    may lie between two levels. Least squares over all ways to cut, by dynamic programming."""
    logs = [log(value) for value in values]
    # Up to each place: the price of the best cut so far, and the levels in it.
    best: list[tuple[float, list[tuple[int, int]]]] = [(0.0, [])]
    for end in range(1, len(logs) + 1):
        ways = [(best[-1][0] + BETWEEN, best[-1][1])]
        for begin in range(end - LEAST_POINTS + 1):
            part = logs[begin:end]
            squares = sum((each - sum(part) / len(part)) ** 2 for each in part)
            ways.append((best[begin][0] + LEVEL + squares, [*best[begin][1], (begin, end - 1)]))
        best.append(min(ways))
    return best[-1][1]
