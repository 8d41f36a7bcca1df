"""Day 7: an operation, placed."""

from typing import NamedTuple


class Machine(NamedTuple):
    """Measured roofs: operations per second, bytes per second, and what the L2 cache holds."""

    peak: float
    hbm: float
    l2: float
    l2_bytes: float


# --8<-- [start:solution]
def place(flops: float, moved: float, seconds: float, on: Machine) -> tuple[str, float]:
    """What bounds a call, and the share of that roof that it reaches."""
    cached = moved <= on.l2_bytes / 2
    memory_s = moved / (on.l2 if cached else on.hbm)
    compute_s = flops / on.peak
    if compute_s >= memory_s:
        return "arithmetic", compute_s / seconds
    return ("L2" if cached else "HBM"), memory_s / seconds


# --8<-- [end:solution]
