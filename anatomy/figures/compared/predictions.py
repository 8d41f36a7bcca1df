"""What the limits of two machines say of their times, beside the times that were measured."""

from collections.abc import Sequence
from html import escape
from math import log
from typing import NamedTuple

import numpy as np

from anatomy.claims.differences import Compared, Figure
from anatomy.figures import tables
from anatomy.figures.charts import figures
from anatomy.figures.compared import agreement
from anatomy.figures.compared.agreement import HOST, pace
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import GOOD, INK, LINE, MUTED, QUIET, Canvas
from anatomy.judge import limits, shifts
from anatomy.judge.shifts import Shift
from anatomy.record import recording
from anatomy.table import units
from anatomy.table.intervals import Interval

LAUNCH = limits.LAUNCH | {"quantity": "host_enqueue"}  # stands for what asking costs
# Shares of the measured rows between which the span of their ratios is told.
SPAN = (0.05, 0.95)
# A row is near its limit where it reaches such a share of it on both machines; what is above has
# its data in a cache.
NEAR = (0.8, 1.02)
BEYOND = 1.3  # times the farthest mark: there an interval of what is predicted is cut off
ROW, WIDEST = 24.0, 32.0  # pixels: of a limit in the picture, and of a tick's name
TICKS = (0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6, 2, 3, 5, 10)


class Line(NamedTuple):
    """A limit of both machines, and the times of rows that it bounds."""

    name: str
    ends: tuple[str, str]  # what each machine reaches
    predicted: Interval  # the ratio of times that follows
    near: Sequence[Figure]  # rows that come near it on both
    every: Sequence[Figure]


def drawn(found: Compared) -> str:
    """What each limit predicts beside what was measured, with a table of the same."""
    lines = _lines(found)
    there = [line for line in lines if _shifts(line.near)]
    listed = _table(found, lines)
    if not there:
        return listed
    one, other = agreement.names(found)
    label = f"Times on the {other} over those on the {one}, as each limit predicts and as measured."
    label += " The table has the figures."
    picture = canvas.both(
        lambda sheet: _draw(sheet, there, f"time on the {other} / on the {one}, log scale"), label
    )
    return picture + figures.twin(listed)


def _draw(sheet: Canvas, lines: Sequence[Line], title: str) -> None:
    """A row for each limit: a tick where it predicts, a mark with its span where rows near it
    lie, and a hollow mark where all rows that it bounds do."""
    spans = [_span(line.near) for line in lines]
    ends = [
        1.0,
        *(x for span in spans for x in span),
        *(shifts.middle(_shifts(line.every)) for line in lines),
    ]
    ends += [line.predicted.median for line in lines]
    least, most = min(ends) / BEYOND, max(ends) * BEYOND  # of an interval that goes on further
    intervals = [line.predicted for line in lines]
    reaches = [[min(max(x, least), most) for x in (i.low, i.high)] for i in intervals]
    ends += [x for reach in reaches for x in reach]
    low, high = log(min(ends)) - 0.03, log(max(ends)) + 0.03
    left = 8 + max(canvas.wide(line.name, 11.5) for line in lines)
    room = sheet.width - left - 16

    def at(ratio: float) -> float:
        return left + 8 + (log(ratio) - low) / (high - low) * room

    _, y = sheet.key(12, {"predicted": INK, "measured near it": GOOD, "all rows": QUIET})
    top = y + 20
    bottom = top + ROW * len(lines)
    last = -WIDEST
    for tick in (t for t in TICKS if low <= log(t) <= high):
        colour = MUTED if tick == 1 else LINE
        sheet.line((at(tick), top - 6), (at(tick), bottom), colour=colour, thick=1)
        if at(tick) - last > WIDEST:
            last = at(tick)
            sheet.words(last, bottom + 14, f"{tick:g}×", size=11, anchor="middle", colour=MUTED)
    for number, (line, span, reach) in enumerate(zip(lines, spans, reaches, strict=True)):
        y = top + ROW * (number + 0.5)
        sheet.words(left, y + 4, line.name, size=11.5, anchor="end")
        told = f"{line.name}: {len(line.near)} rows near it, {len(line.every)} in all"
        if (wide := at(reach[1]) - at(reach[0])) > 0:
            sheet.box(at(reach[0]), y - 10, wide, 20, fill=INK, opacity=0.1)
        every = at(shifts.middle(_shifts(line.every)))
        sheet.box(every - 4, y - 4, 8, 8, fill=QUIET, edge=MUTED, round_=4, told=told)
        sheet.line((at(span[0]), y), (at(span[1]), y), colour=GOOD, thick=3)
        middle = at(shifts.middle(_shifts(line.near)))
        sheet.box(middle - 4.5, y - 4.5, 9, 9, fill=GOOD, round_=4.5, told=told)
        where = at(line.predicted.median)
        sheet.line((where, y - 9), (where, y + 9), colour=INK, thick=2)
    sheet.words(sheet.width - 2, bottom + 30, title, size=11, anchor="end", colour=MUTED)


