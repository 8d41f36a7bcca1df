"""The climb: the time of a step from rung to rung, and how near each comes to its limit."""

from collections.abc import Mapping, Sequence
from math import log
from typing import NamedTuple

from anatomy.chapters.ladder.shown import rungs
from anatomy.chapters.ladder.shown.tables import View, there
from anatomy.figures import tables
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, LINE, MUTED, PAPER, Canvas
from anatomy.judge import pace, rows
from anatomy.judge.rows import Row
from anatomy.table import units

DESK, ROW, TALL = 500, 38.0, 60.0  # pixels: a wider sheet is a desk's; a row on it, and on a phone
LABELS, SHARES, SPEED = 206.0, 64.0, 84.0  # pixels beside the plot of a desk
VALUE = 34.0  # pixels of a time, which stands right of the mark of a slower way
MARK = 13.0  # pixels of a mark; an interval no wider is not drawn
BEGAN = "what it is compared with"
INTERVAL = "95% interval, drawn where wide"
BOLD = 1.15  # how much wider bold figures are
TOLD = ("faster", "slower", "same", "undecided")
CAPITALS = {"fp8": "FP8", "tf32": "TF32"}  # of the number formats; the rest have none
APART = 8.0  # pixels between two limits that can be told apart
MOVED = 0.025  # share of a time that rounding may add or take
NEAR = 1.5  # the axis is drawn out to a tick that lies no farther before the shortest time
TICKS = [base * 10.0**power for power in range(-3, 5) for base in (1, 2, 5)]


class Step(NamedTuple):
    """A rung in one way, times in the chart's unit."""

    digit: str
    words: str
    time: float
    low: float  # ends of its interval
    high: float
    text: str  # the time, without its unit
    start: float | None  # of the version that it is compared with
    speed: str
    verdict: str
    aside: str  # what the step is bound by, and what it is compared with
    share: str  # of the limit of its number format, which it names


class Axis(NamedTuple):
    """Times to pixels, on a log scale."""

    left: float
    right: float
    low: float
    high: float

    def at(self, time: float) -> float:
        """Where a time lies."""
        share = log(time / self.low) / log(self.high / self.low)
        return self.left + share * (self.right - self.left)


def climb(view: View) -> str:
    """Each way's time as a mark, with a bar from where the rung that it changes ended; "" where no
    way has a time."""
    table = there(view.table)
    if not table:
        return ""
    size, unit = tables.time_unit([row["median_s"] for row in table])
    steps = [_step(row, view, size) for row in table]
    limits = _limits(table, view, size)
    told = "; ".join(
        f"{step.words} {units.significant(step.time)} {unit}"
        f"{f', {step.speed}' if step.speed else ''}{f', {step.aside}' if step.aside else ''}"
        for step in steps
    )
    timed = f"one {rungs.timed(table[0])}"
    label = f"Time of {timed} from rung to rung. {told}. The table has the figures."
    return canvas.both(lambda sheet: _draw(sheet, steps, limits, unit, timed), label)


def _step(row: Row, view: View, size: float) -> Step:
    below = rungs.rung_before(row, view.steps)
    over = rungs.over_rung_before(row, view.steps)
    share = row.get("share_of_ceiling")
    return Step(
        digit=str(row["variant"])[:1],
        words=rungs.in_words(row),
        time=row["median_s"] / size,
        low=row["low_s"] / size,
        high=row["high_s"] / size,
        text=digits(row, size),
        start=below["median_s"] / size if below else None,
        speed=_speed(over) if below else "",
        verdict=str(over.get("verdict") or "") if below else "",
        aside=", ".join(filter(None, (pace.bound_in_words(row), _over(below)))),
        share="" if units.missing(share) else f"{units.percent(share, 2)} {_format(row)}",
    )


def _over(below: Row | None) -> str:
    """What a version is compared with: `over 3`, or `over 3 in a graph`."""
    if below is None:
        return ""
    return f"over {str(below['variant'])[:1]}{' in a graph' if rungs.as_graph(below) else ''}"


def _format(row: Row) -> str:
    name = rungs.format_of(row)
    return CAPITALS.get(name, name)


