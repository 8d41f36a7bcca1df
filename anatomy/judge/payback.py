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


def extra(blocks_s: Sequence[float], control_s: Sequence[float], uses: float = 1) -> Interval:
    """Seconds that one of `uses` in a call takes more than the control, block by block."""
    return intervals.median_interval((np.asarray(blocks_s) - np.asarray(control_s)) / uses)


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
        if earlier := _earlier_slopes(used, count):
            pace = most.get("paced_by")
            reach = ((known and known.reach()) or {}).get(pace, {}).get("median_s", 1.0)
            low, high = min(*earlier, adds.low), max(*earlier, adds.high)
            low, high = (low / reach if low > 0 else low * reach), high * reach
            adds = replace(adds, low=low, high=high)
        for place in places:
            yield place, in_columns(names, adds) if rows[place] is most else dict.fromkeys(names)


def _earlier_slopes(rows: Sequence[Row], count: str) -> list[float]:
    """The same of the medians that earlier occasions found, for each that measured all rows."""
    medians = zip(*((row.get("occasion_medians_s") or ())[:-1] for row in rows), strict=False)
    counts = [row[count] for row in rows]
    return [float(np.polyfit(counts, each, 1)[0]) for each in medians if None not in each]