def _lines(found: Compared) -> list[Line]:
    both = _ceilings(found)
    times = [each for each in found.figures if each.shift.column == "median_s"]
    lines = []
    for ceiling in both[0]:
        if there := both[1].get(ceiling.name):
            ends = tuple(units.rate(each.value, each.unit) for each in (ceiling, there))
            ratio = ceiling.value / there.value
            mine = [each for each in times if _bound_by(each, ceiling.name)]
            near = [each for each in mine if _near(each, both)]
            name = ceiling.name + _stated(ceiling.kind, there.kind)
            lines.append(Line(name, ends, Interval(ratio, ratio, ratio), near, mine))
    if launch := _launch(times):
        ends = tuple(units.seconds(i.median, i.low, i.high) for i in (launch.old, launch.new))
        by_host = [
            e for e in times if pace(e.shift.row) == HOST and e.new.experiment != limits.FLOORS
        ]
        lines.append(Line("one small addition", ends, launch.over, by_host, by_host))
    return lines


def _table(found: Compared, lines: Sequence[Line]) -> str:
    """Each limit of both machines, the ratio of times that follows from it, and the measured ones
    of the rows that name this limit: of those that come near it on both, and of all."""
    cells = []
    for line in lines:
        over, said = line.predicted, [*_measured(line.near), _middle(line.every)]
        known = over.low == over.high
        text = units.ratio(over.median)
        if not known:
            text = units.ratio_range(over.median, over.low, over.high)
        cells.append([escape(line.name), *line.ends, tables.lighter(text), *said])
    heads = ("limit", *(f"#{each}" for each in agreement.names(found)), "#predicted")
    most = f"#{units.percent(SPAN[1] - SPAN[0], 2)} of them"
    heads += ("#measured near it", most, "#rows", "#all rows")
    return tables.listed(heads, cells, "Limits and what follows from them")


def answer(found: Compared) -> str:
    """How fast the machine shown is at best, beside the other, in a sentence."""
    mine, theirs = _ceilings(found)
    said = []
    here, there = agreement.names(found)
    for name, words in (("copy", "copies through HBM"), ("matmul bf16", "bf16 GEMMs")):
        if (one := mine.get(name)) and (other := theirs.get(name)):
            speed = _beside(one.value / other.value)
            if said:  # what it is held against was said
                said.append(f"{words} {'equally fast' if speed == 'as fast' else speed}")
            else:
                said.append(f"{words} run {speed} as on the {there}")
    if not said:
        return ""
    return f"On the {here} {', '.join(said)}. "


def _beside(ratio: float) -> str:
    """A ratio of speeds; within a twentieth they are alike."""
    return "as fast" if abs(ratio - 1) < 0.05 else f"{units.significant(ratio, 2)}× as fast"


def _ceilings(found: Compared) -> tuple[limits.Ceilings, limits.Ceilings]:
    one, other = (recording.ceilings(each.root, each.machine) for each in (found.old, found.new))
    return one, other


def _near(each: Figure, both: Sequence[limits.Ceilings]) -> bool:
    """Whether a row's rate comes near its limit on both machines."""
    rows = each.shift.old_row, each.shift.row
    shares = [limits.share(row, known) for row, known in zip(rows, both, strict=True)]
    return all(share and NEAR[0] <= share[0] <= NEAR[1] for share in shares)


def _stated(*kinds: str) -> str:
    """Behind a limit that on one of them is only the maker's figure."""
    return "" if set(kinds) == {"measured"} else ", maker's figure"


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


def _shifts(times: Sequence[Figure]) -> list[Shift]:
    return [each.shift for each in times if each.shift.over]


def _span(times: Sequence[Figure]) -> tuple[float, float]:
    """Where most of the ratios lie."""
    low, high = np.quantile([each.over.median for each in _shifts(times)], SPAN)
    return float(low), float(high)


def _measured(times: Sequence[Figure]) -> list[str]:
    """The ratios of measured times, the other machine's over the first's: median, span, count."""
    several = _shifts(times)
    if not several:
        return [tables.NONE, tables.NONE, "0"]
    span = " to ".join(map(units.ratio, _span(times)))
    return [units.ratio(shifts.middle(several)), span, str(len(several))]


def _middle(times: Sequence[Figure]) -> str:
    """The median ratio alone, and of how many."""
    median, _, count = _measured(times)
    return f'{median} <span class="ci">of {count}</span>'
