"""The kernels of one layer on a rung of the ladder, drawn: what a rung joins, casts or speeds up.

The boxes are those of the kernels' recorded names in a forward pass; copies, which only bring a
tensor into order, are not drawn. Boxes are as wide as their words; times are the bar under them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from anatomy.chapters.ladder.shown import rungs
from anatomy.chapters.ladder.shown.drawn import EXPERIMENT, drawing, parts
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, LINE, MUTED, QUIET, THIRD, Canvas
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units

MATMUL, ATTENTION, POINTWISE, CAST = "matmul", "attention", "pointwise", "cast"
# The colours of the stacked bars, so that one colour is one thing on all pages of the ladder.
COLOURS = {MATMUL: GOOD, ATTENTION: BAD, POINTWISE: THIRD, CAST: QUIET}
PIECES = {
    "product_s": GOOD,
    "attention_s": BAD,
    "pointwise_s": THIRD,
    "other_s": QUIET,
    "gap_s": LINE,
}
TENSOR_CORES = ("TF32", "bf16", "FP8")
HEIGHT, GAP, INSET = 28.0, 4.0, 6.0  # pixels: of a kernel, between two, and beside the first
BAR = 11.0  # pixels: how high the bar of times is
NOTE = "Boxes are as wide as their words. Bars are the time of a whole step, on one scale."
UNITS, BOXES = 9.4, 12  # of the widest half: so wide, of so many boxes


class Kernel(NamedTuple):
    """A kernel, or a few of one kind: its words, what it does, its width, and its format."""

    words: str
    kind: str
    wide: float = 1.0
    bits: str = ""


NORM, GELU, SUM = (Kernel(words, POINTWISE) for words in ("norm", "GELU", "+"))
SUM_AND_NORM, TO = Kernel("+ norm", POINTWISE, 1.6), Kernel("", CAST, 0.12)
FUSED = [Kernel("fused attention", ATTENTION, 3.0, "bf16")]  # beside matmuls in FP8, too


def _unfused(bits: str) -> list[Kernel]:
    """Attention's two matmuls, in the format of all others, and what lies between them."""
    between = [Kernel(words, ATTENTION) for words in ("÷ √D", "mask")]
    softmax = Kernel("softmax", ATTENTION, 1.3)
    first, second = (Kernel(words, ATTENTION, 1.0, bits) for words in ("q·kᵀ", "·v"))
    return [first, *between, softmax, second]


def _layer(
    bits: str, attention: Sequence[Kernel], *, casts: str = "", joined: bool = False
) -> list[list[Kernel]]:
    """Both halves of a layer. `casts` names the matmuls with a cast before them; with `joined` a
    residual's sum and the norm after it are one kernel."""

    def matmul(name: str) -> list[Kernel]:
        cast = [TO] if name in casts.split() else []
        return [*cast, Kernel(name, MATMUL, 1.0, bits)]

    first = [NORM, *matmul("qkv"), *attention, *matmul("out")]
    second = [*matmul("up"), GELU, *matmul("down")]
    if joined:
        return [first, [SUM_AND_NORM, *second, SUM_AND_NORM]]
    return [[*first, SUM], [NORM, *second, SUM]]


ALL = "qkv out up down"
# Beginning of a way's name -> its layer; the first that fits.
LAYERS = {
    "0": _layer("fp32", _unfused("fp32")),
    "1 tf32": _layer("TF32", _unfused("TF32")),
    "1": _layer("bf16", _unfused("bf16"), casts=ALL),
    "2": _layer("bf16", FUSED, casts=ALL),
    "3": _layer("bf16", FUSED, casts=ALL, joined=True),
    "4 delayed": _layer("FP8", FUSED, casts="out"),
    "4 bf16": _layer("bf16", FUSED),
    "4": _layer("FP8", FUSED, casts=ALL),
    "5 fp8": _layer("FP8", FUSED, casts=ALL, joined=True),
    "5": _layer("bf16", FUSED, joined=True),
}


def layer(
    *variants: str, experiment: str = EXPERIMENT, caption: str | None = None, **params: Any
) -> str:
    """One layer's kernels on each rung, one under the other, with the recorded times of a step.

        layer("1 amp bf16", "2 amp bf16", width=1024, layers=2)

    Args:
        variants: Ways of rungs; the boxes are their rung's, the times their own.
    """

    def label(table: Sequence[Row]) -> str:
        said = "; ".join(f"{rungs.in_words(row)}: {parts(row)}" for row in table)
        return f"The kernels of one layer, forward. {said}."

    return drawing(experiment, variants, caption, params, _draw, label)


def halves(row: Row) -> list[list[Kernel]]:
    """The two halves of a layer as a way runs them."""
    name = str(row["variant"])
    return next(found for start, found in LAYERS.items() if name.startswith(start))


def _draw(sheet: Canvas, table: Sequence[Row]) -> None:
    top = 0.0
    longest = max(sum(seconds for _, seconds in rungs.pieces(row)) for row in table)
    for row in table:
        sheet.words(0, top + 14, rungs.in_words(row), bold=True, size=13)
        time = f"{rows.printed(row, 'median_s', units.PLAIN_DIGITS)} a step"
        sheet.words(sheet.width, top + 14, time, bold=True, size=13, anchor="end")
        top = sheet.paragraph(0, top + 31, sheet.width, parts(row), colour=MUTED, size=11) - 4
        if rungs.as_graph(row):
            sheet.box(0.5, top - 5, sheet.width - 1, 2 * (HEIGHT + 8) + 2, edge=INK, dashed=True)
            where = sheet.width - 10, top + HEIGHT + 26
            apart = row["variant"] == rungs.COMPILED_GRAPHS["variant"]  # both passes are graphs
            said = "one launch a pass" if apart else "one launch"
            sheet.words(*where, said, size=11, anchor="end")
        for half in halves(row):
            _kernels(sheet, half, top)
            top += HEIGHT + 8
        _times(sheet, row, top + 2, sheet.width / longest)
        top += BAR + 24
    sheet.paragraph(0, top - 2, sheet.width, NOTE, colour=MUTED, size=11)
    sheet.space(2)  # the edge of the last


def _times(sheet: Canvas, row: Row, top: float, pixels_per_s: float) -> None:
    """A step's time as a bar, in the colours of the boxes; pale is the time without a kernel."""
    x = 0.0
    for column, kind in rungs.KINDS.items():
        wide = row[column] * pixels_per_s
        told = f"{kind}: {units.seconds(row[column], most=3)}"
        sheet.box(x, top, wide, BAR, fill=PIECES[column], round_=0, told=told)
        x += wide


def _kernels(sheet: Canvas, kernels: Sequence[Kernel], top: float) -> None:
    one = (sheet.width - 2 * INSET - GAP * (BOXES - 1)) / UNITS
    x, size = INSET, 12 if sheet.width > 500 else 10
    for kernel in kernels:
        width, colour = one * kernel.wide, COLOURS[kernel.kind]
        strong = kernel.kind == CAST or kernel.bits in TENSOR_CORES
        sheet.box(x, top, width, HEIGHT, fill=colour, opacity=0.5 if strong else 0.2, edge=colour)
        middle, y = x + width / 2, top + (13 if kernel.bits else 18)
        sheet.words(middle, y, kernel.words, size=size, anchor="middle")
        if kernel.bits:
            sheet.words(middle, top + 24, kernel.bits, size=10, anchor="middle")
        x += width + GAP
