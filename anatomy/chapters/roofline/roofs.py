"""The roofline on reading: its corner, from points on both sides of it, and the least time that a
row could have taken under it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anatomy.judge.limits import DRAM, MATMUL, Ceilings
from anatomy.judge.rows import Row
from anatomy.table.intervals import Interval, median_interval

RIDGE = ("ridge", "ridge_low", "ridge_high")  # columns of the corner and its interval
AWAY = 2.0  # points within this factor of the corner are left out: there both limits hold at once


def ridge(points: Sequence[Row]) -> Interval | None:
    """Operations per byte at which memory and arithmetic take equally long; None where the points
    lie all on one side.

    Points are rows with `flops`, `bytes` and times of the same blocks. In each block the slope is
    the median bandwidth of the points well left of the corner, the flat part the median rate of
    those well right of it; who is where, a first guess says from the highest of both. Source:
    Williams, Waterman and Patterson 2009, Roofline, doi:10.1145/1498765.1498785.
    """
    if not points:
        return None
    columns = ([row[name] for row in points] for name in ("flops", "bytes", "blocks_s"))
    flops, moved, seconds = (np.asarray(column, dtype=np.float64) for column in columns)
    rates, bandwidths = flops[:, None] / seconds, moved[:, None] / seconds  # (points, blocks)
    guess = np.median(rates, axis=1).max() / np.median(bandwidths, axis=1).max()
    left, right = AWAY * flops / moved <= guess, flops / moved >= AWAY * guess
    if not left.any() or not right.any():
        return None
    return median_interval(np.median(rates[right], axis=0) / np.median(bandwidths[left], axis=0))


class Least(NamedTuple):
    """The least time that a row could have taken, in seconds, and the roof that says so."""

    seconds: float
    roof: str  # `copy`, `read` or `write`, or `matmul <format>`

    @property
    def bound(self) -> str:
        """What holds it back."""
        return "memory-bound" if self.roof in DRAM else "compute-bound"


def least(row: Row, ceilings: Ceilings) -> Least | None:
    """The larger of what its bytes and what its operations take at best: of its own mix of reads
    and writes, where its `limit` names one, and in its number format. None where a ceiling is not
    known."""
    memory = row["limit"] if row.get("limit") in DRAM else "copy"
    peak, bandwidth = ceilings.get(MATMUL + str(row.get("dtype"))), ceilings.get(memory)
    if peak is None or bandwidth is None:
        return None
    compute_s, memory_s = row["flops"] / peak.value, row["bytes"] / bandwidth.value
    return Least(compute_s, peak.name) if compute_s >= memory_s else Least(memory_s, memory)
