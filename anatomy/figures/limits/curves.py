"""What rows of `limits.bandwidth` and `limits.floors` say: plateaus, knees, the rate of one more
byte, what a kernel more costs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import exp, log
from operator import itemgetter

import numpy as np

from anatomy.judge.rows import Row
from anatomy.table import units
from anatomy.table.intervals import Interval, median_interval

LEAST_STEP = 1.1  # a cache that gives less than so many times the memory's rate shows no knee
BEYOND = 4  # from so many caches on, a working set is the memory's alone
# Working sets, as shares of the cache, over which a byte more costs what the cache needs for it: a
# smaller one is over before it is under way, and a larger one begins to lose its place.
WITHIN = (1 / 8, 1 / 2)
STRAIGHT = 0.05  # times that stray farther from a line have no one rate


@dataclass(frozen=True)
class Step:
    """The step of one operation's bandwidth from the cache down to the memory."""

    op: str
    cache: Row | None  # the fastest whose working set is no larger than the cache
    memory: Row | None  # the fastest of those several caches large
    # Working set at which the rate has fallen half way; None where the cache is hardly faster.
    knee_bytes: float | None


@dataclass(frozen=True)
class Marginal:
    """What a byte more takes of one operation in the cache, and what a call takes besides."""

    op: str
    way: str
    rate: Interval  # bytes per second, by the slope from size to size
    fixed: Interval  # seconds: the start and the end of a call


@dataclass(frozen=True)
class Line:
    """Times over the bytes that they move: `fixed` and `each`, in seconds, with their intervals."""

    fixed: Interval  # what a call costs before its first byte
    each: Interval  # what each byte adds
    strays: float  # largest distance of a median from the line, as a share of it


def rate(row: Row) -> float | None:
    """Bytes per second of a row, or None where it was not measured."""
    return None if units.missing(row.get("median_s")) else row["bytes"] / row["median_s"]


def fastest(table: Iterable[Row]) -> list[Row]:
    """Of each operation and working set the row of the fastest way, sizes rising."""
    found: dict[tuple[str, float], Row] = {}
    for row in table:
        if row.get("role") == "again" or rate(row) is None or row.get("verdict") == "impossible":
            continue
        key = (row["op"], row["working_set_bytes"])
        if key not in found or rate(row) > rate(found[key]):
            found[key] = row
    ops = list(dict.fromkeys(op for op, _ in found))
    return [found[key] for key in sorted(found, key=lambda key: (ops.index(key[0]), key[1]))]


def steps(table: Sequence[Row]) -> list[Step]:
    """The step of each operation of a recording of `limits.bandwidth`."""
    return [_step(list(points)) for _, points in groupby(fastest(table), itemgetter("op"))]


def _step(points: Sequence[Row]) -> Step:
    """The step of one operation, from its fastest rows by rising working set."""
    size = points[0]["cache_bytes"]
    inside = [row for row in points if row["working_set_bytes"] <= size]
    outside = [row for row in points if row["working_set_bytes"] >= BEYOND * size]
    cache, memory = max(inside, key=rate, default=None), max(outside, key=rate, default=None)
    knee = None
    if cache and memory and rate(cache) >= LEAST_STEP * rate(memory):
        knee = _crossing(points[points.index(cache) :], (rate(cache) + rate(memory)) / 2)
    return Step(points[0]["op"], cache, memory, knee)


def _crossing(points: Sequence[Row], level: float) -> float | None:
    """Working set at which the rate first falls below `level`, along the logarithm of the size."""
    for before, after in pairwise(points):
        if rate(after) < level:
            part = (rate(before) - level) / (rate(before) - rate(after))
            low, high = log(before["working_set_bytes"]), log(after["working_set_bytes"])
            return exp(low + part * (high - low))
    return None


