"""What several occasions (days, cards, hosts) say of one figure: an interval for the next one.

Blocks of one run say how well that run was measured, and little of where a later one lands. A
recording keeps what earlier occasions found. Occasions are taken to be exchangeable: the next
differs from those seen as these do from each other. There are few per row and many rows, so rows
are pooled, by who paces them (`anatomy.judge.pace`), for hosts differ more than GPUs, and a ratio
of what the host paces to what the GPU paces differs most; what is not known counts as that. Steps
of which only the host's part is known, and is neither small nor most of them, are a class of their
own. All is reckoned in factors, for a slower host slows all by one.

**The interval** spans the intervals of all occasions, and on both sides a *reach* more, a factor
that is common to a class. A row whose occasions differ much so has a wide interval, one that the
class alone widens a narrow one. No host makes a step shorter than its kernels run: where a profile
knows how long that is, the interval of a time ends there, a card's reach below.

**The reach** is found by leaving each occasion of each row out: how far does its figure lie beyond
what the row's others span? It is the smallest factor that holds 95 % of these; of m rows the share
0.95 (m + 1) / m, as for any conformal interval (of fewer than 19 the farthest). n occasions span
more than n - 1, so the interval that is shown holds a later figure more often than it was asked to:
this is the jackknife-minmax of Barber et al. 2021 (Predictive inference with the jackknife+,
theorem 2), for many rows at once. `tests/judge/test_occasions.py` simulates it. Asking for the same
of recordings in place of rows, whose hosts are the true draws, covers more than was wanted, and
costs verdicts in which all occasions agree.

**What is pooled** are all recordings of one machine, once, into a small file beside them, and not
those of one recording whenever it is read: a host slows all rows of a recording alike, so that two
occasions of one recording are a single draw of how hosts differ, while recordings were made on
different ones. Without that file, what one recording has is pooled.

**What stays.** The figure is the newest occasion's. A verdict is kept where the wider interval
still shows it, and is `undecided` else: none gets stronger. What every occasion found alike is kept
beside it, for it is true of the machines that were there. A row seen on one occasion keeps its
blocks' interval. After how many uses a cost is paid back is reckoned from blocks alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from typing import Any

from anatomy.judge import replication
from anatomy.judge.comparisons import RATIOS, TIMES, Circumstances, Judged, Row
from anatomy.judge.merging import NAMES
from anatomy.judge.pace import EITHER, GPU, HOST, MIXED, class_of, of_ratio
from anatomy.judge.replication import Replicated
from anatomy.table import columns, intervals, units
from anatomy.table.intervals import Interval

FIGURES = (*TIMES, *RATIOS)  # what is kept of an earlier occasion
SHARE = 0.95  # of later figures that an interval is to hold
COLUMNS = (
    *("occasions", "occasion_medians_s", "occasion_ratios", "on_each_occasion"),
    *("reach", "reach_mixed"),
)
# Class of rows -> column of a figure -> factor.
Reach = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Seen:
    """One figure of one row as several occasions found it."""

    row: Row = field(repr=False)  # of the newest occasion
    place: int  # of the row in its table
    pace: str  # its class: `GPU`, `host`, `EITHER`, or `MIXED` of a ratio
    figure: str  # its column, `median_s` or `ratio`
    found: tuple[Interval, ...]  # oldest first

    @cached_property
    def beyond(self) -> list[float]:
        """For each occasion, by which factor its figure lies beyond what the others span, or 1."""
        factors = []
        for at, each in enumerate(self.found):
            low, high = span((*self.found[:at], *self.found[at + 1 :]))
            factors.append(max(1.0, each.median / high, low / each.median))
        return factors


def span(found: Sequence[Interval], reach: float = 1.0) -> tuple[float, float]:
    """From the lowest low to the highest high of several intervals, and a factor further."""
    return min(each.low for each in found) / reach, max(each.high for each in found) * reach


def seen(rows: Sequence[Row], earlier: Sequence[Mapping[str, Sequence]]) -> Iterator[Seen]:
    """Every figure in a table that more than one occasion found, in the order of the rows. The rows
    are those of the newest; `earlier` has the `FIGURES` of each one before, oldest first."""
    paces = {_called(row): class_of(row) for row in rows}
    for place, row in enumerate(rows):
        if "paced_by" not in row:  # it has no time, or none yet
            continue
        own, control = class_of(row), paces.get(_called(row, row.get("control")))
        for names, pace in ((TIMES, own or HOST), (RATIOS, of_ratio(own, control))):
            if names == RATIOS and row.get("role") == "again":  # it is the noise floor
                continue
            # The newest last; where the figure is not there, nothing is to be said of it.
            found = [_interval([_at(each, name, place) for name in names]) for each in earlier]
            found = [*filter(None, found), _interval([row.get(name) for name in names])]
            if found[-1] and len(found) > 1:
                yield Seen(row, place, pace, names[0], tuple(found))


def telling(figures: Iterable[Seen]) -> list[Seen]:
    """Those that count once in a pool: a control's duplicate tells what the control does."""
    return [each for each in figures if each.row.get("role") != "again"]


def pooled(figures: Iterable[Seen]) -> dict[str, dict[str, float]]:
    """The reach of each class and figure among some."""
    groups: dict[tuple[str, str], list[list[float]]] = {}
    for each in figures:
        groups.setdefault((each.pace, each.figure), []).append(each.beyond)
    found: dict[str, dict[str, float]] = {}
    for (pace, figure), rows in groups.items():
        factors = sorted(factor for row in rows for factor in row)
        rank = ceil(len(factors) * SHARE * (len(rows) + 1) / len(rows))
        found.setdefault(pace, {})[figure] = factors[min(rank, len(factors)) - 1]
    return found


