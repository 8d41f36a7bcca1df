"""Why compiling helps one step and not another: what the CPU and the GPU do in it, side by side."""

from collections.abc import Mapping, Sequence

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import MUTED, Canvas
from anatomy.figures.diagrams.lanes import LANE, Lanes
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units

NEEDED = ("median_s", "enqueue_s", "busy_s", "kernels_per_call")


@drawn_from()
def pace(table: Sequence[Row], *, shown: Mapping[str, Sequence[str]]) -> str:
    """The host and the GPU during one step of each cell, on one scale of time.

        pace("compilation.map", shown={"training C=256 T=256": ["eager", "compiled"]})

    How long each works is recorded; when each kernel ran is not, and they are drawn evenly.

    Args:
        shown: Cells of the recording -> the variants that are drawn of each.
    """
    steps = [
        row
        for op, variants in shown.items()
        for row in rows.select(table, op=op, quantity="step_wall", variants=variants)
    ]
    if any(units.missing(row.get(each)) for row in steps for each in NEEDED):
        # A profiler reads no kernels of a CPU, nor those of a CUDA graph.
        return '<p class="key">Not shown: the time of the kernels was not recorded.</p>'
    label = "; ".join(f"{_title(row)}: {_time(row)}, {_said(row)}" for row in steps)
    return canvas.both(lambda sheet: _draw(sheet, steps), f"CPU and GPU during one step. {label}.")


def _draw(sheet: Canvas, steps: Sequence[Row]) -> None:
    lanes = Lanes(sheet, max(row["median_s"] for row in steps))
    for row in steps:
        top = sheet.height + (18 if sheet.height else 14)
        sheet.words(0, top, _title(row), bold=True)
        sheet.words(sheet.width, top, _time(row), bold=True, anchor="end")
        y = top + 8
        lanes.step(y, row)
        sheet.words(lanes.left, y + 2 * LANE + 11, _said(row), colour=MUTED, size=11)
    lanes.axis(sheet.height + 6)
    sheet.space(2)


def _title(row: Row) -> str:
    return f"C = {row['width']}, {row['tokens']} tokens, {row['variant']}"


def _time(row: Row) -> str:
    return rows.printed(row, "median_s", units.PLAIN_DIGITS) + rows.if_wide(row, "median_s")


def _said(row: Row) -> str:
    asks, ran = (units.seconds(row[name], most=3) for name in ("enqueue_s", "busy_s"))
    return f"CPU busy for {asks}; {row['kernels_per_call']:g} kernels run for {ran}"
