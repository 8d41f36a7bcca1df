"""Number formats bit by bit, and how fast a matmul is in each."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import GOOD, MUTED, QUIET, THIRD, Canvas
from anatomy.figures.framing import drawn_from
from anatomy.judge.rows import Row
from anatomy.table import units


class Format(NamedTuple):
    """A floating-point format: how its bits are shared out."""

    name: str
    exponent: int
    mantissa: int
    unread: int = 0  # bits in memory that a matmul in this format does not look at


# IEEE 754 (fp32, fp16); bfloat16 and TF32: NVIDIA, A100 whitepaper; e4m3: Micikevicius et al. 2022,
# arXiv:2209.05433.
FORMATS = (
    Format("fp32", 8, 23),
    Format("tf32", 8, 10, 13),
    Format("bf16", 8, 7),
    Format("fp16", 5, 10),
    Format("fp8", 4, 3),
)
# Pixels: a line, the name before it, the room behind it for a time, and the height of a bit.
LANE, NAME, SAID, CELL = 30.0, 44.0, 70.0, 17.0


@drawn_from()
def formats(table: Sequence[Row], *, size: str) -> str:
    """Each format's bits, and the time of one matmul with factors in it.

        formats("limits.ceilings", size="8192 x 8192 x 8192")

    Args:
        size: The matmul, as the variants of `limits.ceilings` begin. Where there are several of a
            format, the fastest is shown.
    """
    times = {each.name: _time(table, each.name, size) for each in FORMATS}
    parts = (
        f"{f.name}: {f.exponent} bits of exponent, {f.mantissa} of mantissa, "
        f"{units.seconds(times[f.name], most=3)}"
        for f in FORMATS
    )
    label = f"Formats by bits, and the time of one matmul: {'; '.join(parts)}."
    return canvas.both(lambda sheet: _bits(sheet, times), label)


def _time(table: Sequence[Row], name: str, size: str) -> float | None:
    there = [
        row["median_s"]
        for row in table
        if row.get("op") == f"matmul {name}"
        and str(row.get("variant")).startswith(size)
        and row.get("role") != "again"
        and not units.missing(row.get("median_s"))
    ]
    return min(there, default=None)


def _bits(sheet: Canvas, times: Mapping[str, float | None]) -> None:
    desk = sheet.width > 500
    cell = (sheet.width - NAME - SAID) / 32
    x = NAME
    key = ("sign", "", QUIET), ("exponent", ": range", THIRD), ("mantissa", ": digits", GOOD)
    for name, more, colour in key:
        sheet.box(x, 3, 10, 10, fill=colour, opacity=0.55)
        x += 32 + sheet.words(x + 15, 12, name + (more if desk else ""), size=11.5, colour=MUTED)
    sheet.words(sheet.width, 12, "one matmul", size=11.5, colour=MUTED, anchor="end")
    for number, each in enumerate(FORMATS):
        y = 20.0 + number * LANE
        sheet.words(0, y + 13, each.name, bold=True, code=True)
        kinds = [QUIET] + [THIRD] * each.exponent + [GOOD] * each.mantissa + [None] * each.unread
        for place, colour in enumerate(kinds):
            at, edge = NAME + place * cell, "none" if colour else QUIET
            look = {"fill": colour or "none", "opacity": 0.55, "edge": edge, "dashed": not colour}
            sheet.box(at + 0.6, y, cell - 1.2, CELL, round_=1.5, **look)
        if (time := times[each.name]) is not None:
            said = units.seconds(time, most=3)
            sheet.words(sheet.width, y + 13, said, anchor="end", bold=True)
