"""What each technique was worth, case by case: a mark for every model or size that was measured."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import ceil, floor, log2
from statistics import median
from typing import NamedTuple

from anatomy.claims import Result
from anatomy.figures import framing, techniques
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, LINE, MUTED, PAPER, QUIET, Canvas
from anatomy.figures.text import frontmatter
from anatomy.judge.pace import HOST
from anatomy.record.showing import Found, current
from anatomy.table import units

ROW, RADIUS = 56.0, 3.2  # pixels
LANES = 5.0  # host-bound cases lie so far above a technique's line, GPU-bound ones below
APART, LEVELS = 5.5, 3  # pixels from a level of marks to the next, where they would overlap; levels
MEDIAN = "GPU-bound median: "
PROMISE = 5.0  # how thick the bar is that stands under the marks for what was promised
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Case(NamedTuple):
    """The speed-up of one case, whether it was host-bound before, whether it is decided, and its
    interval."""

    speed: float
    host_bound: bool
    decided: bool
    ends: tuple[float, float] | None = None


class Worth(NamedTuple):
    """A technique with its cases, and the gain that was promised, if it was."""

    name: str
    cases: Sequence[Case]
    promised: tuple[float, float] | None

    @property
    def on_the_gpu(self) -> str:
        """The median of the cases in which the GPU was the bottleneck: the best one may be a case
        that few have."""
        speeds = [case.speed for case in self.cases if not case.host_bound]
        return f"{MEDIAN}{_short(median(speeds))}×" if speeds else "host-bound in every case"


def worths(*, caption: str | None = None) -> str:
    """Speed-ups of all techniques of the site on one logarithmic axis: every case a mark, above the
    line and a diamond where it was host-bound before, with its interval, and what was promised as a
    grey bar. Beside a technique stands the median of its cases where the GPU was the bottleneck.

        worths(caption="Each mark is one model or size.")
    """
    showing = current()
    asked = [
        (each, *techniques.looked_up(showing, page, each))
        for page, front in frontmatter.of_site(showing).items()
        for each in front.techniques
    ]

    def draw() -> str:
        every = [_worth(each, result, found) for each, result, found in asked]
        every = [each for each in every if each.cases]
        if not every:
            return ""
        said = "; ".join(
            f"{each.name} from {units.ratio(min(c.speed for c in each.cases), most=2)} "
            f"to {units.ratio(max(c.speed for c in each.cases), most=2)}"
            f"{each.on_the_gpu and f' ({each.on_the_gpu})'}"
            for each in every
        )
        verdicts = _verdicts(result for _, result, _ in asked if result)
        label = f"Speed-ups: {said}. What was promised: {verdicts}."
        return canvas.both(lambda sheet: _drawn(sheet, every), label)

    recordings = {id(one): one for *_, several in asked for one in several}
    return framing.exhibit(list(recordings.values()), caption, draw)


def _worth(each: frontmatter.Technique, result: Result | None, found: Iterable[Found]) -> Worth:
    cases = [
        Case(
            1 / row["ratio"],
            base.get("paced_by") == HOST,
            row["verdict"] in ("faster", "slower"),
            (1 / row["ratio_high"], 1 / row["ratio_low"]),
        )
        for row, base in techniques.cases(each, found)
    ]
    return Worth(each.name, sorted(cases), _promised(result))


def _promised(result: Result | None) -> tuple[float, float] | None:
    """The least and the most that a claim promises, read from its number, such as `1.2-2×`."""
    numbers = [float(n) for n in _NUMBER.findall(result.claim.number or "")] if result else []
    return (
        (min(numbers), max(numbers)) if len(numbers) == 2 and "×" in result.claim.number else None
    )


def _verdicts(results: Iterable[Result]) -> str:
    """How often the promises come to each verdict; one that two techniques share counts once."""
    words = Counter({one.claim.name: one.word for one in results}.values())
    return ", ".join(f"{word}: {n} of {words.total()}" for word, n in words.most_common())


def _drawn(sheet: Canvas, every: Sequence[Worth]) -> None:
    desk = sheet.width > 500
    cases = [case for each in every for case in each.cases]
    speeds = [speed for case in cases for speed in (case.speed, *(case.ends or ()))]
    first, last = floor(2 * log2(min(speeds))) / 2, ceil(2 * log2(max(speeds))) / 2
    names = 216.0 if desk else 0.0
    left, right = names + 26, sheet.width - 34

    def at(speed: float) -> float:
        return left + (log2(speed) - first) / (last - first) * (right - left)

    top = _legend(sheet) + 48
    step = ROW if desk else ROW + 36  # the name stands above the marks
    bottom = top + step * len(every)
    for power in range(ceil(first), floor(last) + 1, 1 if desk or last - first < 5 else 2):
        x, one = at(2.0**power), power == 0
        sheet.line(
            (x, top - 6), (x, bottom), colour=MUTED if one else LINE, thick=1.2 if one else 1
        )
        for y in (top - 26, bottom + 14):
            sheet.words(x, y, f"{2.0**power:g}×", colour=MUTED, size=11, anchor="middle")
    sheet.words(at(1) - 8, top - 10, "slower", colour=MUTED, size=11, anchor="end")
    sheet.words(at(1) + 8, top - 10, "faster", colour=MUTED, size=11)
    for number, each in enumerate(every):
        if not desk:  # no line through a name
            sheet.box(0, top + step * number, sheet.width, 19, fill=PAPER)
        _row(sheet, top + step * number, step, each, at, names)
    sheet.words(
        (left + right) / 2,
        bottom + 32,
        "speed-up, log scale",
        colour=MUTED,
        size=11,
        anchor="middle",
    )


def _row(sheet: Canvas, top: float, step: float, each: Worth, at, names: float) -> None:
    middle = top + step - ROW / 2 - (0 if names else 10)
    if names:
        lines = 1 + (canvas.wide(each.name) > names) + bool(each.on_the_gpu)
        under = sheet.paragraph(0, middle + 12 - 8 * lines, names, each.name, bold=True)
        sheet.words(0, under, each.on_the_gpu, colour=MUTED, size=11)
    else:
        sheet.words(0, top + 14, each.name, bold=True)
        said, colour = each.on_the_gpu, BAD
        if said.startswith(MEDIAN):
            colour = GOOD  # which says of which cases, where there is no room for more
            if canvas.wide(each.name, bold=True) + canvas.wide(said, 11) + 8 > sheet.width:
                said = said.removeprefix("GPU-bound ")
        sheet.words(sheet.width - 1, top + 14, said, colour=colour, size=11, anchor="end")
    if each.promised:
        x0, x1 = (at(end) for end in each.promised)
        sheet.box(x0, middle + 21, x1 - x0, PROMISE, fill=QUIET)
    low, high = each.cases[0].speed, each.cases[-1].speed
    sheet.line((at(low), middle), (at(high), middle), colour=MUTED)
    lanes = _lanes(each.cases, at)
    for case, lane in zip(each.cases, lanes, strict=True):
        if case.ends:
            x0, x1 = (at(end) for end in case.ends)
            colour = BAD if case.host_bound else GOOD
            sheet.box(x0, middle + lane - 0.5, x1 - x0, 1, fill=colour, opacity=0.35, round_=0)
    for case, lane in zip(each.cases, lanes, strict=True):
        _mark(sheet, at(case.speed), middle + lane, case)
    for number, side in ((0, 0), (-1, 1)):
        case, away, anchor = each.cases[number], (-4, 4)[side], ("end", "start")[side]
        level = [one for one, lane in zip(each.cases, lanes, strict=True) if lane == lanes[number]]
        reach = [at(one.ends[side]) for one in level if one.ends]
        x = (min, max)[side]([at(case.speed) + (-5, 5)[side], *reach]) + away
        colour, y = BAD if case.host_bound else GOOD, middle + lanes[number] + 4
        said = _short(case.speed)
        begin = x - (1 - side) * canvas.wide(said, 11)
        if begin < at(1) < begin + canvas.wide(said, 11):  # no line through a figure
            sheet.box(begin, y - 9, canvas.wide(said, 11), 11, fill=PAPER)
        sheet.words(x, y, said, colour=colour, size=11, anchor=anchor)


def _lanes(cases: Sequence[Case], at: Callable[[float], float]) -> list[float]:
    """How far each mark lies under its technique's line, or above it: farther where it would lie on
    another."""
    last: dict[tuple[bool, int], float] = {}  # where the last mark of a side's level is
    lanes = []
    for case in cases:
        x, side = at(case.speed), case.host_bound
        ends = [last.get((side, level), -1e3) for level in range(LEVELS)]
        free = (level for level, end in enumerate(ends) if x - end > 2 * RADIUS + 1)
        level = next(free, ends.index(min(ends)))
        last[side, level] = x
        lanes.append((-1 if side else 1) * (LANES + APART * level))
    return lanes


def _mark(sheet: Canvas, x: float, y: float, case: Case) -> None:
    colour = BAD if case.host_bound else GOOD
    fill = colour if case.decided else PAPER
    if case.host_bound:
        corners = ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0))
        points = [(x + RADIUS * dx, y + RADIUS * dy) for dx, dy in corners]
        sheet.shape(*points, fill=fill, edge=colour)
    else:
        sheet.box(
            x - RADIUS, y - RADIUS, 2 * RADIUS, 2 * RADIUS, fill=fill, edge=colour, round_=RADIUS
        )


def _legend(sheet: Canvas) -> float:
    x, y = 4.0, 8.0
    for name, case in (
        ("host-bound before: the CPU held it back", Case(1, True, True)),
        ("GPU-bound before", Case(1, False, True)),
        ("hollow: undecided", Case(1, False, False)),
    ):
        if x + canvas.wide(name, 11) + 20 > sheet.width:
            x, y = 4.0, y + 18
        _mark(sheet, x, y, case)
        x += 10 + sheet.words(x + 10, y + 4, name, colour=MUTED, size=11) + 16
    promised = "what was promised"
    if x + 16 + canvas.wide(promised, 11) > sheet.width:
        x, y = 4.0, y + 18
    sheet.box(x - 4, y - PROMISE / 2, 14, PROMISE, fill=QUIET)
    sheet.words(x + 16, y + 4, promised, colour=MUTED, size=11)
    return y


def _short(speed: float) -> str:
    return units.significant(speed, 2)
