"""A large copy to the GPU from pageable and from pinned memory: its way, and who carries it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, MUTED, QUIET, THIRD, Canvas
from anatomy.figures.diagrams.lanes import LANE, Lanes
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units

SHORT = 500  # pixels: a narrower sheet has room for short words
# Pieces that the copy through the staging buffer is drawn in; how many there are is not documented.
PIECES = 10
PAGEABLE, PINNED = "pageable", "pinned, non_blocking"
STAGE = 24.0  # pixels: the height of a memory on the way


class Copy(NamedTuple):
    """Recorded seconds of one way of copying."""

    returns: float  # until the line returns
    lasts: float  # until the bytes are on the GPU


@drawn_from()
def staging(table: Sequence[Row], *, op: str) -> str:
    """The way of a copy to the GPU from pageable and from pinned memory, and what the CPU and the
    copy engine do meanwhile, to scale.

        staging("transfers.to_device", op="to the GPU 256 MiB")

    Args:
        experiment: One with rows as `transfers.to_device` has them.
        op: Direction and size.
    """
    pageable, pinned = recorded(table, op)
    label = (
        f"A copy {op}. From pageable memory the CPU copies pieces into a pinned staging "
        "buffer, from which the copy engine fetches them, and is busy throughout: "
        f"{_time(pageable.lasts)}. From pinned memory the copy engine reads by itself: "
        f"{_time(pinned.lasts)}, and the CPU goes on after {_time(pinned.returns)}."
    )
    return canvas.both(lambda sheet: _drawn(sheet, pageable, pinned), label)


def recorded(table: Sequence[Row], op: str) -> tuple[Copy, Copy]:
    """The copy from pageable memory that waits, and the one from pinned memory that does not."""

    def one(variant: str, quantity: str) -> float:
        return rows.select(table, op=op, quantity=quantity, variants=[variant])[0]["median_s"]

    pageable, pinned = (
        Copy(one(variant, "host_enqueue"), one(variant, "step_wall"))
        for variant in (PAGEABLE, PINNED)
    )
    return pageable, pinned


def _time(seconds: float) -> str:
    return units.seconds(seconds, most=2)


def _drawn(sheet: Canvas, pageable: Copy, pinned: Copy) -> None:
    desk = sheet.width > SHORT
    lanes = Lanes(sheet, max(pageable.lasts, pinned.lasts) * 1.02, left=92 if desk else 46)
    engine = "copy engine" if desk else "copy"

    sheet.words(1, 12, "large.to(gpu)", bold=True, code=True)
    said = "CPU busy for all of it" if desk else "CPU busy"
    sheet.words(sheet.width - 2, 12, f"{_time(pageable.lasts)}, {said}", **_beside(BAD))
    y = _way(sheet, 22, ["pageable memory", "staging buffer", "GPU memory"], ["CPU", "copy engine"])
    lanes.lane(y, "CPU")
    lanes.lane(y + LANE, engine)
    each, fetched = pageable.lasts / PIECES, pinned.lasts / PIECES
    for piece in range(PIECES):
        end = (piece + 1) * each
        # The last piece too is fetched before the copy is done.
        lanes.box(y, piece * each, end - fetched, BAD)
        lanes.box(y + LANE, end - fetched, end, THIRD)
    y += 2 * LANE + 20

    sheet.words(1, y, "pinned.to(gpu, non_blocking=True)", bold=True, code=True)
    said = f"{_time(pinned.lasts)}, CPU free after {_time(pinned.returns)}"
    y += 0 if desk else 17
    sheet.words(sheet.width - 2, y, said, **_beside(GOOD))
    y = _way(sheet, y + 10, ["pinned memory", "GPU memory"], ["copy engine"])
    lanes.lane(y, "CPU")
    lanes.lane(y + LANE, engine)
    lanes.box(y, 0, pinned.returns, BAD)
    lanes.box(y, pinned.returns * 1.5, lanes.until_s, QUIET, "free for your program", frame=True)
    lanes.box(y + LANE, 0, pinned.lasts, THIRD)
    lanes.axis(y + 2 * LANE + 2)


def _beside(colour: str) -> dict[str, Any]:
    return {"colour": colour, "anchor": "end", "bold": True}


def _way(sheet: Canvas, y: float, places: Sequence[str], carriers: Sequence[str]) -> float:
    """Memories from left to right, and who carries the bytes from one to the next; returns where
    the next may be drawn."""
    desk = sheet.width > SHORT
    names = places if desk else [place.split()[0] for place in places]
    wide = [canvas.wide(name, 11) + (24 if desk else 14) for name in names]
    between = 110.0 if desk else 70.0
    x = 1.0
    for number, (name, width) in enumerate(zip(names, wide, strict=True)):
        sheet.box(x, y, width, STAGE - 4, edge=MUTED, round_=4)
        sheet.words(x + width / 2, y + 14, name, size=11, anchor="middle", colour=INK)
        x += width
        if number < len(carriers):
            colour = BAD if carriers[number] == "CPU" else THIRD
            middle = y + STAGE / 2 - 2
            sheet.line((x + 3, middle), (x + between - 3, middle), colour=colour, arrow=True)
            half = x + between / 2 - 3
            how = {"size": 10, "anchor": "middle", "colour": colour}
            sheet.words(half, middle - 4, carriers[number], **how)
            x += between
    return y + STAGE + 6
