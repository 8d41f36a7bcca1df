"""How often each stopwatch is wrong about a difference, drawn: equals that it tells apart, and true
differences that it finds."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from anatomy.chapters.harnesses.contest import standings
from anatomy.chapters.harnesses.contest.standings import OURS, where
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, LINE, MUTED, Canvas
from anatomy.table import units

# Kind of pair -> the head of its column, and the colour of its bars.
HEADS = {"same": ("equals told apart", BAD), "effect": ("true differences found", GOOD)}
BETTER = {"same": "shorter is better", "effect": "longer is better"}
APART = "1% apart"
# What counts as told apart, by what says so: our verdicts, and our figures as those of the others.
WAYS = {
    "verdict": "one process",
    f"verdict of {standings.TOGETHER} processes": f"{standings.TOGETHER} processes",
    APART: OURS,
}
# Over the ways that our verdicts tell by, and over those by which all stopwatches can be compared.
OURS_ALONE, ALL_ALIKE = "compare, by its verdict", "all alike, by figures more than 1% apart"
ROW, BAR, GAP = 40.0, 14.0, 22.0  # pixels: of a way, of its bars, and between the columns
HEAD = 26.0  # pixels: of a heading over some ways
BESIDE = 66.0  # pixels: for a count behind its bar


class Way(NamedTuple):
    """A stopwatch and how it tells; for each kind of pair how many of how many it told apart."""

    name: str
    ours: bool
    group: str
    told: dict[str, tuple[int, int]]


def ways(errors: pd.DataFrame) -> list[Way]:
    """Ours by its verdicts and by its figures, then the others by theirs, of `Contest.errors`."""
    asked = [(OURS, by, words) for by, words in WAYS.items()]
    others = [name for name in dict.fromkeys(errors.variant) if name != OURS]
    found = []
    for variant, by, name in [*asked, *((name, APART, name) for name in others)]:
        rows = where(errors, variant=variant, by=by)
        if told := {row.kind: (int(row.hits), int(row.count)) for row in rows.itertuples(False)}:
            group = ALL_ALIKE if by == APART else OURS_ALONE
            found.append(Way(name, variant == OURS, group, told))
    return found


def mistakes(errors: pd.DataFrame) -> str:
    """The picture; empty where nothing was recorded."""
    there = ways(errors)
    if not there:
        return ""
    said = (
        f"{way.group}: {way.name}: "
        + ", ".join(f"{_count(way.told[k])} {HEADS[k][0]}" for k in way.told)
        for way in there
    )
    return canvas.both(lambda sheet: _draw(sheet, there), "; ".join(said))


def _count(told: tuple[int, int]) -> str:
    return f"{told[0]} of {told[1]}"


def _draw(sheet: Canvas, there: Sequence[Way]) -> None:
    """A row for each way, a column for each kind; bars are shares of all pairs of their kind."""
    each = (sheet.width - GAP) / 2
    room = each - BESIDE
    for at, (kind, (head, _)) in enumerate(HEADS.items()):
        x = at * (each + GAP)
        sheet.words(x, 14, head, bold=True, size=13)
        sheet.words(x, 29, BETTER[kind], colour=MUTED, size=11)
    top, group = 42.0 - ROW, ""
    for way in there:
        top += ROW
        if way.group != group:
            group, top = way.group, top + HEAD
            sheet.words(0, top - 8, group, bold=True, colour=INK, size=12)
        sheet.words(0, top + 11, way.name, code=True, bold=way.ours, colour=INK)
        for at, (kind, (_, colour)) in enumerate(HEADS.items()):
            if kind not in way.told:
                continue
            (hits, count), x = way.told[kind], at * (each + GAP)
            share, bar = hits / count, top + 16
            sheet.box(x, bar, room, BAR, fill=LINE, opacity=0.6)
            sheet.box(x, bar, room * share, BAR, fill=colour, told=units.percent(share, 2))
            text = _count(way.told[kind])
            sheet.words(x + room + 6, bar + 11.5, text, size=11.5, bold=way.ours)
    sheet.space(4)
