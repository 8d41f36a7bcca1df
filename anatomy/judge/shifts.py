"""Which figures of a table are other ones than in another table of the same call: of another day,
driver, version of PyTorch, or card. Pure, and nothing here knows which of these it was.

Rows are matched by the columns that are declared to tell rows apart, but for numbers that were
measured. What can't be matched one to one, or did other work, is not compared. A figure is any
column with an interval.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, isfinite, log
from statistics import median
from typing import Any

from anatomy.judge import replication
from anatomy.judge.comparisons import RATIOS, Row
from anatomy.judge.replication import EXACT_FROM, Replicated
from anatomy.table import columns, units
from anatomy.table.intervals import Interval

MOVED, SAME, UNDECIDED = "moved", "same", "undecided"
WORDS = (MOVED, SAME, UNDECIDED)
# Verdict on the ratio of both figures -> what is said of them.
SAID = {"faster": MOVED, "slower": MOVED, "same": SAME}
# Rows agree in these only by their table or on one machine: a ratio alone asks for its control, a
# cache belongs to the card, and a limit to what is known of it.
FREE = {"control", "device", "cache_bytes", "limit"}
# What the processes of a row found of a figure, each its own.
RUNS = {"median_s": "run_medians_s", "ratio": "run_ratios"}


@dataclass(frozen=True)
class Shift:
    """One figure in both tables."""

    row: Row  # of the new table
    old_row: Row
    name: str  # of the row: what tells it apart
    column: str
    old: Interval
    new: Interval
    over: Interval | None  # new over old; None of figures that have no ratio
    word: str  # one of `WORDS`

    @property
    def size(self) -> float:
        """How far it moved in either direction, for sorting; 0 without a ratio."""
        return abs(log(self.over.median)) if self.over else 0.0


@dataclass(frozen=True)
class Shifts:
    """Two tables of one call held against each other."""

    figures: list[Shift] = field(default_factory=list)
    only_old: list[str] = field(default_factory=list)  # rows that the new table has not
    only_new: list[str] = field(default_factory=list)
    other_work: list[str] = field(default_factory=list)  # rows whose calls do something else now


def over(new: Interval, old: Interval) -> Interval | None:
    """The ratio of two figures that were measured apart from each other, new over old.

    Blocks of two recordings do not pair up, so the ratio is taken of the ends: from the lowest new
    over the highest old to the highest new over the lowest old. It misses the true ratio only if
    one of both intervals misses its own figure, so two of 95 % give at least 90 %, whatever the
    distributions, and dependent or not (Bonferroni). That is conservative: where both are
    independent and about equally wide, it is wider than need be by a factor of about 1.4, and
    misses in less than 1 of 100. What it says to have moved has moved; what moved by less may be
    called undecided. None where a figure or an end is not positive and finite.
    """
    ends = (old.median, old.low, old.high, new.median, new.low, new.high)
    if not all(isfinite(end) and end > 0 for end in ends):
        return None
    covers = max(old.coverage + new.coverage - 1.0, 0.0)
    ratios = new.median / old.median, new.low / old.high, new.high / old.low
    return Interval(*ratios, exact=old.exact and new.exact, coverage=covers)


def verdict(new: Row, old: Row, column: str) -> tuple[Interval | None, str]:
    """The ratio of a column in two rows, new over old, and one of `WORDS`, by the verdict that a
    table would give to a ratio. The noise floor is the larger one; both must have one. Processes
    count as the fewer: of the figures of each, those that are farthest apart in either direction
    must agree."""
    found = over(figure(new, column), figure(old, column))
    if found is None or "impossible" in (new.get("verdict"), old.get("verdict")):
        return found, UNDECIDED
    now, then = (_runs(row, column) for row in (new, old))
    # One or two processes prove the same.
    others = [found.median] * (min(len(now), len(then)) - 2)
    runs = [now[0] / then[-1], now[-1] / then[0], *others]
    label = "envelope" if "envelope" in (new.get("interval"), old.get("interval")) else "exact"
    floors = new.get("noise_floor"), old.get("noise_floor")
    floor = None if None in floors else max(floors)
    return found, SAID.get(replication.verdict(Replicated(found, runs, label), floor), UNDECIDED)


def figure(row: Row, column: str) -> Interval:
    """A row's figure with its interval; not exact without one, or of too few blocks."""
    low, high = (row.get(name) for name in columns.intervals()[column])
    value, exact = row[column], len(row.get("blocks_s") or ()) >= EXACT_FROM
    if units.missing(low) or units.missing(high):
        return Interval(value, value, value, exact=False)
    return Interval(value, low, high, exact)


