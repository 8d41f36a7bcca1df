"""When a one-time cost is paid back, from paired blocks; and what a difference or a slope is."""

from collections.abc import Sequence
from math import isinf

import numpy as np

from anatomy.table import intervals
from anatomy.table.intervals import Interval

USES = ("uses", "uses_low", "uses_high")  # the columns of the ends of `uses`
Ends = tuple[float | None, float | None, float | None]
NEVER_SAID: Ends = (None, None, None)  # where a row does not say it
# Verdict -> whether a cost pays: yes, not known, and else no.
PAYS = {"faster": True, "undecided": None}


def uses(cost: float | Sequence[float], before: Sequence[float], after: Sequence[float]) -> Ends:
    """Uses after which a cost has paid, with the 95 % interval; None where an end is never."""
    found = intervals.break_even(cost, before, after)
    return tuple(None if isinf(end) else end for end in (found.median, found.low, found.high))


def extra(blocks_s: Sequence[float], control_s: Sequence[float], uses: float = 1) -> Interval:
    """Seconds that one of `uses` in a call takes more than the control, block by block."""
    return intervals.median_interval((np.asarray(blocks_s) - np.asarray(control_s)) / uses)


def slope(counts: Sequence[float], blocks_s: Sequence[Sequence[float]]) -> Interval:
    """Seconds that one more of something adds: the slope of time over `counts` in each block."""
    n = np.asarray(counts, dtype=np.float64)
    seconds = np.asarray(blocks_s, dtype=np.float64)  # (variants, blocks)
    return intervals.median_interval(np.polyfit(n, seconds, 1)[0])
