"""What follows from the blocks of one comparison: times, noise floor, ratios, verdict, regime.

A comparison is a run of rows that `compare` returned together: the variants measured in the same
blocks, and last the control's duplicate, `again`. Rows of anything else (a first call, a count) are
left as they are.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from anatomy.judge import gates
from anatomy.judge.limits import Ceilings
from anatomy.table import intervals
from anatomy.table.intervals import Interval

Row = dict[str, Any]
# A row's place in its table, and the columns that follow for it.
Judged = Iterator[tuple[int, Row]]

# A figure is narrow enough when half its 95 % interval is at most this share of it.
PRECISION = 0.01
# No interval of a time is narrower than this on either side: six comparisons of one callable in a
# row, each of which sets up its buffers anew, differ by more than the blocks of each would say.
LEAST_HALF_WIDTH = 0.002

TIMES = ("median_s", "low_s", "high_s")
RATIOS = ("ratio", "ratio_low", "ratio_high")
COLUMNS = (*TIMES, "wide", "noise_floor", *RATIOS, "verdict", "regime", "note")


@dataclass(frozen=True)
class Circumstances:
    """What a recording says, beside its rows, of how they were measured."""

    experiment: str = ""  # empty for a comparison of a user's own
    # The recording's blocks of these names: on a CPU the first is empty; the second has the clock's
    # calibration.
    machine: Mapping[str, Any] = field(default_factory=dict)
    method: Mapping[str, Any] = field(default_factory=dict)
    ceilings: Callable[[], Ceilings | None] = lambda: None  # asked for where a row needs them
    # Figures of earlier occasions, oldest first, and how far a later one may lie beyond them; what
    # they hold says `anatomy.judge.occasions`.
    earlier: Sequence[Mapping[str, Sequence]] = ()
    reach: Callable[[], Mapping[str, Mapping[str, float]] | None] = lambda: None


def compared(row: Mapping[str, Any]) -> bool:
    """Whether a row is one of a comparison, with the blocks that all of it follows from."""
    return bool(row.get("blocks_s") and row.get("role")) and row.get("launch_inclusive") is not None


def comparisons(rows: Sequence[Row]) -> list[list[int]]:
    """The places of the rows of each comparison in a table, in order.

    The control's duplicate ends a comparison. Where a table keeps none, rows of one op and quantity
    are taken to belong together.
    """
    found: list[list[int]] = [[]]
    for place, row in enumerate(rows):
        if compared(row):
            found[-1].append(place)
            if row["role"] == "again":
                found.append([])
    split: list[list[int]] = []
    for places in found:
        several = sum(rows[place]["role"] == "control" for place in places) > 1
        groups: dict[tuple, list[int]] = {}
        for place in places:
            key = (rows[place].get("op"), rows[place].get("quantity")) if several else ()
            groups.setdefault(key, []).append(place)
        split += groups.values()
    return split


def controlled(rows: Sequence[Row]) -> Iterator[tuple[int, Row, Row]]:
    """Each row of the comparisons that have their control: its place, the row, and the control."""
    for places in comparisons(rows):
        control = next((rows[p] for p in places if rows[p]["role"] == "control"), None)
        if control is not None:
            yield from ((place, rows[place], control) for place in places)


def judged(rows: Sequence[Row], known: Circumstances) -> Judged:
    """Each row's place, and what follows for it, in the comparisons that one process measured.

    Of `COLUMNS` those are left out that can't be told from what the row keeps: a regime without a
    period, a ratio over a control that is not there.
    """
    for places in comparisons(rows):
        members = {rows[place].get("variant"): rows[place] for place in places}
        floor = _noise_floor(members.values())
        for place in places:
            row = rows[place]
            time = interval_of(row, known.method)
            follows = in_columns(TIMES, time)
            follows["wide"] = not time.exact or intervals.half_width(time) > PRECISION
            follows |= {} if floor is None else {"noise_floor": floor}
            floor_here = row.get("noise_floor") if floor is None else floor
            follows |= _against_control(row, members, floor_here)
            follows |= _regime(row)
            yield place, follows | _gate(row, follows, known)


def in_columns(names: Sequence[str], found: Interval) -> Row:
    """A median and the ends of its interval under these names, such as `TIMES`."""
    return dict(zip(names, (found.median, found.low, found.high), strict=True))


def rates(row: Row, work: str) -> tuple[float, float, float]:
    """What a timed row does in a second of the work in one of its columns, and its interval."""
    return tuple(row[work] / row[name] for name in ("median_s", "high_s", "low_s"))


def interval_of(row: Row, method: Mapping[str, Any]) -> Interval:
    """Median of a row's blocks in seconds, with an interval that is not narrower than the clock."""
    middle = intervals.median_interval(row["blocks_s"])
    # Where noise is smaller than the clock's step, a median between steps can be half of one off.
    half_step_s, least_s = resolution_s(row, method) / 2, LEAST_HALF_WIDTH * middle.median
    return replace(
        middle,
        low=min(middle.low - half_step_s, middle.median - least_s),
        high=max(middle.high + half_step_s, middle.median + least_s),
    )


