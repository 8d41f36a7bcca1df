"""Lines that wait for the GPU, each beside one that only queues work, by what the CPU asks for."""

from collections.abc import Sequence

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, MUTED, Canvas
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row

SHORT = 500  # pixels: a narrower sheet has each pair in two lines
CHIP, ROW = 22.0, 31.0  # pixels: the height of a line of code, and of a pair
# How it is said whether a line waits, and its colour; None where the trials did not agree.
SAID = {True: ("waits", BAD), False: ("goes on", GOOD), None: ("undecided", MUTED)}
Pair = tuple[str, str, str]


@drawn_from()
def waiting_lines(table: Sequence[Row], *, pairs: Sequence[Pair]) -> str:
    """Pairs of lines, with whether the CPU was seen waiting at each.

        waiting_lines("synchronizations.detected", pairs=[("a value", "t[0].item()", "t.sum()")])

    Args:
        experiment: One with rows as `synchronizations.detected` has them.
        pairs: What the CPU asks for, and two lines by their names in the recording.
    """
    lines = [line for _, *two in pairs for line in two]
    table = rows.select(table, variants=lines)
    waits = {row["variant"]: row.get("waits") for row in table}
    label = "; ".join(
        f"{asked}: " + ", ".join(f"{line} {SAID[waits[line]][0]}" for line in two)
        for asked, *two in pairs
    )
    return canvas.both(lambda sheet: _drawn(sheet, pairs, waits), f"{label}.")


def _drawn(sheet: Canvas, pairs: Sequence[Pair], waits: dict[str, bool | None]) -> None:
    desk = sheet.width > SHORT
    names, between = (84.0, 10.0) if desk else (0.0, 6.0)
    wide = (sheet.width - names - between - 2) / 2 if desk else sheet.width - 2
    y = 4.0
    for asked, *two in pairs:
        if desk:
            sheet.words(1, y + 15, asked, bold=True)
        else:
            sheet.words(1, y + 10, asked, bold=True)
            y += 16
        for number, line in enumerate(two):
            x = 1 + names + number * (wide + between) if desk else 1.0
            _chip(sheet, x, y, wide, line, *SAID[waits[line]])
            y += 0 if desk else CHIP + 4
        y += ROW if desk else 8
    sheet.space(4)


def _chip(sheet: Canvas, x: float, y: float, wide: float, line: str, said: str, colour: str):
    """A line of code, and whether it waits."""
    sheet.box(x, y, wide, CHIP, fill=colour, opacity=0.13, edge=colour, round_=4)
    sheet.words(x + 7, y + 15, line, size=10.5, code=True, colour=INK)
    sheet.words(x + wide - 7, y + 15, said, size=11, anchor="end", colour=colour, bold=True)