def judged(rows: Sequence[Row], known: Circumstances) -> Judged:
    """Wider intervals, and the verdicts that remain, of rows that several occasions measured."""
    if not known.earlier:
        return
    figures = list(seen(rows, known.earlier))
    reach = known.reach() or pooled(telling(figures))
    new = {place for place, row in enumerate(rows) if "occasions" not in row}
    for each in (each for each in figures if each.place in new):
        row, factor = rows[each.place], _factor(reach, each.pace, each.figure)
        low, high = span(each.found, factor)
        if each.figure == "median_s":
            low = max(low, _least(row, each.found, reach))
            medians = [*(_at(one, "median_s", each.place) for one in known.earlier)]
            found = {"low_s": low, "high_s": high, "occasions": len(each.found)}
            found |= {
                "occasion_medians_s": [*medians, row["median_s"]],
                "reach": _factor(reach, each.pace, "ratio"),
            }
            found["reach_mixed"] = _factor(reach, MIXED, "ratio")
        else:
            ratios = [_at(one, "ratio", each.place) for one in known.earlier]
            found = {
                "ratio_low": low,
                "ratio_high": high,
                "occasion_ratios": [*ratios, row["ratio"]],
            }
            found["verdict"] = remaining(row.get("verdict"), low, high)
            found["on_each_occasion"] = _on_each(row.get("verdict"), each.found)
        yield each.place, found


def _least(row: Row, found: Sequence[Interval], reach: Reach) -> float:
    """What a row's time can't fall below on any host: the time that its kernels run, if a profile
    knows that, on a card that is as much faster as cards were seen to be."""
    running = row.get("busy_s")
    if units.missing(running):
        return 0.0
    seen = min(running, *(each.low for each in found))  # a profile may have seen a lower clock
    return seen / _factor(reach, GPU, "median_s")


def _factor(reach: Reach, pace: str, figure: str) -> float:
    """How far figures of a class reach; where none of two paces was seen, as far as the host's."""
    found = reach.get(pace, {}).get(figure)
    if found is None and pace in (MIXED, EITHER):
        found = reach.get(HOST, {}).get(figure)
    return found or 1.0


def remaining(verdict: str | None, low: float, high: float) -> str | None:
    """A verdict on a ratio, or `undecided` where an interval this wide does not show it."""
    within = max(intervals.size(low), intervals.size(high)) <= intervals.SAME_WITHIN
    shown = {"faster": high < 1.0, "slower": low > 1.0, "same": within}
    return verdict if shown.get(verdict, True) else "undecided"


def _on_each(verdict: str | None, found: Sequence[Interval]) -> str | None:
    """The newest occasion's verdict, if that is a direction in which the others' intervals lie."""
    word = remaining(verdict, *span(found))
    return word if word in ("faster", "slower") else None


def ratio(above: Mapping[str, Any], below: Mapping[str, Any]) -> Replicated:
    """`replication.ratio` of two rows of one table, with an interval that covers the occasions that
    measured both; of these the ratio of their times is known."""
    found = replication.ratio(above, below)
    times = (row.get("occasion_medians_s") or [] for row in (above, below))
    pairs = [pair for pair in zip(*times, strict=False) if None not in pair][:-1]
    if not pairs:
        return found
    ratios = (over / under for over, under in pairs)
    mixed = of_ratio(class_of(above), class_of(below)) == MIXED
    reach = max(row.get("reach_mixed" if mixed else "reach") or 1.0 for row in (above, below))
    low, high = span([found.interval, *(Interval(each, each, each) for each in ratios)], reach)
    return replace(found, interval=replace(found.interval, low=low, high=high))


def matching(
    rows: Sequence[Mapping], others: Sequence[Mapping], experiment: str
) -> list[int | None]:
    """For each row the place of the one in another table of the experiment that is of the same
    thing; None where there is none, or another number of them. Rows are told by what they are
    called, and by whatever the experiment declares to identify them."""
    declared = columns.of_experiment(experiment).values()
    names = dict.fromkeys((*NAMES, *(each.name for each in declared if each.identifies)))
    here, there = (_by_name(table, names) for table in (rows, others))
    places: list[int | None] = [None] * len(rows)
    for name, mine in here.items():
        if len(mine) == len(theirs := there.get(name, ())):
            for place, other in zip(mine, theirs, strict=True):
                places[place] = other
    return places


def _by_name(rows: Sequence[Mapping], names: Iterable[str]) -> dict[tuple, list[int]]:
    found: dict[tuple, list[int]] = {}
    for place, row in enumerate(rows):
        key = (row.get(name) for name in names)
        key = tuple(None if units.missing(value) else value for value in key)
        found.setdefault(tuple(map(_hashable, key)), []).append(place)
    return found


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, list | dict) else value


def _called(row: Mapping[str, Any], variant: str | None = None) -> tuple:
    return row.get("op"), row.get("quantity"), variant or row.get("variant")


def _at(one: Mapping[str, Sequence], name: str, place: int) -> float | None:
    """A figure of one row on an earlier occasion; None where that has none of the kind."""
    return one[name][place] if name in one else None


def _interval(values: Sequence[float | None]) -> Interval | None:
    """A figure with its ends; without ends it is its own, and without a figure there is none."""
    middle, low, high = (None if units.missing(value) else value for value in values)
    if not middle or middle < 0:  # a time that is no time
        return None
    return Interval(middle, min(low or middle, middle), max(high or middle, middle))