def _speed(over: Row) -> str:
    """A rung over the one that it changes, with its interval where that is wide; of an undecided
    one the table has it."""
    if over.get("verdict") not in TOLD:
        return ""
    if over["verdict"] == "undecided":
        return "undecided"
    said = rows.speed_in_words(over)  # `1.7× faster (1.0× to 2.7×)`
    if " (" not in said or "%" in said:  # beside factors no percent: `1.13× faster`
        said = rows.factor_in_words(over)
    return said.replace("× to", " to").replace("×)", ")")


def digits(row: Row, size: float) -> str:
    """A time in units of `size`, with the digits that its interval pays for, three at most; with
    three where fewer would move it past its neighbours, if it is known to a factor of two: 1.05 is
    not 1.0."""
    time, low, high = (row[name] / size for name in ("median_s", "low_s", "high_s"))
    text = units.ratio(time, low, high, most=units.PLAIN_DIGITS).removesuffix("×")
    moved = abs(float(text) / time - 1) > MOVED and high < rows.WIDE_TIME * low
    return units.significant(time) if moved else text


def _limits(table: Sequence[Row], view: View, size: float) -> Mapping[str, float]:
    """The fastest possible time by number format, of those that the ways multiply in."""
    found = {}
    for products in ("fp32", "tf32", "fp16", "bf16", "fp8"):
        of_format = [row for row in table if rungs.format_of(row) == products]
        if of_format and not units.missing(of_format[0].get("share_of_ceiling")):
            least = rungs.fastest_possible(of_format[0], view.whole, view.ceilings, products)
            if least:
                found[products] = least / size
    return found


def _draw(
    sheet: Canvas, steps: Sequence[Step], limits: Mapping[str, float], unit: str, timed: str
) -> None:
    desk = sheet.width > DESK
    ends = [*(end for step in steps for end in (step.low, step.high)), *limits.values()]
    shares = SHARES if any(step.share for step in steps) else 0.0
    left, right = (LABELS + 36, sheet.width - shares - SPEED) if desk else (54, sheet.width - 10)
    if any(step.verdict == "slower" for step in steps):
        right -= VALUE
    span = 1.06
    low = min(ends) / span
    before = max(tick for tick in TICKS if tick <= low)
    low = before / 1.01 if low <= NEAR * before else low
    axis = Axis(left, right, low, max(ends) * span)
    top = _key(sheet, steps, axis)
    if shares:
        head = "% of its format's limit"
        sheet.words(sheet.width, top + 6, head, colour=MUTED, size=11, anchor="end")
    top += 16 + 14 * len(limits)
    height = ROW if desk else TALL
    bottom = top + height * len(steps)
    _grid(sheet, axis, limits, top, bottom, unit)
    head = f"{unit} of {timed} (log scale): left is faster"
    sheet.words((left + right) / 2, bottom + 32, head, colour=MUTED, size=11, anchor="middle")
    for at, step in enumerate(steps):
        _one(sheet, step, axis, top + at * height, desk)


def _key(sheet: Canvas, steps: Sequence[Step], axis: Axis) -> float:
    """What is drawn beside the marks, if anything is; returns the line under it."""
    x, y = 7.0, 8.0
    if any(step.start for step in steps):
        sheet.line((x, y - 7), (x, y + 7), colour=MUTED, thick=1.5)
        x += 36 + sheet.words(x + 8, y + 4, BEGAN, colour=MUTED, size=11)
    if any(_wide(step, axis) for step in steps):
        if x + 22 + canvas.wide(INTERVAL, 11) > sheet.width:
            x, y = 7.0, y + 18
        _interval(sheet, x, x + 16, y)
        sheet.words(x + 22, y + 4, INTERVAL, colour=MUTED, size=11)
    return y + 18


def _wide(step: Step, axis: Axis) -> bool:
    """Whether a time's interval reaches beyond its mark on both sides together."""
    return axis.at(step.high) - axis.at(step.low) > MARK


def _interval(sheet: Canvas, x: float, end: float, y: float) -> None:
    sheet.line((x, y), (end, y), colour=INK, thick=1.2)
    for at in (x, end):
        sheet.line((at, y - 2.5), (at, y + 2.5), colour=INK, thick=1.2)


