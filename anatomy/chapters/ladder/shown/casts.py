"""How a tensor gets into FP8, drawn: where its scale comes from, and how often it is read."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from anatomy.chapters.ladder.shown import rungs
from anatomy.chapters.ladder.shown.drawn import EXPERIMENT, drawing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import GOOD, LINE, MUTED, QUIET, THIRD, Canvas
from anatomy.judge.rows import Row
from anatomy.table import units

ARROW = 16.0  # pixels between two stages
HIGH = {True: 38.0, False: 58.0}  # pixels of a stage, on a desk and on a phone


class Stage(NamedTuple):
    """What is done to the tensor, whether it is read from HBM for that, and what else it takes."""

    words: str
    reads: bool = True
    fill: str = THIRD
    takes: str = ""


MATMUL = Stage("FP8 matmul", reads=False, fill=GOOD)
# The word of a way that names its recipe -> its stages.
RECIPES = {
    "current": [Stage("find the largest"), Stage("scale and cast"), MATMUL],
    "delayed": [
        Stage("scale, cast, note the largest", takes="largest of the steps before"),
        MATMUL,
    ],
    "block": [Stage("scale and cast block by block"), MATMUL],
}


def casts(
    *variants: str, experiment: str = EXPERIMENT, caption: str | None = None, **params: Any
) -> str:
    """The stages that a tensor goes through before an FP8 matmul, by recipe, with what the recorded
    step takes.

        casts("4 current", "4 delayed", "4 block", width=4096, layers=2, budget_s=30)

    Args:
        variants: Ways that have the name of a recipe among their words.
    """

    def label(table: Sequence[Row]) -> str:
        said = (f"{row['variant']}: {_order(row)}, {_said(row)}" for row in table)
        return f"How a tensor gets into FP8. {'; '.join(said)}."

    return drawing(experiment, variants, caption, params, _draw, label)


def stages(row: Row) -> list[Stage]:
    """The stages of a way's recipe."""
    return next(found for name, found in RECIPES.items() if name in str(row["variant"]).split())


def _draw(sheet: Canvas, table: Sequence[Row]) -> None:
    desk, top = sheet.width > 500, 0.0
    high = HIGH[desk]
    for row in table:
        recipe = next(name for name in RECIPES if name in str(row["variant"]).split())
        sheet.words(0, top + 14, f"{recipe} scaling", bold=True)
        if desk:
            sheet.words(sheet.width, top + 14, _said(row), colour=MUTED, size=11, anchor="end")
        else:
            top += 15
            sheet.words(0, top + 14, _said(row), colour=MUTED, size=11)
        found = [Stage("16-bit tensor in HBM", reads=False, fill=LINE), *stages(row)]
        wide = (sheet.width - 2 - 3 * ARROW) / 4
        x, top = 1.0, top + 24
        for at, stage in enumerate(found):
            if at:
                y = top + high / 2
                sheet.line((x - ARROW + 2, y), (x - 2, y), arrow=True)
            sheet.box(x, top, wide, high, fill=stage.fill, opacity=0.3, edge=stage.fill)
            size = 12 if desk else 10
            line = top + (24 if canvas.wide(stage.words, size) < wide - 8 else 16)
            sheet.paragraph(x + wide / 2, line, wide - 8, stage.words, size=size, anchor="middle")
            if stage.reads:
                told = "reads the tensor" if desk else "reads it"
                where = x + wide / 2, top + high + 13
                sheet.words(*where, told, size=10, anchor="middle", colour=MUTED)
            if stage.takes:  # beside the tensor: a box under the next stages, and an arrow from it
                side, into, y = x + wide + ARROW, x + wide - 6, top + high + 18
                across = canvas.wide(stage.takes, 10) + 12
                sheet.box(side, y - 9, across, 18, fill=QUIET, opacity=0.3, edge=QUIET)
                sheet.words(side + across / 2, y + 4, stage.takes, size=10, anchor="middle")
                sheet.line((side, y), (into, y), (into, top + high + 2), arrow=True)
            x += wide + ARROW
        top += high + (38 if any(stage.takes for stage in found) else 30)


def _order(row: Row) -> str:
    found = (f"{each.words}{each.takes and f' by the {each.takes}'}" for each in stages(row))
    return ", then ".join(found)


def _said(row: Row) -> str:
    """What a step takes and how far its gradients stray."""
    error = row.get("gradient_error")
    stray = "" if units.missing(error) else f", gradients off by {units.percent(error, 2)}"
    pointwise = dict(rungs.pieces(row)).get(rungs.KINDS["pointwise_s"], 0.0)
    return f"pointwise {units.seconds(pointwise, most=3)} a step{stray}"
