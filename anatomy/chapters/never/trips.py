"""What a habit costs each time, on a logarithmic axis; and a trip to the CPU and back, in lanes."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Any, NamedTuple

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, LINE, MUTED, PAPER, Canvas
from anatomy.figures.diagrams.lanes import KERNEL, LANE, LAUNCH, WAIT, Lanes
from anatomy.judge import rows
from anatomy.record.showing import current, selectors
from anatomy.table import units
from anatomy.table.errors import BadParameter

USE = ("use_low_s", "use_high_s")  # the interval of the time of one use
HABIT, HEAD = 27.0, 24.0  # pixels: a habit with its mark, and the heading of a group


class Habit(NamedTuple):
    """What is called what, and the row and column that have its price in seconds."""

    words: str
    op: str
    variant: str
    column: str = "use_s"


class Price(NamedTuple):
    """What a habit is called and costs, in seconds; the interval of one that is not decided."""

    words: str
    time: float
    ends: tuple[float, float] | None

    @property
    def said(self) -> str:
        """The time with as many digits as it is known to."""
        return units.seconds(self.time, most=2 if self.ends else 3)


def prices(
    experiment: str,
    habits: Mapping[str, Sequence[Sequence[str]]],
    *,
    caption: str | None = None,
    **params: Any,
) -> str:
    """Times of single uses as marks on one logarithmic axis; what is undecided is hollow, with its
    interval.

        prices("never.costs", {"Each time": [
            ("x.cpu() and back, 4 KiB", "ping-pong 1024", "by way of the CPU")]})

    Args:
        habits: Heading of a group -> for each of its marks the words, op and variant, and the
            column if it is not `use_s`.
    """
    showing = current()
    found = showing.find(experiment, **params)
    wanted = {head: [Habit(*each) for each in group] for head, group in habits.items()}

    def draw() -> str:
        table = found.recording.rows
        groups = {head: [_price(table, each) for each in group] for head, group in wanted.items()}
        label = ". ".join(
            f"{head}: " + "; ".join(f"{bar.words}: {_full(bar)}" for bar in bars)
            for head, bars in groups.items()
        )
        return canvas.both(lambda sheet: _bars(sheet, groups), f"The price of one use. {label}.")

    return framing.exhibit(found, caption, draw)


def _price(table: Sequence[Mapping[str, Any]], habit: Habit) -> Price:
    row = rows.select(table, op=habit.op, variants=[habit.variant])[0]
    value = row.get(habit.column)
    if units.missing(value) or value <= 0:
        raise BadParameter(f"{habit.op}, {habit.variant} has no positive {habit.column} to draw.")
    ends = [row.get(name) for name in rows.INTERVALS.get(habit.column, USE)]
    known = len(ends) == 2 and not any(units.missing(end) for end in ends)
    undecided = row.get("verdict") == "undecided" and known
    return Price(habit.words, value, (ends[0], ends[1]) if undecided else None)


def _full(bar: Price) -> str:
    return f"{bar.said}, undecided" if bar.ends else bar.said


def _bars(sheet: Canvas, groups: Mapping[str, Sequence[Price]]) -> None:
    bars = [bar for group in groups.values() for bar in group]
    desk = sheet.width > 500
    lane = HABIT if desk else HABIT + 14
    left = 12 + max(canvas.wide(bar.words) for bar in bars) if desk else 8.0
    right = sheet.width - 56
    low = floor(min(log10(bar.time) for bar in bars))
    high = ceil(max(log10(bar.time) for bar in bars))

    def at(time: float) -> float:
        return left + (log10(time) - low) / (high - low) * (right - left)

    bottom = len(bars) * lane + len(groups) * HEAD + 2
    for power in range(low, high + 1):
        x = at(10.0**power)
        sheet.line((x, 0), (x, bottom), colour=LINE, thick=1)
        tick = units.seconds(10.0**power, most=1)
        sheet.words(
            x, bottom + 14, tick, size=11, anchor="middle" if x > 20 else "start", colour=MUTED
        )
    y = 0.0
    for head, group in groups.items():
        sheet.words(1, y + 15, head, bold=True)
        y += HEAD
        for bar in group:
            top = y + (2 if desk else 16)
            if desk:
                sheet.words(left - 8, top + 14, bar.words, anchor="end")
            else:
                sheet.words(left, top - 4, bar.words)
            sheet.line((left, top + 10), (right, top + 10), colour=LINE, thick=1)
            x = after = at(bar.time)
            if bar.ends:
                first, after = (min(max(at(max(end, 1e-12)), left), right) for end in bar.ends)
                sheet.line((first, top + 10), (after, top + 10), colour=BAD, thick=2)
            sheet.box(x - 6, top + 4, 12, 12, fill=PAPER if bar.ends else BAD, edge=BAD, round_=6)
            sheet.words(max(x, after) + 11, top + 14, _full(bar), bold=True)
            y += lane
    sheet.words(
        (left + right) / 2,
        bottom + 30,
        "time of one use, log axis",
        size=11,
        anchor="middle",
        colour=MUTED,
    )


# Lane, begin and end in parts of the whole, words; the GPU's are the lower lane.
STAYS = (
    (("launch", 0.0, 0.11), ("launch", 0.115, 0.225), ("launch", 0.23, 0.34)),
    (("x * 2", 0.13, 0.24), ("+ 1", 0.245, 0.355), ("abs", 0.36, 0.47)),
)
TRAVELS = (
    (
        ("launch", 0.0, 0.11),
        ("wait, copy", 0.115, 0.37),
        ("+ 1", 0.375, 0.575),
        ("copy", 0.58, 0.76),
        ("launch", 0.765, 0.875),
    ),
    (
        ("x * 2", 0.13, 0.24),
        ("to host", 0.245, 0.37),
        ("idle", 0.375, 0.6),
        ("to GPU", 0.605, 0.76),
        ("abs", 0.885, 0.995),
    ),
)
# What the trip adds: nothing is computed there, and in the first two nothing at all is done.
STANDS, COPIES = ("wait, copy", "idle"), ("copy", "to host", "to GPU")
# What stands in a box that is too narrow for its words.
SHORT = {"launch": "call", "wait, copy": "wait", "to host": "D2H", "to GPU": "H2D", "x * 2": "× 2"}


def trip(experiment: str, *, op: str, caption: str | None = None, **params: Any) -> str:
    """Three operations that stay on the GPU, and the same with the middle one on the CPU: what
    host and GPU do, not to scale, and the recorded times.

        trip("never.costs", op="ping-pong 1024")
    """
    showing = current()
    found = showing.find(experiment, **selectors(experiment, params, op, None))

    def draw() -> str:
        names = ["stay on the GPU", "by way of the CPU"]
        stay, travel = rows.select(found.recording.rows, op=op, variants=names)
        times = [units.seconds(row["median_s"], most=3) for row in (stay, travel)]
        label = (
            f"Three small operations on the GPU: {times[0]}; the host runs ahead. With the middle "
            f"one on the CPU: {times[1]}; the host waits, copies, computes and copies back, and "
            "the GPU is idle meanwhile."
        )
        return canvas.both(lambda sheet: _lanes(sheet, times), label)

    return framing.exhibit(found, caption, draw)


def _lanes(sheet: Canvas, times: Sequence[str]) -> None:
    named = ("(x * 2 + 1).abs()", STAYS, GOOD), ("x.cpu() ... .to(device)", TRAVELS, BAD)
    lanes = Lanes(sheet, until_s=1.0)  # parts of the whole in place of seconds
    for (code, both, colour), time in zip(named, times, strict=True):
        top = sheet.height + 13
        sheet.words(1, top, code, bold=True, code=True)
        sheet.words(sheet.width - 1, top, time, bold=True, anchor="end", colour=colour)
        lanes.pair(top + 9)
        for y, boxes, tone in zip((top + 9, top + 9 + LANE), both, (LAUNCH, KERNEL), strict=True):
            for words, start, end in boxes:
                said = words if lanes.fits(words, start, end) else SHORT.get(words, words)
                stands, fill = words in STANDS, WAIT if words in STANDS + COPIES else tone
                lanes.box(y, start, end, fill, said, frame=stands)
        sheet.space(8)
    sheet.words(lanes.left, sheet.height + 8, "time →, not to scale", size=11, colour=MUTED)
