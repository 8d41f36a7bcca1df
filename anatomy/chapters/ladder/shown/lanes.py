"""The host and the GPU side by side during one step, drawn: who waits for whom."""

from collections.abc import Sequence
from typing import Any

from anatomy.chapters.ladder.shown import rungs
from anatomy.chapters.ladder.shown.drawn import EXPERIMENT, drawing
from anatomy.figures.diagrams.canvas import MUTED, Canvas
from anatomy.figures.diagrams.lanes import LANE, Lanes
from anatomy.judge import pace, rows
from anatomy.judge.rows import Row
from anatomy.table import units

NOTE = "A stroke is a kernel or several, drawn evenly: when each ran is not recorded."


def lanes(
    *variants: str, experiment: str = EXPERIMENT, caption: str | None = None, **params: Any
) -> str:
    """The host and the GPU during one step of each way, on one scale of time.

        lanes("4 current", "4 current in a graph", width=1024, layers=2)

    How long each works is recorded; how its kernels are spread over the step is not, and they are
    drawn evenly.
    """

    def label(table: Sequence[Row]) -> str:
        said = "; ".join(f"{rungs.in_words(row)}: {_said(row)}" for row in table)
        paced = " (host-paced)" if any(row.get("paced_by") == "host" for row in table) else ""
        return f"Host and GPU during one step. {said}{paced}."

    return drawing(experiment, variants, caption, params, _draw, label)


def _draw(sheet: Canvas, table: Sequence[Row]) -> None:
    lanes = Lanes(sheet, max(row["median_s"] for row in table))
    for row in table:
        top = sheet.height + (20 if sheet.height else 14)
        sheet.words(0, top, rungs.in_words(row), bold=True)
        time = f"{rows.printed(row, 'median_s', units.PLAIN_DIGITS)} a {rungs.timed(row)}"
        sheet.words(sheet.width, top, time, bold=True, anchor="end")
        y = top + 9
        lanes.step(y, row)
        room = sheet.width - lanes.left
        sheet.paragraph(lanes.left, y + 2 * LANE + 11, room, _said(row), colour=MUTED, size=11)
    lanes.axis(sheet.height + 6)
    sheet.paragraph(0, sheet.height + 16, sheet.width, NOTE, colour=MUTED, size=11)
    sheet.space(2)


def _said(row: Row) -> str:
    asks = f"for {units.seconds(row['enqueue_s'], most=3)}"
    asks += f", longer than the {rungs.timed(row)}" if row["enqueue_s"] > row["median_s"] else ""
    ran = f"{row['kernels_per_call']:g} kernels run for {units.seconds(row['busy_s'], most=3)}"
    bound = pace.bound_in_words(row)
    return f"{f'{bound}: ' if bound else ''}the CPU is busy {asks}; {ran}"
