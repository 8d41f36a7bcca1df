"""One table from the tables of several fresh processes, and what they may claim together.

Where a process puts its buffers and code shifts every one of its blocks alike: blocks of one
process are independent draws of its clock, and one single draw of its placement. Concatenating
them as if all were independent gives an interval that is too narrow: with a placement effect of
0.5 % for each variant it calls equals different in 19 of 100 tables, and one process alone in 49
(`tests/judge/test_replication.py` simulates both). Hence:

**A figure** is the median of one median per process, each process counting once however many
blocks it took; a ratio likewise, of the processes' own paired ratios (of their logarithms). These
are independent draws, and nothing is assumed of their distribution.

**Its interval**, from `EXACT_FROM` = 6 processes on, is the exact order-statistic interval of the
processes' figures (coverage at least 95 %, as for blocks within one process). Fewer than six
values have no such interval. Then it is the *envelope*: from the lowest low to the highest high of
the processes' own 95 % intervals, which is wider than each. It misses the true median only if all
processes lie wholly on one side of it, and each does so with probability of at most 1/2 however
large placement is: its coverage is at least 1 - 2 / 2**N (75 % of three), and nearly all where
blocks vary more than placement. Rows say which of the two they have in `interval`.

**The noise floor** is the largest of the processes' floors. It knows nothing of placement, for a
control and its duplicate share their buffers; that is what the processes are for.

**A verdict** follows `intervals.verdict` with the number of processes: the interval excludes 1,
the figure exceeds the floor and 0.5 %, and a figure under 2 %, or `same`, needs three. Under six
processes, because 75 % is no proof, each process's own ratio must also exceed 0.5 % on that side:
that all of three do so by chance takes a placement effect of more than those seen. Simulated with
12 blocks per process and blocks of 0.2 to 0.5 % noise, three processes, and placement effects of
0.3 to 0.5 % for each variant: equals are called different in at most 3 of 100 tables, and a true
2 % is found in at least 88 of 100. At a placement effect of 1 % the first becomes 10 of 100:
where processes differ that much, take six or more, which hold 5 % (a bound, not a simulation)
whatever the placement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import exp, log
from typing import Any

from anatomy.table import intervals, units
from anatomy.table.errors import MeasurementError
from anatomy.table.intervals import Interval

# Fewer values have no order-statistic interval of 95 %: of five the range covers 93.75 %.
EXACT_FROM = 6


@dataclass(frozen=True)
class Replicated:
    """A figure of several processes."""

    interval: Interval  # with its median, in the unit of the figures
    runs: list[float]  # one figure per process, in their order
    label: str  # `exact` for an order-statistic interval of the processes, else `envelope`


def described(count: int) -> str:
    """How many processes a table is of, and what its intervals then are, in a line."""
    if count == 1:
        return "one fresh process"
    if count >= EXACT_FROM:
        return f"{count} fresh processes; intervals are those of the processes' medians"
    least = units.percent(intervals.coverage(count, 1))
    return (
        f"{count} fresh processes; intervals are the envelope of theirs, and hold the median in at "
        f"least {least} of cases"
    )


def pooled(found: Sequence[Interval], *, logarithmic: bool = False) -> Replicated:
    """One figure from the intervals of several processes; of ratios, `logarithmic`."""
    forth, back = (log, exp) if logarithmic else (float, float)
    runs = [each.median for each in found]
    if len(runs) == 1:
        return Replicated(found[0], runs, "exact")
    over = intervals.median_interval([forth(run) for run in runs])
    if over.exact:
        pool = Interval(back(over.median), back(over.low), back(over.high), True, over.coverage)
        return Replicated(pool, runs, "exact")
    low, high = min(each.low for each in found), max(each.high for each in found)
    exact, least = all(each.exact for each in found), intervals.coverage(len(runs), 1)
    # exp(log(x)) may leave x by a rounding error, and the figure must lie in its interval.
    middle = min(max(back(over.median), low), high)
    return Replicated(Interval(middle, low, high, exact, least), runs, "envelope")


def verdict(found: Replicated, floor: float | None) -> str:
    """What may be said about a ratio, time of variant over that of control; the module says why."""
    word = intervals.verdict(found.interval, floor, processes=len(found.runs))
    if word in ("faster", "slower") and found.label == "envelope":
        least = 1.0 + intervals.SMALLEST_EFFECT
        agreed = all(run > least if word == "slower" else run < 1 / least for run in found.runs)
        return word if agreed else "undecided"
    return word


def ratio(above: Mapping[str, Any], below: Mapping[str, Any]) -> Replicated:
    """Ratio of two rows of one table, block by block within each of its processes."""
    pair = blocks_of(above), blocks_of(below)
    counts = [list(map(len, blocks)) for blocks in pair]
    if counts[0] != counts[1]:
        raise MeasurementError(
            f"A ratio is paired block by block, but the processes of {above.get('variant')} have "
            f"{counts[0]} blocks and those of {below.get('variant')} {counts[1]}."
        )
    parts = [intervals.ratio_interval(*blocks) for blocks in zip(*pair, strict=True)]
    return pooled(parts, logarithmic=True)


def blocks_of(row: Mapping[str, Any]) -> list[list[float]]:
    """The seconds of a row's blocks, by process."""
    seconds = row["blocks_s"]
    ends = accumulate(row.get("run_blocks") or [len(seconds)], initial=0)
    return [seconds[start:end] for start, end in pairwise(ends)]
