"""Which gradients a 16-bit format can hold, with a loss scale and without one."""

from collections.abc import Mapping, Sequence
from math import log10

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, MUTED, THIRD, Canvas
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units

# The powers of ten at the ends of the axis, and the room for the names of the formats.
AXIS, NAME = (-12, 6), 44.0


@drawn_from()
def gradients(table: Sequence[Row], *, op: str = "gradients small") -> str:
    """The range of fp16 and bf16 on a logarithmic axis, and where half of the gradients lie, with
    and without a loss scale.

        gradients("precision.gradients")
    """
    limits = {row["variant"]: row for row in rows.select(table, op="finfo")}
    plain, scaled = rows.select(table, op=op, variants=["fp16", "fp16, scaled"])
    lost = [units.percent(row["underflow"] / row["gradients"]) for row in (plain, scaled)]
    label = (
        f"fp16 holds numbers from {limits['fp16']['smallest_subnormal']:.0e} to "
        f"{limits['fp16']['largest']:g}. A typical gradient of {plain['typical']:.0e} is below "
        f"that: {lost[0]} become 0; times {scaled['loss_scale']:g} it is inside: {lost[1]}."
    )
    return canvas.both(lambda sheet: _range(sheet, limits, plain, scaled, lost), label)


def _range(
    sheet: Canvas, limits: Mapping[str, Row], plain: Row, scaled: Row, lost: Sequence[str]
) -> None:
    left, right = NAME, sheet.width - 12

    def at(value: float) -> float:
        share = (log10(value) - AXIS[0]) / (AXIS[1] - AXIS[0])
        return left + min(max(share, 0), 1) * (right - left)

    typical = float(plain["typical"])
    moved = typical * float(scaled["loss_scale"])
    x0, x1 = at(typical), at(moved)
    factor = f"× {scaled['loss_scale']:g}"
    sheet.line((x0, 30), (x0, 22), (x1, 22), (x1, 30), colour=GOOD, thick=1.8, arrow=True)
    sheet.words((x0 + x1) / 2, 15, f"loss scale {factor}", size=11.5, anchor="middle", colour=GOOD)
    for x, colour in ((x0, BAD), (x1, GOOD)):
        sheet.line((x, 30), (x, 104), colour=colour, thick=2)
    lanes = ("fp16", 38.0), ("bf16", 72.0)
    for name, y in lanes:
        found = limits[name]
        small, normal, large = (
            at(float(found[column]))
            for column in ("smallest_subnormal", "smallest_normal", "largest")
        )
        sheet.words(0, y + 15, name, bold=True, code=True)
        sheet.box(small, y, normal - small, 22, fill=THIRD, opacity=0.28, round_=0)
        sheet.box(normal, y, large - normal, 22, fill=GOOD, opacity=0.28, round_=0)
        if small > left + 40:
            zero = "becomes 0" if x0 - left > 66 else "→ 0"
            sheet.words(x0 - 6, y + 15, zero, size=11, colour=MUTED, anchor="end")
            fewer = "fewer digits" if normal - small > 70 else "fewer"
            sheet.words((small + normal) / 2, y + 15, fewer, size=10.5, anchor="middle")
        sheet.words((max(normal, x1) + large) / 2, y + 15, "all digits", size=11, anchor="middle")
    sheet.line((left, 104), (right, 104), colour=MUTED)
    for power in range(AXIS[0], AXIS[1] + 1, 3):
        x = at(10.0**power)
        sheet.line((x, 104), (x, 108), colour=MUTED)
        sheet.words(x, 120, _power(power), size=10.5, anchor="middle", colour=MUTED)
    sheet.words(
        (left + right) / 2,
        136,
        "size of a gradient, log axis",
        size=11,
        colour=MUTED,
        anchor="middle",
    )
    sheet.words(left, 156, f"without a scale {lost[0]} become 0", colour=BAD, bold=True)
    below = sheet.width > 500
    sheet.words(
        right if below else left,
        156 if below else 173,
        f"with it {lost[1]}",
        bold=True,
        colour=GOOD,
        anchor="end" if below else "start",
    )


def _power(exponent: int) -> str:
    digits = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}" if exponent else "1"
