"""Time against a count with the line of what nothing beats, on a plane that knows its pixels."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import dist, exp, log
from typing import Any

import altair as alt

from anatomy.figures.charts import grammar, labels
from anatomy.figures.charts.grammar import DESK, LOG_TICKS, MUTED, TEXT, Data, Spec, Titles

LEFT, RIGHT = 58, 12  # pixels beside the plot: the axis with its title, and half of a tick's label
EXTENT = 34  # of them the axis' labels
TALL = {True: 330, False: 290}  # pixels, on a desk and on a phone
BEFORE, AFTER = 0.07, 0.09  # free room at an axis' ends, as shares of what lies between them
CAP = 7  # pixels: the ends of an interval
CLOSE = 12  # pixels: marks of one variant no farther apart share their label
OVER = 8  # pixels: marks of several variants no farther apart have theirs side by side
Labels = Sequence[labels.Label]
CORNER = 10  # pixels of the mark at a roof's corner, and of air beside it
LINE = 15  # pixels of a line of text: roofs that are nearer to each other share their label
LIFTS = 3, 9  # pixels of a label above its roof, and above marks that lie on it


@dataclass(frozen=True)
class Scale:
    """An axis: its ends, whether it is logarithmic, and the pixels that it reaches over."""

    low: float
    high: float
    logarithmic: bool
    pixels: float

    def at(self, value: float) -> float:
        """Pixels from the low end."""
        low, high, here = map(self._bent, (self.low, self.high, value))
        return self.pixels * (here - low) / (high - low)

    def value(self, pixels: float) -> float:
        """What is so many pixels from the low end."""
        low, high = self._bent(self.low), self._bent(self.high)
        here = low + (high - low) * pixels / self.pixels
        return exp(here) if self.logarithmic else here

    def _bent(self, value: float) -> float:
        return log(value) if self.logarithmic else value

    def drawn(self) -> alt.Scale:
        """As Vega-Lite has it."""
        kind = "log" if self.logarithmic else "linear"
        return alt.Scale(type=kind, domain=[self.low, self.high], nice=False, zero=False)

    def ticks(self, most: int, **how: Any) -> alt.Axis:
        """The axis with its ticks."""
        how |= {"labelOverlap": "greedy", "format": "~g"}
        if not self.logarithmic:
            return alt.Axis(tickCount=most, **how)
        shown = [tick for tick in LOG_TICKS if self.low <= tick <= self.high]
        return alt.Axis(values=shown, **how)


@dataclass(frozen=True)
class Plane:
    """A plot by its two scales; pixels are right and down from its upper left corner."""

    across: Scale
    up: Scale

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in pixels."""
        return self.across.pixels, self.up.pixels

    def pixels(self, x: float, value: float) -> tuple[float, float]:
        """Where a point is."""
        return self.across.at(x), self.up.pixels - self.up.at(value)

    def point(self, right: float, down: float) -> dict[str, float]:
        """A place in pixels as `x` and `value`."""
        return {"x": self.across.value(right), "value": self.up.value(self.up.pixels - down)}

    def leaders(self, named: Labels, fields: tuple[str, ...]) -> list[dict[str, float]]:
        """The lines to names that stand farther off; `fields` are x and value of both ends."""
        lines = ((label.leader[:2], label.leader[2:]) for label in named if label.leader)
        ends = ([*self.point(*one).values(), *self.point(*other).values()] for one, other in lines)
        return [dict(zip(fields, each, strict=True)) for each in ends]

    def names(self, named: Labels, x: alt.X, y: alt.Y, size: float = 11, **more: Any):
        """Names in their places, a layer for each side that they are fixed at; `more` sets them."""
        for align in ("left", "center", "right"):
            mine = [label for label in named if label.align == align]
            texts = [self.point(each.anchor, each.y) | {"text": each.text} for each in mine]
            how = {"fontSize": size, "baseline": "middle", "align": align} | more
            if texts:
                yield grammar.words(grammar.on(texts, x=x, y=y), how=how)