def shifts(old: Sequence[Row], new: Sequence[Row], experiment: str) -> Shifts:
    """Every figure of two tables of one call, judged, in the order of the new table."""
    names = coordinates(experiment)
    (before, count), (now, new_count) = (_by_key(rows, names) for rows in (old, new))
    # Of rows that nothing tells apart, the first meets the first if there are as many of them.
    matched = {key for key in now if key in before and count[key[:-1]] == new_count[key[:-1]]}
    found = Shifts()
    for key, row in now.items():
        name = _called(names, key)
        if key not in matched:
            found.only_new.append(name)
        elif _other_work(row, before[key]):
            found.other_work.append(name)
        else:
            found.figures.extend(_figures(row, before[key], name))
    found.only_old.extend(_called(names, key) for key in before if key not in matched)
    return found


def counts(figures: Iterable[Shift]) -> dict[str, int]:
    """How many figures have each word, in the order of `WORDS`."""
    counted = Counter(each.word for each in figures)
    return {word: counted[word] for word in WORDS}


def middle(figures: Iterable[Shift]) -> float | None:
    """The median of the ratios, of their logarithms; None of none."""
    logs = [log(each.over.median) for each in figures if each.over]
    return exp(median(logs)) if logs else None


def coordinates(experiment: str) -> list[str]:
    """The columns that tell rows of an experiment apart in every recording of it."""
    declared = columns.of_experiment(experiment).values()
    return [
        each.name
        for each in declared
        if each.identifies and each.kind != columns.NUMBER and each.name != "role"
    ]


def _by_key(rows: Sequence[Row], names: Sequence[str]) -> tuple[dict[tuple, Row], Counter]:
    """Rows by what tells them apart and a number among equals; and how many are equal."""
    found, seen = {}, Counter()
    for row in rows:
        if row.get("role") != "again":  # the control's duplicate has said what it knows
            key = tuple(_hashable(row.get(name)) for name in names)
            found[*key, seen[key]] = row
            seen[key] += 1
    return found, seen


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, list | dict) else value


def _called(names: Sequence[str], key: tuple) -> str:
    """A row in words: texts by themselves, anything else with its column."""
    known = [each for each in zip(names, key, strict=False) if each[1] is not None]
    said = ", ".join(v if isinstance(v, str) else f"{name}={v}" for name, v in known)
    return f"{said} ({key[-1] + 1})" if key[-1] else said


def _other_work(row: Row, other: Row) -> bool:
    both = ((row.get(name), other.get(name)) for name in columns.must_match() if name not in FREE)
    return any(None not in pair and pair[0] != pair[1] for pair in both)


def _figures(row: Row, old: Row, name: str) -> Iterator[Shift]:
    for column in columns.intervals():
        if units.missing(row.get(column)) or units.missing(old.get(column)):
            continue
        if column in RATIOS and row.get("control") != old.get("control"):
            continue
        ends = figure(old, column), figure(row, column)
        yield Shift(row, old, name, column, *ends, *verdict(row, old, column))


def _runs(row: Row, column: str) -> list[float]:
    """What each process found of a figure, in order of size; itself of one."""
    return sorted(row.get(RUNS.get(column, "")) or [row[column]])
