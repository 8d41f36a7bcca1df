"""The corner of a roofline, from points measured on both sides of it."""

from collections.abc import Sequence

import numpy as np

from anatomy.judge.rows import Row
from anatomy.table.intervals import Interval, median_interval

AWAY = 2.0  # points within this factor of the corner are left out: there both limits hold at once


def ridge(
    flops: Sequence[float], bytes_: Sequence[float], blocks_s: Sequence[Sequence[float]]
) -> Interval | None:
    """Operations per byte at which memory and arithmetic take equally long; None where the points
    lie all on one side.

    Points have rising operations per byte, and times of the same blocks. In each block the slope is
    the median bandwidth of the points well left of the corner, the flat part the median rate of
    those well right of it; the corner that says who is where is a first guess from the highest of
    both. Source: Williams, Waterman and Patterson 2009, Roofline, doi:10.1145/1498765.1498785.
    """
    seconds = np.asarray(blocks_s, dtype=np.float64)  # (points, blocks)
    if seconds.ndim != 2 or not seconds.size:
        return None
    rates = np.asarray(flops, dtype=np.float64)[:, None] / seconds
    bandwidths = np.asarray(bytes_, dtype=np.float64)[:, None] / seconds
    typical = np.median(rates, axis=1), np.median(bandwidths, axis=1)
    guess = typical[0].max() / typical[1].max()
    at = np.asarray(flops, dtype=np.float64) / np.asarray(bytes_, dtype=np.float64)
    left, right = at * AWAY <= guess, at >= guess * AWAY
    if not left.any() or not right.any():
        return None
    return median_interval(np.median(rates[right], axis=0) / np.median(bandwidths[left], axis=0))


def of_rows(rows: Sequence[Row]) -> Interval | None:
    """The corner of the rows of one comparison that count operations and bytes."""
    there = [row for row in rows if row.get("role") != "again" and row.get("blocks_s")]
    there = [row for row in there if row.get("flops") and row.get("bytes")]
    if not there:
        return None
    columns = ([row[name] for row in there] for name in ("flops", "bytes", "blocks_s"))
    return ridge(*columns)
