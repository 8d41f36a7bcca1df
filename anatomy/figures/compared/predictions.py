"""What the limits of two machines say of their times, beside the times that were measured."""

from collections.abc import Sequence
from html import escape

import numpy as np

from anatomy.claims.differences import Compared, Figure
from anatomy.figures import tables
from anatomy.figures.compared.agreement import HOST, pace
from anatomy.judge import limits, shifts
from anatomy.judge.shifts import Shift
from anatomy.record import recording
from anatomy.table import units

LAUNCH = limits.LAUNCH | {"quantity": "host_enqueue"}  # stands for what asking costs
# Shares of the measured rows between which the span of their ratios is told.
SPAN = (0.05, 0.95)


def table(found: Compared) -> str:
    """Each limit of both machines, the ratio of times that follows from it, and the measured ones
    of the rows that name this limit."""
    one, other = (recording.ceilings(each.root, each.machine) for each in (found.old, found.new))
    times = [each for each in found.figures if each.shift.column == "median_s"]
    lines = []
    for ceiling in one:
        if there := other.get(ceiling.name):
            rates = (units.rate(each.value, each.unit) for each in (ceiling, there))
            by_limit = [each for each in times if _bound_by(each, ceiling.name)]
            predicted = units.ratio(ceiling.value / there.value)
            lines.append([_name(ceiling.name, ceiling.kind, there.kind), *rates, predicted])
            lines[-1] += _measured(by_limit)
    if launch := _launch(times):
        both = (units.seconds(i.median, i.low, i.high) for i in (launch.old, launch.new))
        over = launch.over
        ratio = tables.lighter(units.ratio_range(over.median, over.low, over.high))
        by_host = [
            e for e in times if pace(e.shift.row) == HOST and e.new.experiment != limits.FLOORS
        ]
        lines.append(["asking for one small addition", *both, ratio, *_measured(by_host)])
    machines = found.old.machine, found.new.machine
    heads = ("limit", *(f"#{each}" for each in machines), "#times would be")
    heads += ("#measured times: median", "#of most", "#rows")
    return tables.listed(heads, lines, "Limits and what follows from them")


def _name(name: str, *kinds: str) -> str:
    """A limit, and where it is the maker's figure on one of them."""
    stated = "" if set(kinds) == {"measured"} else ' <span class="ci">maker\'s figure</span>'
    return escape(name) + stated


def _bound_by(each: Figure, name: str) -> bool:
    """Whether a row's time is one that the limit of this name bounds, and was not taken for it."""
    row, taken_for_it = each.shift.row, each.new.experiment == limits.EXPERIMENT
    return row.get("limit") == name and pace(row) != HOST and not taken_for_it


def _launch(times: Sequence[Figure]) -> Shift | None:
    """The time of one launch on both."""
    for each in times:
        row = each.shift.row
        named = {name: row.get(name) for name in LAUNCH}
        if each.new.experiment == limits.FLOORS and named == LAUNCH and each.shift.over:
            return each.shift
    return None


def _measured(times: Sequence[Figure]) -> list[str]:
    """The ratios of measured times, the other machine's over the first's: median, span, count."""
    several = [each.shift for each in times if each.shift.over]
    if not several:
        return [tables.NONE, tables.NONE, "0"]
    low, high = np.quantile([each.over.median for each in several], SPAN)
    span = f"{units.ratio(low)} to {units.ratio(high)}"
    return [units.ratio(shifts.middle(several)), span, str(len(several))]
