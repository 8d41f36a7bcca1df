"""What a habit costs each time, on a logarithmic axis; and a trip to the CPU and back, in lanes."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Any, NamedTuple

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, LINE, MUTED, PAPER, Canvas
from anatomy.figures.diagrams.lanes import KERNEL, LANE, LAUNCH, WAIT, Lanes
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units
from anatomy.table.errors import BadParameter

HABIT, HEAD = 27.0, 24.0  # pixels: a habit with its mark, and the heading of a group


class Habit(NamedTuple):
    """What is called what, and the row and column that have its price in seconds."""

    words: str
    op: str
    variant: str
    column: str = "use_s"


class Price(NamedTuple):
    """What a habit is called and costs, in seconds, with its interval, if it has one, and whether
    a difference is decided."""

    words: str
    time: float
    ends: tuple[float, float] | None
    decided: bool = True

    @property
    def said(self) -> str:
        """The time with as many digits as it is known to."""
        return units.seconds(self.time, *(self.ends or ()), most=3 if self.decided else 2)


@drawn_from()
def prices(table: Sequence[Row], habits: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """Times of single uses as marks with their intervals on one logarithmic axis. What is undecided
    is hollow, with the interval of its verdict: to the left edge where it may cost nothing.

        prices("never.costs", {"Each time": [
            ("x.cpu() and back, 4 KiB", "ping-pong 1024", "by way of the CPU")]})

    Args:
        habits: Heading of a group -> for each of its marks the words, op and variant, and the
            column if it is not `use_s`.
    """
    wanted = {head: [Habit(*each) for each in group] for head, group in habits.items()}
    groups = {head: [_price(table, each) for each in group] for head, group in wanted.items()}
    label = ". ".join(
        f"{head}: " + "; ".join(f"{bar.words}: {_full(bar)}" for bar in bars)
        for head, bars in groups.items()
    )
    return canvas.both(lambda sheet: _bars(sheet, groups), f"The price of one use. {label}.")


def _price(table: Sequence[Mapping[str, Any]], habit: Habit) -> Price:
    row = rows.select(table, op=habit.op, variants=[habit.variant])[0]
    value = row.get(habit.column)
    if units.missing(value) or value <= 0:
        raise BadParameter(f"{habit.op}, {habit.variant} has no positive {habit.column} to draw.")
    ends = [row.get(name) for name in rows.INTERVALS.get(habit.column, ())]
    undecided = row.get("verdict") == "undecided"
    if undecided:  # the verdict's interval is that of the ratio, wider than that of one use
        own = rows.select(table, op=habit.op)
        base = next(each for each in own if each.get("role") == "control")["median_s"]
        ends = [(row[name] - 1) * base / row["uses"] for name in ("ratio_low", "ratio_high")]
    known = len(ends) == 2 and not any(units.missing(end) for end in ends)
    known = known and ends[0] <= value <= ends[1]
    return Price(habit.words, value, (ends[0], ends[1]) if known else None, not undecided)


def _full(bar: Price) -> str:
    return bar.said if bar.decided else f"{bar.said}, undecided"


def _bars(sheet: Canvas, groups: Mapping[str, Sequence[Price]]) -> None:
    bars = [bar for group in groups.values() for bar in group]
    desk = sheet.width > 500
    lane = HABIT if desk else HABIT + 14
    left = 12 + max(canvas.wide(bar.words) for bar in bars) if desk else 8.0
    right = sheet.width - 56
    times = [time for bar in bars for time in (bar.time, *(bar.ends or ())) if time > 0]
    low, high = floor(log10(min(times))), ceil(log10(max(times)))

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
                # Lines of the axis pass behind a name.
                sheet.box(left, top - 15, canvas.wide(bar.words) + 4, 15, fill=PAPER)
                sheet.words(left, top - 4, bar.words)
            sheet.line((left, top + 10), (right, top + 10), colour=LINE, thick=1)
            x = after = at(bar.time)
            if bar.ends:
                first, after = (at(end) if end > 0 else left for end in bar.ends)
                sheet.line((first, top + 10), (after, top + 10), colour=BAD, thick=2)
            fill = BAD if bar.decided else PAPER
            sheet.box(x - 5, top + 5, 10, 10, fill=fill, edge=BAD, round_=5)
            said, start = _full(bar), max(x + 5, after) + 6
            if start + canvas.wide(said, bold=True) > sheet.width:
                start = min(x - 5, at(bar.ends[0]) if bar.ends else x) - 6
                sheet.words(start, top + 14, said, bold=True, anchor="end")
            else:
                sheet.words(start, top + 14, said, bold=True)
            y += lane
    sheet.words(
        (left + right) / 2,
        bottom + 30,
        "time of one use, log axis",
        size=11,
        anchor="middle",
        colour=MUTED,
    )


KERNEL_SHARE = 0.12  # of a launch: a kernel of so few numbers, as a sketch
# What a trip's own time goes to, between its two launches: a sketch, too.
WAITS, ADDS, COPIES = 0.45, 0.2, 0.35
# What stands in a box that is too narrow for its words.
SHORT = {"launch x * 2": "× 2", "launch + 1": "+ 1", "launch abs": "abs", "wait, copy": "wait"}
SHORT |= {"to host": "D2H", "to GPU": "H2D"}


class Box(NamedTuple):
    """What host or GPU does, from a start to an end in seconds, and in which colour; `idle` where
    it only waits."""

    words: str
    start: float
    end: float
    colour: str
    idle: bool = False


def stays(stay_s: float) -> tuple[list[Box], list[Box]]:
    """Three calls of the host fill its time, and the GPU runs a kernel for each."""
    each = stay_s / 3
    names = ("launch x * 2", "launch + 1", "launch abs")
    host = [Box(name, at * each, (at + 1) * each, LAUNCH) for at, name in enumerate(names)]
    return host, [_kernel(box) for box in host]


def travels(stay_s: float, travel_s: float) -> tuple[list[Box], list[Box]]:
    """Two such calls, and between them the trip: the GPU is idle while the CPU adds and copies."""
    launch = min(stay_s / 3, travel_s / 4)
    own = travel_s - 2 * launch
    back = launch + WAITS * own
    added = back + ADDS * own
    there = travel_s - launch
    host = [
        Box("launch x * 2", 0.0, launch, LAUNCH),
        Box("wait, copy", launch, back, WAIT, idle=True),
        Box("+ 1", back, added, LAUNCH),
        Box("copy", added, there, WAIT),
        Box("launch abs", there, travel_s, LAUNCH),
    ]
    gpu = [
        _kernel(host[0]),
        Box("to host", back - WAITS * own / 2, back, WAIT),
        Box("idle", back, there - COPIES * own / 2, WAIT, idle=True),
        Box("to GPU", there - COPIES * own / 2, there, WAIT),
        _kernel(host[-1]),
    ]
    return host, gpu


def _kernel(launch: Box) -> Box:
    """The kernel of a launch, which is short and begins as it ends."""
    return Box("", launch.end - KERNEL_SHARE * (launch.end - launch.start), launch.end, KERNEL)


@drawn_from()
def trip(table: Sequence[Row], *, op: str) -> str:
    """Three operations that stay on the GPU, and the same with the middle one on the CPU: what
    host and GPU do. How long each way takes is to scale; in what parts was not measured.

        trip("never.costs", op="ping-pong 1024")
    """
    names = ["stay on the GPU", "by way of the CPU"]
    stay, travel = rows.select(table, op=op, variants=names)
    times = [row["median_s"] for row in (stay, travel)]
    first, second = map(units.seconds, times)
    label = (
        f"Three small operations on the GPU: {first}; the host runs ahead. With the middle "
        f"one on the CPU: {second}; the host waits, copies, computes and copies back, and "
        "the GPU is idle meanwhile."
    )
    return canvas.both(lambda sheet: _lanes(sheet, times), label)


def _lanes(sheet: Canvas, times: Sequence[float]) -> None:
    ways = stays(times[0]), travels(*times)
    named = ("(x * 2 + 1).abs()", GOOD), ("x.cpu() ... .to(device)", BAD)
    lanes = Lanes(sheet, until_s=max(times))
    for (code, colour), both, time in zip(named, ways, times, strict=True):
        top = sheet.height + 13
        sheet.words(1, top, code, bold=True, code=True)
        said = units.seconds(time)
        sheet.words(sheet.width - 1, top, said, bold=True, anchor="end", colour=colour)
        lanes.pair(top + 9)
        for y, boxes in zip((top + 9, top + 9 + LANE), both, strict=True):
            for words, start, end, fill, idle in boxes:
                roomy = lanes.fits(words, start, end, spare=12)
                said = words if roomy else SHORT.get(words, words)
                lanes.box(y, start, end, fill, said, frame=idle)
        sheet.space(8)
    lanes.axis(sheet.height)
