"""Attention by hand and fused: what goes through memory, and what stays in a tile on the chip."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, LINE, MUTED, PAPER, QUIET, Canvas
from anatomy.judge import limits, rows
from anatomy.record.showing import current, selectors
from anatomy.table import units

# Pixels: a panel's width, the height of the band of the chip, of the way, and of memory's band.
PANEL, CHIP, WAY, HBM = 328.0, 98.0, 30.0, 58.0
STEPS = ("q @ kᵀ", "× scale", "softmax", "@ v")  # of attention by hand, a kernel each
GRID = 8  # tiles across that are drawn
WAYS = ("manual", "default")  # by hand, and fused


class Way(NamedTuple):
    """One way to compute attention, as it is written over and under its panel."""

    title: str
    time: str
    traffic: str
    least: str  # what its bytes and its operations take at the machine's best rates
    peak: str


def tiles(experiment: str, *, op: str, caption: str | None = None, **params: Any) -> str:
    """Attention by hand beside fused attention: kernels, arrows to HBM and back, time and memory.

        tiles("attention.backends", op="forward N=8192")

    The scores are heads × N × N numbers; by hand, each of the four steps but the last writes them,
    and each but the first reads them.
    """
    showing = current()
    found = showing.find(experiment, **selectors(experiment, params, op, None))
    ceilings = showing.ceilings_of(found)

    def draw() -> str:
        table = rows.select(found.recording.rows, op=op, variants=WAYS)
        apart, one = (next(r for r in table if r["variant"] == name) for name in WAYS)
        scores = score_bytes(apart, found.params["head_width"])
        passes = 2 * (len(STEPS) - 1)
        ways = (
            _way(
                "Unfused: four kernels",
                units.seconds(apart["median_s"], most=3),
                f"scores: {passes} × {units.byte_count(scores)} through HBM",
                apart | {"bytes": apart["bytes"] + passes * scores},
                ceilings,
            ),
            _way(
                "Fused: one kernel",
                f"{units.seconds(one['median_s'], most=3)}, {rows.speed_in_words(one, short=True)}",
                f"q, k, v, result: {units.byte_count(one['bytes'])} in all",
                one,
                ceilings,
            ),
        )
        label = "; ".join(f"{w.title}: {w.time}, {w.traffic}, {w.least}, {w.peak}" for w in ways)
        return canvas.both(lambda sheet: _panels(sheet, ways), f"{label}.")

    return framing.exhibit(found, caption, draw)


def _way(
    title: str, time: str, traffic: str, row: Mapping[str, Any], ceilings: limits.Ceilings | None
) -> Way:
    bound = limits.bound(row.get("flops"), row["bytes"], ceilings, row.get("limit"))
    least = ""
    if bound:
        memory, compute = (units.seconds(s, most=2) for s in (bound.memory_s, bound.compute_s))
        least = f"at best {memory} for the bytes, {compute} for the FLOPs"
    return Way(title, time, traffic, least, f"peak memory {rows.printed(row, 'peak_bytes', 3)}")


def score_bytes(row: Mapping[str, Any], head_width: int) -> int:
    """Bytes of the scores of all heads, N × N numbers each, in the format of q, k, v and the
    result, which are N × head_width each: those four are the `bytes` of a forward row."""
    return row["bytes"] * row["sequence"] // (4 * head_width)


def _panels(sheet: Canvas, ways: tuple[Way, Way]) -> None:
    beside = sheet.width > 2 * PANEL
    for number, (way, inside) in enumerate(zip(ways, (_by_hand, _fused), strict=True)):
        x = number * (sheet.width - PANEL) if beside else (sheet.width - PANEL) / 2
        top = 0.0 if beside or not number else sheet.height + 22
        colour = (BAD, GOOD)[number]
        sheet.words(x, top + 13, way.title, bold=True)
        sheet.words(x + PANEL, top + 13, way.time, colour=colour, bold=True, anchor="end")
        _bands(sheet, x, top + 22)
        inside(sheet, x, top + 22, colour)
        under = top + 22 + CHIP + WAY + HBM + 17
        sheet.words(x, under, way.traffic, colour=colour, size=12, bold=True)
        sheet.words(x, under + 17, way.least, colour=MUTED, size=12)
        sheet.words(x, under + 34, way.peak, colour=MUTED, size=12)


def _bands(sheet: Canvas, x: float, y: float) -> None:
    """The chip above, memory below."""
    bands = (y, CHIP, y + 14, "SMs, on the chip"), (y + CHIP + WAY, HBM, y + CHIP + WAY + 53, "HBM")
    for top, height, line, name in bands:
        sheet.box(x, top, PANEL, height, fill=LINE, opacity=0.45, round_=5)
        sheet.words(x + PANEL / 2, line, name, colour=MUTED, size=11, anchor="middle")


def _by_hand(sheet: Canvas, x: float, y: float, colour: str) -> None:
    """Four kernels, and between each two the whole of the scores in memory."""
    wide, tall, side = 66.0, 30.0, 32.0
    step = PANEL / len(STEPS)
    bottom, memory = y + 60, y + CHIP + WAY + 6
    for number, name in enumerate(STEPS):
        middle = x + (number + 0.5) * step
        sheet.box(middle - wide / 2, bottom - tall, wide, tall, fill=PAPER, edge=QUIET, round_=4)
        sheet.words(middle, bottom - tall / 2 + 4, name, size=11.5, anchor="middle", code=True)
        if number == len(STEPS) - 1:
            continue
        square = middle + step / 2
        sheet.box(square - side / 2, memory, side, side, fill=colour, opacity=0.3, edge=colour)
        sheet.words(square, memory + 14, "N", size=10, anchor="middle")
        sheet.words(square, memory + 26, "× N", size=10, anchor="middle")
        write = (middle + 10, bottom + 2), (square - 7, memory - 2)
        read = (square + 7, memory - 2), (middle + step - 10, bottom + 2)
        for way in (write, read):
            sheet.line(*way, colour=colour, thick=2.6, arrow=True)
    names = (("q, k", x + 14, True), ("v", x + PANEL - 36, True), ("out", x + PANEL - 12, False))
    _operands(sheet, names, memory, bottom + 2)


def _fused(sheet: Canvas, x: float, y: float, colour: str) -> None:
    """One kernel, which goes over the scores tile by tile and keeps one of them."""
    cell, left, top = 8.5, x + 36.0, y + 21
    bottom, memory = y + CHIP - 6, y + CHIP + WAY + 6
    sheet.box(x + 8, y + 18, PANEL - 16, CHIP - 24, fill=PAPER, edge=QUIET, round_=4)
    for across in range(GRID):
        for down in range(GRID):
            now, done = (across, down) == (4, 3), down < 3 or (down == 3 and across < 4)
            fill = colour if now else QUIET if done else "none"
            at = left + across * cell, top + down * cell
            shade = 1.0 if now else 0.45
            sheet.box(*at, cell - 1.5, cell - 1.5, fill=fill, opacity=shade, edge=QUIET, round_=1)
    tile = left + 4 * cell + cell, top + 3.5 * cell
    sheet.line((tile[0] + 44, tile[1] - 7), (tile[0] + 2, tile[1] - 1), colour=colour, thick=1.4)
    sheet.paragraph(
        tile[0] + 49,
        top + 13,
        165,
        "one tile of the N × N scores at a time, in registers and shared memory",
        size=11.5,
        colour=INK,
    )
    names = (("q", x + 36, True), ("k", x + 64, True), ("v", x + 92, True), ("out", x + 124, False))
    _operands(sheet, names, memory, bottom + 4, colour)
    sheet.words(x + 200, memory + 20, "no scores here", size=11.5, colour=MUTED)


def _operands(sheet: Canvas, names, memory: float, chip: float, colour: str = MUTED) -> None:
    """q, k, v and the result, N × D numbers each: thin beside the scores."""
    for name, x, read in names:
        sheet.box(x - 4, memory, 8, 32, fill=QUIET, opacity=0.55)
        sheet.words(x, memory + 44, name, size=10.5, anchor="middle", code=True)
        ends = ((x, memory - 2), (x, chip)) if read else ((x, chip), (x, memory - 2))
        sheet.line(*ends, colour=colour, thick=1.3, arrow=True)
