"""When a one-time cost is paid back, from paired blocks; and what a difference or a slope is."""

from collections.abc import Sequence
from dataclasses import replace
from math import isinf

import numpy as np

from anatomy.judge.comparisons import Circumstances, Judged, Row, comparisons, in_columns
from anatomy.table import intervals
from anatomy.table.intervals import Interval

USES = ("uses", "uses_low", "uses_high")  # the columns of the ends of `uses`


def uses(
    cost: float | Sequence[float],
    before: Sequence[float],
    after: Sequence[float],
    names: Sequence[str] = USES,
) -> Row:
    """Uses after which a cost has paid, with the 95 % interval; None where an end is never."""
    found = in_columns(names, intervals.break_even(cost, before, after))
    return {name: None if isinf(end) else end for name, end in found.items()}


def paid(
    verdict: str, cost: float | Sequence[float], before: Sequence[float], after: Sequence[float]
) -> Row:
    """Whether a cost pays, by the verdict on what it bought, and if so after how many uses."""
    pays = {"faster": True, "undecided": None}.get(verdict, False)
    ends = uses(cost, before, after) if pays else dict.fromkeys(USES)
    return ends | {"pays": pays}


def extra(row: Row, control: Row, known: Circumstances | None = None, uses: float = 1) -> Interval:
    """Seconds that one of `uses` in a call takes more than the control, block by block. What is
    `known` of earlier occasions widens its interval, as that of a time."""
    blocks_s = np.asarray(row["blocks_s"]) - np.asarray(control["blocks_s"])
    earlier = [(more - less) / uses for more, less in _earlier_medians((row, control))]
    return _widened(intervals.median_interval(blocks_s / uses), earlier, row, known)


def slope(counts: Sequence[float], blocks_s: Sequence[Sequence[float]]) -> Interval:
    """Seconds that one more of something adds: the slope of time over `counts` in each block."""
    n = np.asarray(counts, dtype=np.float64)
    seconds = np.asarray(blocks_s, dtype=np.float64)  # (variants, blocks)
    return intervals.median_interval(np.polyfit(n, seconds, 1)[0])


def slopes(
    rows: Sequence[Row], count: str, names: Sequence[str], known: Circumstances | None = None
) -> Judged:
    """The slope over a column `count` of each comparison that has it, on the row with most. What is
    `known` of earlier occasions widens its interval, as that of a time."""
    for places in comparisons(rows):
        used = [rows[place] for place in places if rows[place]["role"] != "again"]
        used = [row for row in used if row.get(count) is not None]
        if not used:
            continue
        adds = slope([row[count] for row in used], [row["blocks_s"] for row in used])
        most = max(used, key=lambda row: row[count])
        counts = [row[count] for row in used]
        earlier = [float(np.polyfit(counts, each, 1)[0]) for each in _earlier_medians(used)]
        adds = _widened(adds, earlier, most, known)
        for place in places:
            yield place, in_columns(names, adds) if rows[place] is most else dict.fromkeys(names)


def _earlier_medians(rows: Sequence[Row]) -> list[tuple[float, ...]]:
    """Times of these rows on each earlier occasion that measured all of them."""
    medians = zip(*((row.get("occasion_medians_s") or ())[:-1] for row in rows), strict=False)
    return [each for each in medians if None not in each]


def _widened(
    found: Interval, earlier: Sequence[float], row: Row, known: Circumstances | None
) -> Interval:
    """An interval that spans what earlier occasions found as well, and a reach more: that of the
    times of whoever paces the row."""
    if not earlier:
        return found
    pooled = (known and known.reach()) or {}
    reach = pooled.get(row.get("paced_by"), {}).get("median_s", 1.0)
    low, high = min(*earlier, found.low), max(*earlier, found.high)
    ends = low / reach if low > 0 else low * reach, high * reach if high > 0 else high / reach
    return replace(found, low=ends[0], high=ends[1])