def _grid(
    sheet: Canvas, axis: Axis, limits: Mapping[str, float], top: float, bottom: float, unit: str
) -> None:
    for tick in TICKS:
        if axis.low <= tick <= axis.high:
            x = axis.at(tick)
            sheet.line((x, top), (x, bottom), colour=LINE, thick=1)
            sheet.words(x, bottom + 15, f"{tick:g}", colour=MUTED, size=11, anchor="middle")
    texts: dict[float, str] = {}  # of limits that lie on each other, one label
    for name, least in sorted(limits.items(), key=lambda each: each[1]):
        x, text = axis.at(least), f"{CAPITALS.get(name, name)} limit {units.significant(least, 2)}"
        near = next((other for other in texts if x - other < APART), x)
        texts[near] = f"{texts[near]}, {text}" if near in texts else text
    for at, (x, text) in enumerate(texts.items()):
        line, text = top - 6 - 14 * (len(texts) - 1 - at), f"{text} {unit}"
        sheet.line((x, line + 4), (x, bottom), colour=MUTED, thick=1.4, dashed=True)
        left = min(x - 4, sheet.width - canvas.wide(text, 11))
        sheet.box(left, line - 9, canvas.wide(text, 11), 12, fill=PAPER, round_=0)
        sheet.words(left, line, text, colour=MUTED, size=11)


def _one(sheet: Canvas, step: Step, axis: Axis, top: float, desk: bool) -> None:
    y, line = top + (ROW / 2 if desk else 44), top + 13
    if not desk:
        sheet.box(0, top, sheet.width, 32, fill=PAPER, round_=0)  # hides the lines of the grid
    sheet.words(0, line, step.digit, colour=MUTED)
    sheet.words(14, line, step.words, bold=True)
    sheet.words(14, line + 15, step.aside, colour=MUTED, size=11)
    if step.share:
        share = y + 4 if desk else line
        sheet.words(sheet.width, share, step.share, anchor="end", colour=MUTED)
    x, start = axis.at(step.time), axis.at(step.start) if step.start else None
    slower = step.verdict == "slower"
    if start is not None:
        colour = BAD if slower else GOOD if step.verdict == "faster" else MUTED
        sheet.box(min(x, start), y - 8, abs(x - start), 16, fill=colour, opacity=0.24, round_=0)
        sheet.line((start, y - 9), (start, y + 9), colour=MUTED, thick=1.5)
    value, wide = step.text, BOLD * canvas.wide(step.text) + 4
    if slower:
        _paper(sheet, x + 9, y - 9, wide)
        sheet.words(x + 11, y + 4, value, bold=True)
    else:
        _paper(sheet, x - 9 - wide, y - 9, wide)
        sheet.words(x - 10, y + 4, value, bold=True, anchor="end")
    sheet.box(x - 5, y - 5, 10, 10, fill=BAD if slower else GOOD, round_=5)
    if _wide(step, axis):
        _interval(sheet, axis.at(step.low), axis.at(step.high), y + 11)
    if step.speed:
        after = x + 9 + wide + 4 if slower else max(x + 9, (start or x) + 7)
        speed, end = step.speed, sheet.width - (SHARES if desk and step.share else 0)
        whole, bar = canvas.wide(speed, 11), abs((start or x) - x)
        before = (start or x) - 8 if slower else x - 14 - wide  # a phone has room there, or on it
        elsewhere = not desk and (before > whole or (bar > whole + 24 and not slower))
        if after + whole > end and not elsewhere:  # the table has its interval as well
            speed = speed.split(" (")[0]
        room = canvas.wide(speed, 11)
        colour = BAD if slower else MUTED
        if not desk and after + room > sheet.width:
            ink = BAD if slower else INK  # it stands on the bar, or where that is short before it
            end = (start or x) - 8
            if slower or end - room < x + 9:
                end = before
                _paper(sheet, end - room, y - 9, room)
            else:  # a limit's line shows through the bar
                sheet.box(end - room, y - 8, room, 16, fill=PAPER, round_=0)
                sheet.box(end - room, y - 8, room, 16, fill=GOOD, opacity=0.24, round_=0)
            sheet.words(end, y + 4, speed, colour=ink, size=11, anchor="end")
        else:
            _paper(sheet, after - 1, y - 9, room)
            sheet.words(after, y + 4, speed, colour=colour, size=11)


def _paper(sheet: Canvas, x: float, y: float, width: float) -> None:
    """What hides a line of the grid behind words."""
    sheet.box(x, y, width, 18, fill=PAPER, round_=0)