def scale(values: Sequence[float], pixels: float) -> Scale:
    """A scale on which all of `values` and some room at the ends find a place."""
    low, high = min(values), max(values)
    if low > 0 and high / low > grammar.FAR:
        span = log(high / low)
        return Scale(low * exp(-BEFORE * span), high * exp(AFTER * span), True, pixels)
    span = (high - low) or 0.1 * abs(high) or 1.0
    return Scale(low - BEFORE * span, high + AFTER * span, False, pixels)


def whiskers(bars: alt.Chart, thick: float, caps: float, **look: Any) -> list[alt.Chart]:
    """Vertical intervals with an end on both sides, so many pixels thick."""
    ends = bars.mark_tick(orient="horizontal", size=CAP, thickness=caps, **look)
    lines = bars.mark_rule(strokeWidth=thick, **look).encode(y="low:Q", y2="high:Q")
    return [lines, *(ends.encode(y=f"{end}:Q") for end in ("low", "high"))]


def frontier(
    points: Data, best: Data, floor: float, titles: Titles, series: list, names: bool, *, width: int
) -> Spec:
    """Time over a count, both over the control's, a mark for each variant and a line of the best.

    The marks of points that are `beaten` are hollow. The `best` are the points on the line of their
    series, by rising `x`. The largest noise floor is drawn as a band around 1. With `names` a mark
    has its `name` on a desk; otherwise, and on a phone, its `number`. What is `expected` of a point
    is a thick bar.
    """
    inner, height = width - LEFT - RIGHT, TALL[width > DESK]
    across = scale([1.0, *grammar.ends_of(points, "x")], inner)
    counted = [point for point in points if "expected" in point]
    levels = [*grammar.ends_of(points), *grammar.ends_of(counted, "expected")]
    up = scale([1 - floor, 1 + floor, *levels], height)
    plane = Plane(across, up)
    x = alt.X("x:Q", title=titles[0], scale=across.drawn(), axis=across.ticks(inner // 70))
    extent = {"minExtent": EXTENT, "maxExtent": EXTENT}
    y = alt.Y("value:Q", title=titles[1], scale=up.drawn(), axis=up.ticks(6, **extent))
    where = grammar.legend(series, width, symbolOpacity=1) if len(series) > 1 else None
    colour, shape = grammar.series(series, where)
    by_series = ([point for point in best if point["series"] == name] for name in series)
    lines = [_reaching(line, plane) for line in by_series if line]
    named = _named(points, lines, plane, names=width > DESK and names)
    layers = [grammar.noise(floor, "y"), grammar.dashed([{"value": 1.0}], y=y)]
    layers.append(grammar.dashed([{"x": 1.0}], x=x))
    for line in lines:
        stairs = grammar.on(line, x=x, y=y, color=colour, order=alt.Order("order:Q"))
        # Thin, so that a step upwards is not taken for a mark's interval, which has two ends.
        look = {"strokeWidth": 1.4, "interpolate": "step-after", "opacity": 0.7}
        layers.append(stairs.mark_line(**look))
    if led := plane.leaders(named, ("from_x", "from_y", "to_x", "to_y")):
        leaders = grammar.on(led, x="from_x:Q", x2="to_x:Q", y="from_y:Q", y2="to_y:Q")
        layers.append(leaders.mark_rule(color=MUTED, strokeWidth=1))
    if counted:
        bars = grammar.on(counted, x=x, y=alt.Y("expected:Q", scale=up.drawn()))
        layers.append(
            bars.mark_tick(orient="horizontal", size=15, thickness=3.5, opacity=0.8, color=TEXT)
        )
    if others := [point for point in points if not point["control"]]:
        layers += whiskers(grammar.on(others, x=x, color=colour), 1.6, 1.6)
    for beaten in (True, False):
        if some := [point for point in others if point["beaten"] == beaten]:
            marks = grammar.on(some, x=x, y=y, color=colour, shape=shape, description="hover:N")
            look = {"size": 70, "opacity": 1, "strokeWidth": 1.8}
            layers.append(marks.mark_point(filled=not beaten, **look))
    controls = [point for point in points if point["control"]]
    control = grammar.on(controls, x=x, y=y, description="hover:N")
    layers.append(control.mark_point(filled=True, size=80, opacity=1, color=TEXT))
    layers += plane.names(named, x, y)
    return grammar.layered(layers, inner, height)


def _reaching(line: Data, plane: Plane) -> list[dict[str, Any]]:
    """A line's corners from its first point to the right edge, for nothing is faster than its last.
    Upwards from the first it would be taken for that mark's interval."""
    corners = [*line, line[-1] | {"x": plane.across.high}]
    return [each | {"order": order} for order, each in enumerate(corners)]


def _named(points, lines, plane: Plane, *, names: bool) -> list[labels.Label]:
    """Names or numbers in their places beside the marks."""
    wanted, bars, taken = [], [], []
    for point in points:
        word = point["name"] if names else "" if point["control"] else point["number"]
        here = plane.pixels(point["x"], point["value"])
        # Marks of one variant on top of each other, in several series, share their name.
        if word and not any(w == word and dist(here, there) < CLOSE for *there, w in wanted):
            over = (at for at, (*there, _) in enumerate(wanted) if dist(here, there) < OVER)
            if (at := next(over, None)) is None:
                wanted.append((*here, word))
            else:
                wanted[at] = (*wanted[at][:2], f"{wanted[at][2]}, {word}")
        top, bottom = (plane.pixels(point["x"], point[end])[1] for end in ("high", "low"))
        bars += [labels.around(*here), labels.Box(here[0] - 1, top, here[0] + 1, bottom)]
    for line in lines:
        for (at, level), (end, below) in pairwise(plane.pixels(c["x"], c["value"]) for c in line):
            taken += [(at, level, end, level), (end, level, end, below)]
    (across, down), (right, bottom) = plane.pixels(1.0, 1.0), plane.size
    taken += [(0.0, down, right, down), (across, 0.0, across, bottom)]
    return labels.placed(wanted, bars, taken, plane.size)


def roof_labels(roofs: Data, plane: Plane, points: Data, *, short: bool) -> list[dict[str, Any]]:
    """What stands over each roof: its name, its rate and the FLOP/B of its corner, in `short` its
    name alone; roofs too close for two lines of text share one, and have no `series`. What would
    reach to the corner, or to the mark of a point, says less, or stands higher where no other roof
    is near. In `short` nothing stands beside marks: the legend has the colours."""
    if short and points:
        return []
    shared: list[list[dict[str, Any]]] = []
    for roof in sorted(roofs, key=lambda each: -each["peak"]):
        level = plane.pixels(roof["ridge"], roof["peak"])[1]
        if shared and level - plane.pixels(roof["ridge"], shared[-1][0]["peak"])[1] < LINE:
            shared[-1].append(roof)
        else:
            shared.append([roof])
    heights = [plane.pixels(each[0]["ridge"], each[0]["peak"])[1] for each in shared]
    above, under, found = [0.0, *heights[:-1]], [*heights[1:], plane.size[1]], []
    for over, level, below in zip(above, shared, under, strict=True):
        names = ", ".join(each["series"] for each in level)
        rates = ", ".join(f"{each['series']}: {each['rate']}" for each in level)
        corners = " and ".join(each["text"] for each in level)
        peak, last = level[0]["peak"], max(grammar.ends_of(level, "ridge"))
        marks = [plane.pixels(point["at"], point["value"]) for point in points]
        end, height = plane.pixels(last, peak)
        said = [] if short else [f"{rates}, from {corners} FLOP/B", rates]
        own = {"series": names} if len(level) == 1 else {}
        tried = []
        alone = points and min(height - over, below - height) >= 2 * CORNER
        for lift in LIFTS if alone else LIFTS[:1]:
            low = height + CORNER / 2 - (lift - LIFTS[0])
            near = [x + CORNER for x, y in marks if height - LINE - CORNER - lift < y < low]
            room = plane.size[0] - max(end + CORNER, *near, 0)
            text = next((text for text in said if labels.width(text) <= room), names)
            tried.append({"value": peak, "text": text, "lift": lift} | own)
        found.append(max(tried, key=lambda each: len(each["text"])))
    return found
