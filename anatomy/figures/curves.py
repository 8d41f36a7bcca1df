"""What curves say: plateaus and the knee of a bandwidth, and the line of a graph's cost.

Arithmetic on rows of `limits.bandwidth` and `limits.floors`, and nothing that prints.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

import numpy as np

from anatomy.judge.rows import Row
from anatomy.table import units
from anatomy.table.intervals import Interval, median_interval

# A cache that gives less than this many times the memory's rate shows no knee to speak of.
LEAST_STEP = 1.1
# From so many caches on, a working set is the memory's alone.
BEYOND = 4


@dataclass(frozen=True)
class Step:
    """The step of one operation's bandwidth from the cache down to the memory.

    Attributes:
        op: `copy`, `read` or `write`.
        cache: The fastest row whose working set is no larger than the cache.
        memory: The fastest row of those several caches large, or None without such a row.
        knee_bytes: Working set at which the rate has fallen half way from the one to the other;
            None where the cache is hardly faster than the memory.
    """

    op: str
    cache: Row | None
    memory: Row | None
    knee_bytes: float | None


@dataclass(frozen=True)
class Line:
    """Cost of a graph over its kernels: `fixed` and `each`, in seconds, with their intervals.

    Attributes:
        fixed: What a replay costs before its first kernel.
        each: What each kernel adds.
        strays: Largest distance of a median from the line, as a share of it.
    """

    fixed: Interval
    each: Interval
    strays: float


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
    return [
        step([row for row in fastest(table) if row["op"] == op])
        for op in dict.fromkeys(row["op"] for row in table)
    ]


def step(points: Sequence[Row]) -> Step:
    """The step of one operation, from its fastest rows by rising working set.

    The knee lies between two sizes; it is interpolated along the logarithm of the size.
    """
    size = points[0]["cache_bytes"]
    inside = [row for row in points if row["working_set_bytes"] <= size]
    outside = [row for row in points if row["working_set_bytes"] >= BEYOND * size]
    cache, memory = max(inside, key=rate, default=None), max(outside, key=rate, default=None)
    knee = None
    if cache and memory and rate(cache) >= LEAST_STEP * rate(memory):
        knee = _crossing(points[points.index(cache) :], (rate(cache) + rate(memory)) / 2)
    return Step(points[0]["op"], cache, memory, knee)


def _crossing(points: Sequence[Row], level: float) -> float | None:
    """Working set at which the rate first falls below `level`."""
    for before, after in pairwise(points):
        if rate(after) < level:
            part = (rate(before) - level) / (rate(before) - rate(after))
            low, high = log(before["working_set_bytes"]), log(after["working_set_bytes"])
            return exp(low + part * (high - low))
    return None


def line(lengths: Sequence[float], blocks: Sequence[Sequence[float]]) -> Line | None:
    """Fit cost = fixed + each x length, block by block.

    Lengths reach over several powers of ten, so each distance counts as a share of its cost;
    otherwise the longest graph alone would decide what the shortest costs.

    Args:
        lengths: Kernels of each graph.
        blocks: For each graph its block medians in seconds, of the same blocks.

    Returns:
        Medians over the blocks with their intervals; None of fewer than two lengths or one block.
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


def graph_line(table: Iterable[Row], quantity: str) -> Line | None:
    """The line of the graphs of a recording of `limits.floors`, in one quantity."""
    graphs = [
        row
        for row in table
        if row.get("op") == "graph"
        and row.get("quantity") == quantity
        and row.get("role") != "again"
        and not units.missing(row.get("median_s"))
    ]
    return line([row["kernel_count"] for row in graphs], [row["blocks_s"] for row in graphs])
