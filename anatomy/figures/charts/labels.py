"""Where names stand beside the marks of a chart so that none covers another: plain geometry.

Everything is in pixels of the plot, right and down from its upper left corner. A name tries places
around its mark, near ones first, and takes the one that costs least; then all try again, with the
others where they are. What stands farther off gets a leader line. There is nothing random in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import atan2, cos, degrees, hypot, inf, pi, sin

HEIGHT = 13.0  # of a line of text
# Width of letters at that size, on the wide side, because fonts differ; of others by their case.
NAMED = dict.fromkeys("fijlrt.,:;'|()[] ", 3.4) | dict.fromkeys("mwMW%", 9.4)
USUAL, CAPITAL = 6.2, 7.6
APART = 5.0  # from one name to the next beside it: nearer ones read as one
MARK = 6.0  # half the side of the square that a mark is kept in
DISTANCES = (5.0, 9.0, 15.0, 24.0, 36.0, 52.0, 72.0, 96.0)  # from the mark's square to the name
DIRECTIONS = 16
LED = 9.0  # from this distance on there is a leader line
PASSES = 4
# What things cost beside a pixel of distance: a square pixel covered, a line under the text or
# under its leader, a pixel outside of the plot.
COVERED, CROSSED, OUTSIDE = 20.0, 20.0, 1000.0

Segment = tuple[float, float, float, float]
Mark = tuple[float, float, str]  # where it is, and its name


@dataclass(frozen=True)
class Box:
    """An upright rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def covers(self, other: "Box") -> float:
        """Square pixels that both have."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across * down if across > 0 and down > 0 else 0.0

    def crossed(self, line: Segment) -> bool:
        """Whether a straight line passes through it."""
        x, y, x_end, y_end = line
        start, end = 0.0, 1.0
        across = x, x_end - x, self.left, self.right
        for at, step, low, high in (across, (y, y_end - y, self.top, self.bottom)):
            if not step:
                if not low < at < high:
                    return False
                continue
            first, last = sorted(((low - at) / step, (high - at) / step))
            start, end = max(start, first), min(end, last)
        return start < end


@dataclass(frozen=True)
class Label:
    """A name in its place. With `align` `left` its left end is fixed, because its mark is left of
    it, and so on: what is drawn a little shorter than thought stays beside its mark."""

    text: str
    anchor: float  # where it is fixed, from the left
    y: float  # its middle
    align: str
    leader: Segment | None  # from its mark to it; None where it stands beside its mark
    box: Box

    def touches(self, other: Box) -> bool:
        """Whether it, or its leader, is in a box."""
        led = self.leader is not None and other.crossed(self.leader)
        return led or other.covers(self.box) > 0


def width(text: str) -> float:
    """Pixels that a text takes, rather too many than too few."""
    return sum(NAMED.get(each, CAPITAL if each.isupper() else USUAL) for each in text)


def around(x: float, y: float) -> Box:
    """The square of a mark."""
    return Box(x - MARK, y - MARK, x + MARK, y + MARK)


def along(
    start: tuple[float, float], end: tuple[float, float], name: str, away: float
) -> tuple[dict[str, float | str], list[Box]]:
    """How the text of a name is set over the middle of a line, so many pixels `away` from it, and
    boxes that cover it."""
    (x, y), (x_end, y_end), half = start, end, width(name) / 2
    turn, off = atan2(y_end - y, x_end - x), away + HEIGHT / 2
    boxes = []
    for step in range(-int(half), int(half) + 1, 8):
        right = (x + x_end) / 2 + step * cos(turn) + off * sin(turn)
        boxes.append(around(right, (y + y_end) / 2 + step * sin(turn) - off * cos(turn)))
    return {"angle": degrees(turn) % 360, "baseline": "bottom", "dy": -away}, boxes


def placed(
    marks: Sequence[Mark], boxes: Sequence[Box], lines: Sequence[Segment], size: tuple[float, float]
) -> list[Label]:
    """A place for the name of each mark in a plot of this size: no name should cover one of the
    boxes or a mark's square, nor stand on one of the lines."""
    taken = [*(around(x, y) for x, y, _ in marks), *boxes]
    # What a name of each mark can touch; the rest of the plot is no concern of it.
    reach = [_reach(*mark) for mark in marks]
    near = [[box for box in taken if box.covers(all_)] for all_ in reach]
    under = [[line for line in lines if all_.crossed(line)] for all_ in reach]
    found: list[Label | None] = [None] * len(marks)
    for _ in range(PASSES):
        before = list(found)
        for index, mark in enumerate(marks):
            others = [
                label
                for at, label in enumerate(found)
                if label and at != index and label.touches(reach[index])
            ]
            found[index] = _best(mark, near[index], under[index], others, size)
        if found == before:
            break
    return [label for label in found if label]


