"""What rows of `limits.bandwidth` and `limits.floors` say: plateaus, knees, cost over a length."""

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


@dataclass(frozen=True)
class Step:
    """The step of one operation's bandwidth from the cache down to the memory."""

    op: str
    cache: Row | None  # the fastest whose working set is no larger than the cache
    memory: Row | None  # the fastest of those several caches large
    # Working set at which the rate has fallen half way; None where the cache is hardly faster.
    knee_bytes: float | None


@dataclass(frozen=True)
class Line:
    """Cost of a graph over its kernels: `fixed` and `each`, in seconds, with their intervals."""

    fixed: Interval  # what a replay costs before its first kernel
    each: Interval  # what each kernel adds
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


def line(lengths: Sequence[float], blocks: Sequence[Sequence[float]]) -> Line | None:
    """Fit cost = fixed + each x length, block by block; None of fewer than two lengths or no block.

    Lengths, in kernels, reach over several powers of ten, so each distance counts as a share of its
    cost; otherwise the longest graph alone would decide what the shortest costs. Each graph has the
    medians of the same blocks, in seconds.
    """
    times = np.asarray(blocks, dtype=np.float64)  # (graphs, blocks)
    if len(set(lengths)) < 2 or times.ndim != 2 or not times.size:
        return None
    counts = np.asarray(lengths, dtype=np.float64)
    found = []
    for column in times.T:
        terms = np.stack([1 / column, counts / column], axis=1)  # (graphs, 2)
        found.append(np.linalg.lstsq(terms, np.ones(len(counts)), rcond=None)[0])
    fixed, each = np.asarray(found).T
    typical = np.median(times, axis=1)
    expected = np.median(fixed) + np.median(each) * counts
    strays = float(np.max(np.abs(expected - typical) / typical))
    return Line(median_interval(fixed), median_interval(each), strays)


def graph_rows(table: Iterable[Row]) -> list[Row]:
    """The rows of CUDA graphs in a recording of `limits.floors`."""
    return [row for row in table if row.get("op") == "graph" and row.get("role") != "again"]


def graph_line(table: Iterable[Row], quantity: str) -> Line | None:
    """The line of the graphs of a recording of `limits.floors`, in one quantity."""
    graphs = [row for row in graph_rows(table) if row.get("quantity") == quantity]
    graphs = [row for row in graphs if not units.missing(row.get("median_s"))]
    return line([row["kernel_count"] for row in graphs], [row["blocks_s"] for row in graphs])
