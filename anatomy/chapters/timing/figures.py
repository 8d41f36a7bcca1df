"""One callable timed again and again: its samples in order, and how far equals differ."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from statistics import median
from typing import Any

from anatomy.chapters.timing.judged import HALF, windows
from anatomy.figures import tables
from anatomy.figures.charts import figures
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import GOOD, LINE, MUTED, QUIET, Canvas
from anatomy.figures.diagrams.lanes import round_step
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.record.showing import current
from anatomy.table import units

COLUMNS = ("variant", "stray", "pairs")
TURNS = "in turn"
HIGH, LEFT = 90.0, 48.0  # pixels of a panel, and what is left of it for its axis


@drawn_from("timing.equals", needs="stray")
def strays(table: Sequence[Row]) -> str:
    """A bar for each way to compare one callable with itself: what 95 % of the ratios stray by."""
    table = [row for row in table if not units.missing(row.get("stray"))]
    label = "How far 95 % of comparisons of equals stray. The table under it has the figures."
    heads = ["operation", *(rows.heading(name) for name in COLUMNS)]
    body = [[row["op"], *(tables.cell(row, name) for name in COLUMNS)] for row in table]
    twin = figures.twin(tables.listed(heads, body, "Comparisons of equals"))
    return canvas.both(lambda sheet: _bars(sheet, table), label) + twin


def _bars(sheet: Canvas, table: Sequence[Row]) -> None:
    most, left = max(row["stray"] for row in table) or 1.0, 112.0  # 1: where none strays at all
    for op, each in groupby(table, key=itemgetter("op")):
        sheet.words(0, sheet.height + 20, op, bold=True)
        for row in each:
            y, long = sheet.height + 4, (sheet.width - left - 48) * row["stray"] / most
            sheet.words(left - 6, y + 12, row["variant"], size=11, colour=MUTED, anchor="end")
            sheet.box(
                left, y + 1, max(long, 1), 14, fill=GOOD if row["variant"] == TURNS else QUIET
            )
            sheet.words(left + long + 6, y + 12, rows.printed(row, "stray"), size=11)
    sheet.words(left, sheet.height + 16, "two equals differ by", size=11, colour=MUTED)


@drawn_from("timing.equals", needs="samples_s")
def in_order(table: Sequence[Row]) -> str:
    """The samples of `timing.equals` as they were taken, a panel for each callable: the median of
    each dozen over the median of all."""
    table = [row for row in table if row.get("samples_s")]
    label = f"Medians of {HALF} samples over the median of all, in order."
    capped = _capped(current().find("timing.equals").recording.data["conditions"])
    return canvas.both(lambda sheet: _panels(sheet, table, capped), label)


def _capped(conditions: Mapping[str, Any] | None) -> float:
    """Seconds for which the power cap held the clock down meanwhile; 0 where none were counted."""
    seen = ((conditions or {}).get(when) or {} for when in ("before", "after"))
    first, last = ((each.get("throttle") or {}).get("power_cap") or 0 for each in seen)
    return max(0, last - first) * 1e-9  # counted in nanoseconds


def _panels(sheet: Canvas, table: Sequence[Row], capped: float) -> None:
    for row in table:
        samples = row["samples_s"]
        each = [median(dozen) / median(samples) for dozen in windows(samples, HALF)]
        low, high = min(*each, 0.95), max(*each, 1.05)
        top = sheet.height + 24
        up, across = HIGH / (high - low), (sheet.width - LEFT - 2) / len(each)
        sheet.words(0, top - 10, row["op"], bold=True)
        said = f"{len(samples)} samples, medians of {HALF}, over that of all"
        sheet.words(sheet.width, top - 10, said, size=11, colour=MUTED, anchor="end")
        step = round_step(high - low, 4)
        for number in range(-int((1 - low) / step), int((high - 1) / step) + 1):
            y, look = top + (high - 1 - number * step) * up, MUTED if not number else LINE
            sheet.line((LEFT, y), (sheet.width, y), colour=look, thick=1)
            text = f"{1 + number * step:.2f}×"
            sheet.words(LEFT - 6, y + 4, text, anchor="end", size=11, colour=MUTED)
        steps = ((at + end, value) for at, value in enumerate(each) for end in (0, 1))
        points = ((LEFT + at * across, top + (high - value) * up) for at, value in steps)
        sheet.line(*points, colour=GOOD, thick=2)
        sheet.space(top + HIGH + 8 - sheet.height)
    sheet.words(LEFT, sheet.height + 12, "in the order they were taken →", size=11, colour=MUTED)
    if capped:
        said = f"Meanwhile the power cap held the clock down for {units.seconds(capped, most=2)}."
        sheet.words(LEFT, sheet.height + 16, said, size=11, colour=MUTED)
