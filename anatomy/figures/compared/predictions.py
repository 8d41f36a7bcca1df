"""What the limits of two machines say of their times, beside the times that were measured."""

from collections.abc import Sequence
from html import escape

import numpy as np

from anatomy.claims.differences import Compared, Figure
from anatomy.figures import tables
from anatomy.figures.compared import agreement
from anatomy.figures.compared.agreement import HOST, pace
from anatomy.judge import limits, shifts
from anatomy.judge.shifts import Shift
from anatomy.record import recording
from anatomy.table import units

LAUNCH = limits.LAUNCH | {"quantity": "host_enqueue"}  # stands for what asking costs
# Shares of the measured rows between which the span of their ratios is told.
SPAN = (0.05, 0.95)
# A row is near its limit where it reaches such a share of it on both machines; what is above has
# its data in a cache.
NEAR = (0.8, 1.02)


def table(found: Compared) -> str:
    """Each limit of both machines, the ratio of times that follows from it, and the measured ones
    of the rows that name this limit: of those that come near it on both, and of all."""
    both = _ceilings(found)
    times = [each for each in found.figures if each.shift.column == "median_s"]
    lines = []
    for ceiling in both[0]:
        if there := both[1].get(ceiling.name):
            rates = (units.rate(each.value, each.unit) for each in (ceiling, there))
            mine = [each for each in times if _bound_by(each, ceiling.name)]
            near = [each for each in mine if _near(each, both)]
            predicted = units.ratio(ceiling.value / there.value)
            lines.append([_name(ceiling.name, ceiling.kind, there.kind), *rates, predicted])
            lines[-1] += [*_measured(near), _middle(mine)]
    if launch := _launch(times):
        ends = (units.seconds(i.median, i.low, i.high) for i in (launch.old, launch.new))
        over = launch.over
        ratio = tables.lighter(units.ratio_range(over.median, over.low, over.high))
        by_host = [
            e for e in times if pace(e.shift.row) == HOST and e.new.experiment != limits.FLOORS
        ]
        said = [*_measured(by_host), _middle(by_host)]
        lines.append(["asking for one small addition", *ends, ratio, *said])
    heads = ("limit", *(f"#{each}" for each in agreement.names(found)), "#predicted")
    heads += ("#measured near it", "#most of them", "#rows", "#all rows")
    return tables.listed(heads, lines, "Limits and what follows from them")


def answer(found: Compared) -> str:
    """How fast the machine shown is at best, beside the other, in a sentence or two."""
    mine, theirs = _ceilings(found)
    said = []
    for name, words in (("copy", "copies through HBM run"), ("matmul bf16", "bf16 GEMMs")):
        if (one := mine.get(name)) and (other := theirs.get(name)):
            said.append(f"{words} {_beside(one.value / other.value)}")
    if not said:
        return ""
    here, there = agreement.names(found)
    caches = [size for size in (_cache(found, side) for side in ("old", "new")) if size]
    held = f"Their L2 caches report {' and '.join(caches)}. " if len(caches) == 2 else ""
    return f"On the {here} {' and '.join(said)} as on the {there}. {held}"


def _cache(found: Compared, side: str) -> str:
    """The size of a side's L2 as its machine reports it."""
    known = (getattr(each, side).data["machine"].get("l2_bytes") for each in found.figures)
    size = next(filter(None, known), None)
    return units.byte_count(size) if size else ""


def _beside(ratio: float) -> str:
    """A ratio of speeds before `as on`; within a twentieth they are alike."""
    return "as fast" if abs(ratio - 1) < 0.05 else f"{units.significant(ratio, 2)}× as fast"


def _ceilings(found: Compared) -> tuple[limits.Ceilings, limits.Ceilings]:
    one, other = (recording.ceilings(each.root, each.machine) for each in (found.old, found.new))
    return one, other


def _near(each: Figure, both: Sequence[limits.Ceilings]) -> bool:
    """Whether a row's rate comes near its limit on both machines."""
    rows = each.shift.old_row, each.shift.row
    shares = [limits.share(row, known) for row, known in zip(rows, both, strict=True)]
    return all(share and NEAR[0] <= share[0] <= NEAR[1] for share in shares)


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


def _middle(times: Sequence[Figure]) -> str:
    """The median ratio alone, and of how many."""
    median, _, count = _measured(times)
    return f'{median} <span class="ci">of {count}</span>'
