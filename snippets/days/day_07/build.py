"""Day 7: say of an operation what holds it back, and how near it comes. About eight lines."""

from typing import NamedTuple


class Machine(NamedTuple):
    """Measured roofs: operations per second, bytes per second, and what the L2 cache holds."""

    peak: float
    hbm: float
    l2: float
    l2_bytes: float


def place(flops: float, moved: float, seconds: float, on: Machine) -> tuple[str, float]:
    """What bounds a call, and the share of that roof that it reaches.

    `arithmetic` where its operations take longer than its bytes, else `L2` where all that it moves
    fits into half of the cache, else `HBM`. The share is the least time over the time.
    """
    raise NotImplementedError