# How a sample was taken, in the words of a row: the clock's step is divided by the calls in it.
_SAMPLE = re.compile(r"^(?:event pair|host clock) around (each call,|(\d+) calls (?:back|over))")
_ITERATIONS = re.compile(r"; a call is (\d+) iterations$")


def resolution_s(row: Row, method: Mapping[str, Any]) -> float:
    """The step in which a row's samples come, in seconds; 0 where the clock's is not known."""
    if row.get("resolution_s") is not None:
        return row["resolution_s"]
    step_s = (method.get("calibration") or {}).get("resolution_s") or 0.0
    words = str(row.get("method") or "").split("; ")[0]
    sample = _SAMPLE.match(words)
    if not step_s or sample is None:
        return 0.0
    iterations = _ITERATIONS.search(row["method"])
    return step_s / int(sample[2] or 1) / int(iterations[1] if iterations else 1)


def _noise_floor(members: Iterable[Row]) -> float | None:
    """What the control differs from its duplicate; None where one of them was not kept."""
    by_role = {row["role"]: row["blocks_s"] for row in members if row["role"] != "variant"}
    if len(by_role) < 2:
        return None
    return intervals.noise_floor(intervals.ratio_interval(by_role["again"], by_role["control"]))


def _against_control(row: Row, members: Mapping[str, Row], floor: float | None) -> Row:
    """A row's ratio over its control, and what may be said of it."""
    name = row.get("control")
    if name is None:  # the control itself, or a row whose control could not be measured
        verdict = "control" if row["role"] == "control" else None
        return dict.fromkeys(RATIOS) | {"verdict": verdict}
    if name not in members:
        return {}
    ratio = intervals.ratio_interval(row["blocks_s"], members[name]["blocks_s"])
    verdict = "again" if row["role"] == "again" else intervals.verdict(ratio, floor)
    return in_columns(RATIOS, ratio) | {"verdict": verdict}


def _regime(row: Row) -> Row:
    """What bounds a call; nothing where the row does not keep its period."""
    if "period_s" not in row:
        return {}
    if row["period_s"] is None:  # a CPU's, or a time of the host alone
        return {"regime": None}
    measured = {name: row.get(name) for name in ("enqueue_s", "period_s", "gap_share")}
    return {"regime": gates.regime(**measured)}


def _gate(row: Row, follows: Row, known: Circumstances) -> Row:
    """`impossible` with the reason, where the figure is; else nothing beside what follows."""
    cache_bytes = known.method.get("cache_bytes")
    reason = gates.impossible(row, follows["median_s"], known.machine, cache_bytes, known.ceilings)
    if reason:
        return {"verdict": "impossible", "note": "; ".join(filter(None, (reason, own_note(row))))}
    return {"note": None} if row.get("verdict") == "impossible" else {}


def own_note(row: Mapping[str, Any]) -> str | None:
    """What a row itself has to say: not why an earlier datasheet called it impossible."""
    return None if row.get("verdict") == "impossible" else row.get("note")
