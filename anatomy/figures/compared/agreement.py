"""Ratios of one machine against those of another: counted, drawn and listed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from math import exp, log
from typing import Any

import numpy as np

from anatomy.claims.differences import Compared, Figure
from anatomy.figures import tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import Canvas
from anatomy.judge import shifts
from anatomy.table import units

# What the verdicts of one row on two machines are to each other.
SAME, TURNED, OTHER = "same verdict", "turned round", "another verdict"
# Each with the colour and the shape of its mark.
LOOKS = {
    SAME: ("var(--chart-better)", "circle"),
    OTHER: ("var(--mixed)", "square"),
    TURNED: ("var(--chart-worse)", "triangle-down"),
}
WORDS = tuple(LOOKS)
RINGED = "beyond the band and its interval"
GPU, HOST = "GPU", "host"
# Whoever sets the pace of a row -> what a panel of such rows is called.
PANELS = {GPU: "GPU-bound", HOST: "host-bound", "": "unknown"}
MOST = 0.95  # share of ratios that the band of a panel holds
LEAST_FACTOR = 2.0  # an axis of factors reaches at least from one over this to this


def ratios(found: Compared) -> list[Figure]:
    """The ratios of variants to their controls that both machines have."""
    return [
        each
        for each in found.figures
        if each.shift.column == "ratio" and each.shift.row.get("role") == "variant"
    ]


def names(found: Compared) -> tuple[str, str]:
    """What readers call both machines: their GPUs without the maker, or their slugs."""
    both = next(((each.old, each.new) for each in found.figures), None)
    if both is None:
        return found.old.machine, found.new.machine
    machines = [each.data["machine"] for each in both]
    one, other = ((m.get("gpu") or m["slug"]).removeprefix("NVIDIA ") for m in machines)
    return one, other


def word(each: Figure) -> str:
    """One of `WORDS` for a row on both machines."""
    both = {each.shift.row.get("verdict"), each.shift.old_row.get("verdict")}
    return SAME if len(both) == 1 else TURNED if both == {"faster", "slower"} else OTHER


def counts(several: Sequence[Figure]) -> dict[str, int]:
    """How many ratios have each word."""
    counted = Counter(map(word, several))
    return {each: counted[each] for each in WORDS}


def pace(row: Mapping[str, Any]) -> str:
    """Who sets the pace of a row: `GPU`, `HOST`, or "" where that is not known."""
    return row.get("paced_by") or ""


def within(several: Sequence[Figure], share: float) -> float:
    """The factor by which such a share of ratios differ at most."""
    sizes = [abs(log(each.shift.new.median / each.shift.old.median)) for each in several]
    return float(exp(np.quantile(sizes, share)))


def said(found: Compared) -> str:
    """By how much ratios differ, in a sentence for each pace; empty without any."""
    several, sentences = ratios(found), []
    for who, title in PANELS.items():
        mine = [each for each in several if pace(each.shift.row) == who]
        if who and mine:
            half, most = (units.percent(within(mine, share) - 1, 2) for share in (0.5, MOST))
            share = units.percent(MOST, 2)
            sentences.append(f"Of {title} ratios half differ by {half} at most, {share} by {most}.")
    return " ".join(sentences)


def _turned(each: Figure) -> str:
    """A ratio that is turned round, with what it is on both machines."""
    both = (units.ratio(i.median, i.low, i.high) for i in (each.shift.old, each.shift.new))
    row = each.shift.row
    return f"{tables.code(', '.join((row['op'], row['variant'])))}, {' → '.join(both)}"


def drawn(found: Compared) -> str:
    """The chart, a panel for each pace, with a table of the same by experiment."""
    several = ratios(found)
    one, other = names(found)
    short = [name.partition(" ")[0] for name in (one, other)]  # a panel is narrow
    short = short if short[0] != short[1] else [one, other]
    titles = f"ratio on the {short[0]}", f"ratio on the {short[1]} / on the {short[0]}"
    looks = {each: LOOKS[each] for each in WORDS if counts(several)[each]}
    farthest = max(LEAST_FACTOR, within(several, 1.0) if several else 1.0)
    panels = []
    for who, title in PANELS.items():
        mine = [each for each in several if pace(each.shift.row) == who]
        # What surprises is drawn last, over what does not.
        if mine:
            reach = within(mine, MOST)
            last = sorted(mine, key=lambda e: WORDS.index(word(e)))
            points = [_point(each, reach) for each in last]
            alike = units.percent(counts(mine)[SAME] / len(mine), 2)
            drawing = svg.Drawing("clouds.moved", (points, looks, titles, reach, farthest))
            panels.append((f"{title}: {alike} same verdict", drawing))
    label = f"{len(several)} ratios of the {other} over those of the {one}. "
    label += "The table has them by experiment."
    key = canvas.both(lambda sheet: _key(sheet, looks), "What the marks stand for.")
    picture = svg.chart(panels, label, abreast=len(panels))
    return key + picture + figures.twin(_table(several))


def _key(sheet: Canvas, looks: Mapping[str, tuple[str, str]]) -> None:
    """What each mark of all panels stands for."""
    x, y = 1.0, 14.0
    for name, (colour, shape) in (looks | {RINGED: ("none", "circle")}).items():
        if x > 1 and x + 16 + canvas.wide(name, canvas.KEY) > sheet.width:
            x, y = 1.0, y + 18
        if shape == "triangle-down":
            sheet.shape((x, y - 8), (x + 9, y - 8), (x + 4.5, y), fill=colour)
        else:
            edge, corner = (
                (canvas.INK if name == RINGED else colour),
                4.5 if shape == "circle" else 1,
            )
            sheet.box(x, y - 8.5, 9, 9, fill=colour, edge=edge, round_=corner)
        x += 16 + sheet.words(x + 14, y, name, size=canvas.KEY, colour=canvas.MUTED) + 16
    sheet.space(12)


def _point(each: Figure, reach: float) -> dict[str, Any]:
    """A row's mark; of one that has moved beyond its intervals and the band, a factor `reach` to
    both sides, or whose verdict is turned round, with what is told of it."""
    shift = each.shift
    point = {"x": shift.old.median, "value": shift.new.median / shift.old.median}
    point["series"] = word(each)
    far = shift.word == shifts.MOVED and max(point["value"], 1 / point["value"]) > reach
    if not far and word(each) != TURNED:
        return point
    x, y = (units.ratio_range(i.median, i.low, i.high) for i in (shift.old, shift.new))
    return point | {"hover": f"{each.new.experiment}: {shift.name}: {x} and {y}"}


def _table(several: Sequence[Figure]) -> str:
    lines = []
    for experiment, group in groupby(several, key=lambda each: each.new.experiment):
        mine = list(group)
        words, far = counts(mine), max(mine, key=lambda each: each.shift.size).shift
        moved = sum(each.shift.word == shifts.MOVED for each in mine)
        ends = " → ".join(units.ratio(i.median, i.low, i.high) for i in (far.old, far.new))
        numbers = map(str, (len(mine), *words.values(), moved))
        farthest = f'Farthest apart: {escape(far.name)} <span class="ci">{ends}</span>'
        if turned := [_turned(each) for each in mine if word(each) == TURNED]:
            farthest += f"<br>Turned round: {'; '.join(turned)}"
        name = f'{tables.code(experiment)}<span class="remarks">{farthest}</span>'
        lines.append([name, *numbers])
    heads = ("experiment", "#ratios", *(f"#{each}" for each in WORDS), "#moved")
    return tables.listed(heads, lines, "Ratios by experiment")
