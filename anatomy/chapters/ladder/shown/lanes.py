"""The host and the GPU side by side during one step, drawn: who waits for whom."""

from collections.abc import Sequence
from typing import Any

from anatomy.chapters.ladder.shown import rungs
from anatomy.chapters.ladder.shown.drawn import EXPERIMENT, drawing
from anatomy.figures.diagrams.canvas import FOURTH, GOOD, LINE, MUTED, QUIET, Canvas
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units

MOST_DRAWN, LEAST = 48, 4.0  # kernels of a lane, and pixels of one with its gap
NAMES, HIGH = 38.0, 17.0  # pixels: beside the lanes, and of a lane


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
    scale = (sheet.width - NAMES - 2) / max(row["median_s"] for row in table)
    top = 0.0
    for row in table:
        sheet.words(0, top + 14, rungs.in_words(row), bold=True)
        time = f"{rows.printed(row, 'median_s', units.PLAIN_DIGITS)} a step"
        sheet.words(sheet.width, top + 14, time, bold=True, anchor="end")
        end = NAMES + row["median_s"] * scale
        asks = min(row["enqueue_s"], row["median_s"]) * scale
        sheet.words(0, top + 36, "CPU", colour=MUTED, size=11)
        sheet.box(NAMES, top + 24, max(asks, 2), HIGH, fill=FOURTH, opacity=0.45)
        sheet.words(0, top + 60, "GPU", colour=MUTED, size=11)
        sheet.box(NAMES, top + 48, end - NAMES, HIGH, fill=LINE)
        _busy(sheet, row, end, top + 48)
        sheet.line((end, top + 22), (end, top + 68), colour=QUIET, thick=1.5)
        room = sheet.width - NAMES
        sheet.paragraph(NAMES, top + 80, room, _said(row), colour=MUTED, size=11)
        top = sheet.height + 10


def _busy(sheet: Canvas, row: Row, end: float, top: float) -> None:
    """The GPU's kernels, spread evenly over the step, as many as can be told apart."""
    share = min(row["busy_s"] / row["median_s"], 1.0)
    count = max(1, min(int(row["kernels_per_call"]), MOST_DRAWN, int((end - NAMES) / LEAST)))
    each = (end - NAMES) / count
    for number in range(count):
        x = NAMES + number * each
        sheet.box(x, top, each * share, HIGH, fill=GOOD, opacity=0.8, round_=0)


def _said(row: Row) -> str:
    asks = f"for {units.seconds(row['enqueue_s'], most=3)}"
    asks = "all the time" if row["enqueue_s"] >= row["median_s"] else asks
    ran = f"{row['kernels_per_call']:g} kernels run for {units.seconds(row['busy_s'], most=3)}"
    return f"the CPU launches {asks}; {ran}"
