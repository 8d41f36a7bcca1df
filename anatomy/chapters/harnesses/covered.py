"""Our intervals over processes beside the kernels' own record, drawn: which hold it, and by how
much the others miss it."""

import pandas as pd

from anatomy.chapters.harnesses.contest import standings
from anatomy.chapters.harnesses.contest.standings import where
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, LINE, MUTED, Canvas
from anatomy.table import units

ROW, HEAD = 17.0, 30.0  # pixels: of an interval, and of the heading over those of a quantity
FARTHEST = 0.06  # what reaches farther from the record, as a share of it, ends in an arrow
ARROW = 14.0  # pixels that an arrow takes beside the axis
STEP = 0.02


def covered(asked: pd.DataFrame) -> str:
    """The picture of `Contest.asked`; empty where there is no record."""
    table = where(asked, kind=standings.OVER_PROCESSES)
    table = table[table.quantity != "step_wall"]  # whose record is no kernel's
    table = table.sort_values("quantity", kind="stable")
    if table.empty:
        return ""
    held = f"{int(table.held.sum())} of {len(table)} intervals hold the kernels' record."
    missed = ", ".join(f"{row.op} {row.quantity}" for row in table[~table.held].itertuples())
    return canvas.both(lambda sheet: _draw(sheet, table), f"{held} Missed: {missed or 'none'}.")


def _draw(sheet: Canvas, table: pd.DataFrame) -> None:
    """A row for each workload: the interval as a share above or below the record."""
    left = 8 + max(canvas.wide(op, 11) for op in table.op)
    right = sheet.width - ARROW - 2

    def at(share: float) -> float:
        share = min(max(share, -FARTHEST), FARTHEST)
        return left + ARROW + (share + FARTHEST) / (2 * FARTHEST) * (right - left - ARROW)

    _, top = sheet.key(12, {"holds the record": GOOD, "misses it": BAD})
    top += 8
    bottom = top + HEAD * table.quantity.nunique() + ROW * len(table)
    for step in range(round(-FARTHEST / STEP), round(FARTHEST / STEP) + 1):
        x, text = at(step * STEP), "the record" if step == 0 else f"{step * STEP:+.0%}"
        sheet.line((x, top + 8), (x, bottom + 4), colour=LINE if step else INK, thick=1)
        sheet.words(x, bottom + 18, text, size=10.5, anchor="middle", colour=MUTED)
    y = top
    for quantity, rows in table.groupby("quantity", sort=False):
        y += HEAD
        sheet.words(0, y - 13, quantity, size=11, code=True, bold=True)
        for row in rows.itertuples():
            low, high = (end / row.truth_s - 1 for end in (row.low_s, row.high_s))
            colour = GOOD if row.held else BAD
            sheet.words(left, y + 4, row.op, size=11, anchor="end")
            told = f"{row.op}: {units.seconds(row.low_s)} to {units.seconds(row.high_s)}, "
            told += f"the record {units.seconds(row.truth_s)}"
            wide = max(at(high) - at(low), 3)
            sheet.box(at(low), y - 4, wide, 8, fill=colour, round_=2, told=told)
            if low < -FARTHEST:
                sheet.words(at(-FARTHEST) - 1, y + 4, "←", size=11, anchor="end")
            if high > FARTHEST:
                sheet.words(at(FARTHEST) + 1, y + 4, "→", size=11)
            y += ROW
    sheet.space(4)