def _best(mark: Mark, taken, lines, others, size) -> Label:
    best, least = None, inf
    for distance, label in _places(*mark):
        if distance >= least:  # farther ones cost at least their distance
            break
        cost = distance + _cost(mark, label, taken, lines, others, size, least - distance)
        if cost < least:
            best, least = label, cost
    return best


def _reach(x: float, y: float, text: str) -> Box:
    """All that `_places` around a mark are within."""
    away = MARK + DISTANCES[-1]
    across, down = away + width(text) + APART + 1, away + HEIGHT + 1
    return Box(x - across, y - down, x + across, y + down)


def _places(x: float, y: float, text: str) -> Iterator[tuple[float, Label]]:
    """Places around a mark, near ones first; the right side first among those equally near."""
    wide, high = width(text) / 2, HEIGHT / 2
    for distance in DISTANCES:
        for step in sorted(range(DIRECTIONS), key=lambda s: min(s, DIRECTIONS - s)):
            angle = 2 * pi * step / DIRECTIONS
            away = MARK + distance
            middle, level = x + cos(angle) * (away + wide), y - sin(angle) * (away + high)
            box = Box(middle - wide, level - high, middle + wide, level + high)
            leader = _leader(x, y, box) if distance >= LED else None
            align = "left" if box.left > x else "right" if box.right < x else "center"
            anchor = {"left": box.left, "center": middle, "right": box.right}[align]
            yield distance, Label(text, anchor, level, align, leader, box)


def _leader(x: float, y: float, box: Box) -> Segment:
    """From the edge of a mark to the nearest point of a box."""
    end = min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
    far = hypot(end[0] - x, end[1] - y) or 1.0
    part = MARK / far
    return x + part * (end[0] - x), y + part * (end[1] - y), *end


def _cost(mark: Mark, label, taken, lines, others, size, most: float) -> float:
    """What a place costs beside its distance; infinity once that is as much as `most`."""
    cost = 0.0
    for part in _parts(mark, label, taken, lines, others, size):
        cost += part
        if cost >= most:
            return inf
    return cost


def _parts(mark: Mark, label, taken, lines, others, size) -> Iterator[float]:
    box, led = label.box, [each for each in others if each.leader]
    beyond = -box.left, -box.top, box.right - size[0], box.bottom - size[1]
    alone = Box(box.left - APART, box.top, box.right + APART, box.bottom)
    yield OUTSIDE * sum(max(0, out) for out in beyond)
    for each in taken:
        yield COVERED * box.covers(each)
    for each in others:
        yield COVERED * alone.covers(each.box)
    yield CROSSED * sum(box.crossed(line) for line in lines)
    yield CROSSED * sum(box.crossed(each.leader) for each in led)
    if label.leader:
        mine = around(*mark[:2])
        yield 4 * CROSSED * sum(each.box.crossed(label.leader) for each in others)
        yield 10 * CROSSED * sum(each.crossed(label.leader) for each in taken if each != mine)
