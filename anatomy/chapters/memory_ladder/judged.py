"""The memory ladder: what one load takes, and the levels of each curve with the edges of caches."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from anatomy.judge.comparisons import TIMES, Judged, rates
from anatomy.judge.rows import Row
from anatomy.judge.rules import rule
from anatomy.table import units
from anatomy.table.plateaus import plateaus

RATES = ("level_rate", "level_low", "level_high")
LATENCIES = ("latency_s", "latency_low_s", "latency_high_s")
ENDS = ("from_bytes", "upto_bytes")


def latencies(row: Row) -> tuple[float, ...]:
    """Seconds of one load of a timed row, and the ends of its interval."""
    return tuple(row[name] / row["loads"] for name in TIMES)


def curves(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The timed rows of each curve, by rising working set."""
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.get("working_set_bytes") or 0):
        if row.get("role") != "again" and not units.missing(row.get("median_s")):
            # A chase has an operation of its own, for nothing is compared with it.
            curve = "chase" if row.get("loads") else row["op"]
            found.setdefault(curve, []).append(row)
    return found


@rule("memory_ladder.latency", columns=(*LATENCIES, *ENDS), source="median_s over loads")
def latency_and_its_levels(rows: Sequence[Row], known: Any) -> Judged:
    """Time of a call over its loads, and the levels of that over the working set."""
    for place, row in enumerate(rows):
        if row.get("loads") and not units.missing(row.get("median_s")):
            yield place, dict(zip(LATENCIES, latencies(row), strict=True))
    yield from _levels(rows, latencies, LATENCIES)


@rule("memory_ladder.bandwidth", columns=(*RATES, *ENDS), source="bytes over median_s")
def levels_of_bandwidth(rows: Sequence[Row], known: Any) -> Judged:
    """The levels of each curve's rates."""
    yield from _levels(rows, lambda row: rates(row, "bytes"), RATES)


def _levels(rows: Sequence[Row], read, names: Sequence[str]) -> Judged:
    found = {}
    for curve, points in curves(rows).items():
        for number, (first, last) in enumerate(plateaus([read(p)[0] for p in points]), 1):
            middle, low, high = zip(*map(read, points[first : last + 1]), strict=True)
            ends = (points[at]["working_set_bytes"] for at in (first, last))
            level = (median(middle), min(low), max(high), *ends)
            found[f"{curve}, levels", f"level {number}"] = level
    for place, row in enumerate(rows):
        if str(row.get("op")).endswith(", levels"):
            level = found.get((row["op"], row["variant"]), [None] * 5)
            yield place, dict(zip((*names, *ENDS), level, strict=True))