def marginals(table: Iterable[Row]) -> dict[str, Marginal]:
    """Of each operation of `limits.bandwidth` the rate inside the cache, from size to size, in the
    way that has the highest; an operation whose times lie on no line has none.

    A rate's interval spans those with any one of the sizes left out: which sizes are taken moves it
    more than a repeat does.
    """
    ways: dict[tuple[str, str], list[Row]] = {}
    for row in table:
        size, cache = row.get("working_set_bytes") or 0, row.get("cache_bytes") or 0
        inside = cache and WITHIN[0] <= size / cache <= WITHIN[1]
        if inside and row.get("role") != "again" and rate(row) and row.get("blocks_s"):
            ways.setdefault((row["op"], row["way"]), []).append(row)
    found: dict[str, Marginal] = {}
    for (op, way), points in ways.items():
        each = _marginal(op, way, points)
        if each and (op not in found or each.rate.median > found[op].rate.median):
            found[op] = each
    return found


def _marginal(op: str, way: str, points: Sequence[Row]) -> Marginal | None:
    """Of one way, None of fewer than four sizes or of times that stray from a line."""
    whole = _over_bytes(points)
    if len(points) < 4 or whole is None or whole.strays > STRAIGHT:
        return None
    rest = [_over_bytes([each for each in points if each is not out]) for out in points]
    each, fixed = ([getattr(found, part) for found in (whole, *rest)] for part in ("each", "fixed"))
    low, high = min(end.low for end in each), max(end.high for end in each)
    if low <= 0:
        return None
    span = Interval(whole.fixed.median, min(e.low for e in fixed), max(e.high for e in fixed))
    return Marginal(op, way, Interval(1 / whole.each.median, 1 / high, 1 / low), span)


def _over_bytes(points: Sequence[Row]) -> "Line | None":
    """The line of one way's times over the bytes that it moves."""
    count = min(len(row["blocks_s"]) for row in points)
    return line([row["bytes"] for row in points], [row["blocks_s"][:count] for row in points])


def line(lengths: Sequence[float], blocks: Sequence[Sequence[float]]) -> Line | None:
    """Fit cost = fixed + each x length, block by block; None of fewer than two lengths or no block.

    Each distance counts as a share of its cost; otherwise the longest alone would decide what the
    shortest costs. Each length has the medians of the same blocks, in seconds.
    """
    times = np.asarray(blocks, dtype=np.float64)  # (lengths, blocks)
    if len(set(lengths)) < 2 or times.ndim != 2 or not times.size:
        return None
    counts = np.asarray(lengths, dtype=np.float64)
    found = []
    for column in times.T:
        terms = np.stack([1 / column, counts / column], axis=1)  # (lengths, 2)
        found.append(np.linalg.lstsq(terms, np.ones(len(counts)), rcond=None)[0])
    fixed, each = np.asarray(found).T
    typical = np.median(times, axis=1)
    expected = np.median(fixed) + np.median(each) * counts
    strays = float(np.max(np.abs(expected - typical) / typical))
    return Line(median_interval(fixed), median_interval(each), strays)


def graph_rows(table: Iterable[Row]) -> list[Row]:
    """The rows of CUDA graphs in a recording of `limits.floors`."""
    return [row for row in table if row.get("op") == "graph" and row.get("role") != "again"]


def each_kernel(table: Iterable[Row], quantity: str) -> Interval | None:
    """Seconds that one kernel more costs in the longest graphs of a recording of `limits.floors`,
    in one quantity: between the two longest, since on the wall the host is the slower side of short
    ones. The ends go with the rows': a slow host or card slows both graphs alike."""
    graphs = [row for row in graph_rows(table) if row.get("quantity") == quantity]
    graphs = [row for row in graphs if not units.missing(row.get("median_s"))]
    if len(graphs) < 2:
        return None
    short, long = sorted(graphs, key=itemgetter("kernel_count"))[-2:]
    more = long["kernel_count"] - short["kernel_count"]
    median, low, high = ((long[end] - short[end]) / more for end in ("median_s", "low_s", "high_s"))
    return Interval(median, min(low, median), max(high, median))
