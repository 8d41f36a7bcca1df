"""What a training step holds from layer to layer: activations that pile up in the forward pass, and
gradients that replace them in the backward pass, with and without checkpoints."""

from collections.abc import Mapping, Sequence
from math import floor, log2
from typing import NamedTuple

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, LINE, MUTED, THIRD, Canvas
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units

CONTROL, CHECKPOINTED = "none", "every layer"
NEEDED = ("median_s", "peak_bytes", "activation_bytes", "total_peak_bytes")
TALL = 150.0  # pixels of the highest peak
AXIS = 48.0  # pixels of the sizes at the left
BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "tf32": 4}


class Moment(NamedTuple):
    """A part of a step: how long it is drawn, in forward passes of a layer, and what it holds."""

    what: str  # forward, again or backward
    length: float
    kept: float  # bytes of activations that wait for their backward
    again: float  # bytes of activations of the layer that is run again
    gradients: float  # bytes


@drawn_from()
def step_memory(table: Sequence[Row], *, op: str) -> str:
    """What a step holds over its course, without checkpoints and with one at every layer.

        step_memory("checkpointing.frontier", op="train C=2048 L=8 T=8x1024")

    Peaks and times are recorded, and so is what is held when the forward pass is over. What lies
    between is counted: layers are alike, and a layer's gradients are as large as its weights.
    """
    table = rows.select(table, op=op, variants=[CONTROL, CHECKPOINTED])
    pair = [next(r for r in table if r["variant"] == n) for n in (CONTROL, CHECKPOINTED)]
    if any(units.missing(row.get(column)) for row in pair for column in NEEDED):
        # The allocator of a CPU keeps no account of its memory.
        return '<p class="key">Not shown: no memory was recorded.</p>'
    label = "; ".join(f"{_title(row)}: {_said(row)}" for row in pair)
    return canvas.both(lambda sheet: _panels(sheet, pair), f"Memory of a step. {label}.")


def course(control: Row, checkpointed: Row | None = None) -> list[Moment]:
    """A step from its first layer to its last and back; with checkpoints if they have a row."""
    layers = control["depth"]
    full = control["activation_bytes"] / layers
    kept = (checkpointed or control)["activation_bytes"] / layers
    gradient = weights(control) / layers
    # A backward has two matmuls for each of the forward pass: three parts make a step.
    second = 0.0
    if checkpointed:
        second = 3 * (checkpointed["median_s"] / control["median_s"] - 1)
    moments = [Moment("forward", 1, (at + 1) * kept, 0, 0) for at in range(layers)]
    for left in range(layers, 0, -1):
        done = (layers - left) * gradient
        again = full - kept if checkpointed else 0.0
        if checkpointed:
            moments.append(Moment("again", max(second, 0.3), left * kept, again, done))
        moments.append(Moment("backward", 2, left * kept, again, done))
    return moments


def weights(row: Row) -> float:
    """Bytes of the weights: what is there besides the peak, less the input."""
    there = row["total_peak_bytes"] - row["peak_bytes"]
    return there - row["tokens"] * row["width"] * BYTES[row["dtype"]]


def _title(row: Row) -> str:
    return "keeps everything" if row["variant"] == CONTROL else "checkpoint at every layer"


def _said(row: Row, *, speed: bool = True) -> str:
    time = rows.printed(row, "median_s", units.PLAIN_DIGITS) + rows.if_wide(row, "median_s")
    compared = speed and row["variant"] != CONTROL
    more = f", {rows.speed_in_words(row, short=True)}" if compared else ""
    return f"peak {units.byte_count(row['peak_bytes'])}, {time}{more}"


def _panels(sheet: Canvas, pair: Sequence[Row]) -> None:
    control, checkpointed = pair
    courses = course(control), course(control, checkpointed)
    lengths = [sum(each.length for each in moments) for moments in courses]
    beside = sheet.width > 500
    gap = 26.0
    # One scale for both: beside each other they share the width.
    room = sheet.width - AXIS - (gap if beside else 2)
    unit = room / (sum(lengths) if beside else max(lengths))
    highest = max(row["peak_bytes"] for row in pair)
    scale = TALL / highest
    x, top = AXIS, 0.0
    for number, (row, moments) in enumerate(zip(pair, courses, strict=True)):
        colour = (BAD, GOOD)[number]
        sheet.words(x + 1, top + 13, _title(row), bold=True)
        sheet.words(x + 1, top + 31, _said(row, speed=False), colour=colour, bold=True)
        ground = top + 46 + TALL
        end = x + 1 + unit * lengths[number]
        _sizes(sheet, (x + 1, end), ground, scale, highest, named=x == AXIS)
        _course(sheet, x + 1, ground, unit, scale, moments)
        peak = ground - scale * row["peak_bytes"]
        sheet.line((x + 1, peak), (end, peak), colour=colour, thick=1.6, dashed=True)
        if beside:
            x = end + gap
        else:
            top = sheet.height + 16
    _key(sheet)


def _sizes(
    sheet: Canvas,
    ends: tuple[float, float],
    ground: float,
    scale: float,
    highest: float,
    *,
    named: bool,
) -> None:
    """Lines at four to eight round sizes, with their names at the left if they are `named`."""
    step = 2 ** (floor(log2(highest)) - 2)
    for size in range(0, floor(highest) + 1, step):
        y = ground - scale * size
        sheet.line((ends[0], y), (ends[1], y), colour=LINE, thick=1)
        if named:
            number, unit = units.byte_count(size).split()
            text = f"{float(number):g} {unit}" if size else "0"
            sheet.words(ends[0] - 5, y + 4, text, size=11, colour=MUTED, anchor="end")


def _course(
    sheet: Canvas, x: float, ground: float, unit: float, scale: float, moments: Sequence[Moment]
) -> None:
    turn = x
    for each in moments:
        wide, y = each.length * unit, ground
        for size, fill, see in (
            (each.gradients, MUTED, 0.4),
            (each.kept, GOOD, 0.55),
            (each.again, THIRD, 0.85 if each.what == "again" else 0.4),
        ):
            if size:
                y -= size * scale
                sheet.box(x, y, wide - 0.8, size * scale, fill=fill, opacity=see, round_=0)
        x += wide
        turn = x if each.what == "forward" else turn
    start = x - unit * sum(each.length for each in moments)
    sheet.line((start, ground), (x, ground), colour=MUTED)
    sheet.line((turn, ground - TALL - 4), (turn, ground + 4), colour=MUTED, dashed=True)
    sheet.words((start + turn) / 2, ground + 15, "forward", size=11, colour=MUTED, anchor="middle")
    sheet.words((turn + x) / 2, ground + 15, "backward", size=11, colour=MUTED, anchor="middle")


KEY: Mapping[str, str] = {
    "activations kept": GOOD,
    "run again for one layer": THIRD,
    "gradients of weights": MUTED,
}


def _key(sheet: Canvas) -> None:
    x, y = sheet.key(sheet.height + 18, KEY, opacity=0.7)
    words = "recorded peak"
    if x + 26 + canvas.wide(words, canvas.KEY) > sheet.width:
        x, y = 1.0, y + 18
    sheet.line((x, y - 4), (x + 18, y - 4), colour=MUTED, thick=1.6, dashed=True)
    sheet.words(x + 24, y, words, size=canvas.KEY, colour=MUTED)
