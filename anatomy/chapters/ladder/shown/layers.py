"""The kernels of one layer on a rung of the ladder, drawn: what a rung joins, casts or speeds up.

The boxes are those of the kernels' recorded names in a forward pass; copies, which only bring a
tensor into order, are not drawn. All boxes are equally wide; times are the bar under them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from anatomy.chapters.ladder.shown import rungs
from anatomy.chapters.ladder.shown.drawn import EXPERIMENT, WORTH_SAYING, drawing, parts
from anatomy.figures.diagrams.canvas import (
    BAD,
    FOURTH,
    GOOD,
    INK,
    LINE,
    MUTED,
    QUIET,
    THIRD,
    Canvas,
)
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
    "other_s": FOURTH,
    "gap_s": LINE,
}
TENSOR_CORES = ("TF32", "bf16", "FP8")
HEIGHT, GAP, INSET = 28.0, 4.0, 6.0  # pixels: of a kernel, between two, and beside the first
SLIVER = 8.0  # pixels: a cast, in the cell of the matmul that it is for
BAR = 13.0  # pixels: how high the bar of times is
NOTE = (
    "A box is a kernel, however long it runs. Bars, on one scale, are a whole step: forward and "
    "backward pass of {layers:g} layers, {batch:g} × {sequence:g} tokens, no optimizer."
)
DESK, CELLS = 500, {True: 9, False: 5}  # a wider sheet is a desk's; boxes in a line, by that


class Kernel(NamedTuple):
    """A kernel, or a few of one kind: its words, what it does, its format, and whether what it
    multiplies is cast first."""

    words: str
    kind: str
    bits: str = ""
    cast: bool = False


NORM, GELU, SUM, SUM_AND_NORM = (
    Kernel(words, POINTWISE) for words in ("norm", "GELU", "+", "+ norm")
)
FUSED = [Kernel("SDPA", ATTENTION, "bf16")]  # in 16 bits beside matmuls in FP8, too


def _unfused(bits: str) -> list[Kernel]:
    """Attention's two matmuls, in the format of all others, and what lies between them."""
    between = [Kernel(words, ATTENTION) for words in ("÷ √D", "mask", "softmax")]
    first, second = (Kernel(words, ATTENTION, bits) for words in ("q·kᵀ", "·v"))
    return [first, *between, second]


def _layer(
    bits: str, attention: Sequence[Kernel], *, casts: str = "", joined: bool = False
) -> list[list[Kernel]]:
    """Both halves of a layer. `casts` names the matmuls with a cast before them; with `joined` a
    residual's sum and the norm after it are one kernel."""

    def matmul(name: str) -> Kernel:
        return Kernel(name, MATMUL, bits, name in casts.split())

    first = [NORM, matmul("qkv"), *attention, matmul("out")]
    second = [matmul("up"), GELU, matmul("down")]
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
        top = sheet.paragraph(0, top + 31, sheet.width, _said(row), colour=MUTED, size=11) - 4
        bottom = top
        for half in halves(row):
            bottom = _kernels(sheet, half, bottom)
        if rungs.as_graph(row):
            sheet.box(0.5, top - 5, sheet.width - 1, bottom - top + 2, edge=INK, dashed=True)
        top = _times(sheet, row, bottom + 2, sheet.width / longest) + 24
    sheet.paragraph(0, top - 2, sheet.width, NOTE.format(**table[0]), colour=MUTED, size=11)
    sheet.space(2)  # the edge of the last


def _said(row: Row) -> str:
    """How many kernels a step has, and whether they are launched together."""
    kernels = f"{row['kernels_per_call']:g} kernels a step"
    if not rungs.as_graph(row):
        return kernels
    apart = row["variant"] == rungs.COMPILED_GRAPHS["variant"]  # both passes are graphs
    return f"{kernels}, {'one launch a pass' if apart else 'one launch'}"


def _times(sheet: Canvas, row: Row, top: float, pixels_per_s: float) -> float:
    """A step's time as a bar, in the colours of the boxes. Its pieces are named in a key under it,
    the short ones too; returns the key's last line."""
    x, key = 0.0, {}
    for column, kind in rungs.KINDS.items():
        across = row[column] * pixels_per_s
        time = units.seconds(row[column], most=3)
        sheet.box(x, top, across, BAR, fill=PIECES[column], round_=0, told=f"{kind}: {time}")
        if row[column] > WORTH_SAYING * row["median_s"]:
            key[f"{kind} {time}"] = PIECES[column]
        x += across
    return sheet.key(top + BAR + 16, key)[1]


def _kernels(sheet: Canvas, kernels: Sequence[Kernel], top: float) -> float:
    """Boxes from left to right in as many lines as they need; returns where the next begins."""
    cells = CELLS[sheet.width > DESK]
    across = (sheet.width - 2 * INSET - GAP * (cells - 1)) / cells
    for at, kernel in enumerate(kernels):
        x, y = INSET + at % cells * (across + GAP), top + at // cells * (HEIGHT + 8)
        beside = SLIVER + GAP if kernel.cast else 0.0
        if kernel.cast:
            _box(sheet, x, y, SLIVER, COLOURS[CAST], strong=True)
        strong = kernel.bits in TENSOR_CORES
        _box(sheet, x + beside, y, across - beside, COLOURS[kernel.kind], strong=strong)
        middle = x + (across + beside) / 2
        sheet.words(middle, y + (13 if kernel.bits else 18), kernel.words, anchor="middle")
        if kernel.bits:
            sheet.words(middle, y + 24, kernel.bits, size=10, anchor="middle")
    return y + HEIGHT + 8


def _box(sheet: Canvas, x: float, top: float, wide: float, colour: str, *, strong: bool) -> None:
    sheet.box(x, top, wide, HEIGHT, fill=colour, opacity=0.5 if strong else 0.2, edge=colour)
