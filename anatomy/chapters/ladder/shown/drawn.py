"""A drawing of some ways of the ladder's rungs, framed as every figure of a page."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from anatomy.chapters.ladder.shown import rungs
from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import Canvas
from anatomy.judge.rows import Row
from anatomy.record.showing import current, selectors
from anatomy.table import units

EXPERIMENT = "ladder.training"
WORTH_SAYING = 0.01  # share of a step


def drawing(
    experiment: str,
    variants: Sequence[str],
    caption: str | None,
    params: Mapping[str, Any],
    draw: Callable[[Canvas, Sequence[Row]], None],
    label: Callable[[Sequence[Row]], str],
) -> str:
    """What `draw` puts on a sheet for those of the variants that were profiled, under a caption;
    `label` says the same to who can't see it."""
    showing = current()
    found = showing.find(experiment, **selectors(experiment, dict(params), None, None))

    def body() -> str:
        table = rungs.of(found.recording.rows, None, variants)
        there = [row for row in table if rungs.pieces(row)]
        return canvas.both(lambda sheet: draw(sheet, there), label(there)) if there else ""

    return framing.exhibit(found, caption, body)


def parts(row: Row) -> str:
    """What a step's time is made of: `matmuls 1.63 ms, attention 4.24 ms; 146 kernels a step`."""
    found = [
        f"{kind} {units.seconds(seconds, most=3)}"
        for kind, seconds in rungs.pieces(row)
        if seconds > WORTH_SAYING * row["median_s"]
    ]
    return f"{', '.join(found)}; {row['kernels_per_call']:g} kernels"
