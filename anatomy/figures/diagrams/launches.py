"""Two lanes over time: the host's launches above, the GPU's kernels below, loop and CUDA graph."""

from collections.abc import Mapping
from typing import Any

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import GOOD, INK, LINE, MUTED, THIRD, Canvas
from anatomy.judge import rows
from anatomy.record.showing import current, selectors
from anatomy.table import units
from anatomy.table.errors import BadParameter

LOOP, GRAPH = "eager", "graph"
LANE, BETWEEN, THIN = 14.0, 5.0, 1.5  # pixels: a lane, from lane to lane, the least of a kernel
NEEDED = ("links", "kernel_s", "enqueue_s", "median_s")


def launches(
    experiment: str,
    *,
    ops: Mapping[str, str],
    quantity: str = "step_wall",
    caption: str | None = None,
    **params: Any,
) -> str:
    """A chain of equal kernels launched one by one, and replayed as a CUDA graph: what host and GPU
    do meanwhile, on one scale for both, drawn from the medians recorded.

        launches("graph_capture.map", ops={"pointwise 1024": "short kernels"})

    Args:
        ops: Chains of the recording -> what they are called in the picture.
    """
    found = current().find(experiment, **selectors(experiment, params, None, quantity))

    def draw() -> str:
        pairs = {}
        for op, name in ops.items():
            table = rows.select(
                found.recording.rows, op=op, quantity=quantity, variants=[LOOP, GRAPH]
            )
            for row in table:
                if lacking := [each for each in NEEDED if units.missing(row.get(each))]:
                    raise BadParameter(f"{op}, {row['variant']} has no {', '.join(lacking)}.")
            pairs[name] = {row["variant"]: row for row in table}
        said = "; ".join(f"{name}: {_sentence(pair)}" for name, pair in pairs.items())
        return canvas.both(lambda sheet: _pairs(sheet, pairs), f"Lanes of CPU and GPU. {said}.")

    return framing.exhibit(found, caption, draw)


def _sentence(pair: Mapping[str, Mapping[str, Any]]) -> str:
    loop, graph = pair[LOOP], pair[GRAPH]
    each, times = (
        units.seconds(loop["kernel_s"]),
        [rows.printed(r, "median_s") for r in (loop, graph)],
    )
    return f"{loop['links']} kernels of {each} each take {times[0]} launched, {times[1]} replayed"


def _pairs(sheet: Canvas, pairs: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    left = 44.0 if sheet.width > 500 else 34.0
    _key(sheet, left)
    top = 42.0
    for name, pair in pairs.items():
        loop, graph = pair[LOOP], pair[GRAPH]
        scale = (sheet.width - left - 1) / max(loop["median_s"], graph["median_s"])
        kernel = units.seconds(loop["kernel_s"])
        sheet.words(1, top, f"{name}: {loop['links']} kernels of {kernel}", bold=True)
        top = _lanes(sheet, loop, top + 12, left, scale)
        top = _lanes(sheet, graph, top + 10, left, scale) + 28


def _key(sheet: Canvas, left: float) -> None:
    x = left
    kinds = (
        ("launch", GOOD),
        ("kernel", THIRD),
        ("GPU idle" if sheet.width < 500 else "GPU idle, waiting for a launch", None),
    )
    for name, colour in kinds:
        fill = {"fill": colour} if colour else {"edge": MUTED, "dashed": True}
        sheet.box(x, 6, 12, 10, **fill)
        x += sheet.words(x + 17, 15, name, size=11, colour=MUTED) + 36


def _lanes(sheet: Canvas, row: Mapping[str, Any], top: float, left: float, scale: float) -> float:
    """One way of calling: its two lanes and its time; returns where they end."""
    graph = row["variant"] == GRAPH
    count, period = int(row["links"]), row["median_s"]
    title = "one launch of the graph" if graph else f"{count} launches"
    time = rows.printed(row, "median_s")
    sheet.words(left, top + 10, title, size=11, colour=MUTED)
    sheet.words(sheet.width - 2, top + 10, time, anchor="end", bold=True, colour=INK)
    cpu, gpu = top + 16, top + 16 + LANE + BETWEEN
    for name, y in (("CPU", cpu), ("GPU", gpu)):
        sheet.words(1, y + 11, name, size=11, colour=MUTED)
        sheet.box(left, y, sheet.width - left - 1, LANE, fill=LINE, opacity=0.35)
    waits = row.get("paced_by") == "host"  # of launches that take the whole time
    host = period if waits else min(row["enqueue_s"], period)
    _boxes(sheet, cpu, left, host * scale, 1 if graph else count, GOOD)
    pitch = period / count * scale
    wide = min(max(row["kernel_s"] * scale, THIN), pitch * 0.94)
    if waits:
        sheet.box(left, gpu, period * scale, LANE, edge=MUTED, dashed=True, round_=0)
    for number in range(count):
        # A kernel runs once it is launched: at the end of its launch where the GPU waits for one.
        x = left + (number + 1) * pitch - wide if waits else left + number * pitch
        sheet.box(x, gpu, wide, LANE, fill=THIRD, round_=0.5)
    return gpu + LANE


def _boxes(sheet: Canvas, y: float, x: float, width: float, count: int, colour: str) -> None:
    each = width / count
    for number in range(count):
        gap = 1.0 if count > 1 and each > 3 else 0.25 if count > 1 else 0.0
        sheet.box(x + number * each, y + 2, max(each - gap, 0.75), LANE - 4, fill=colour, round_=1)
