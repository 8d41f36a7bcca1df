"""Charts of a time against a count, with the line of what nothing beats in both.

They are in the manner of `anatomy.charts.plain`, which has what all charts share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import dist, exp, log
from typing import Any

import altair as alt

from anatomy.charts import labels
from anatomy.charts.plain import (
    BAND,
    LOG_TICKS,
    MUTED,
    SERIES,
    SHAPES,
    TEXT,
    Drawn,
    _configured,
    _series,
    _values,
)

FAR = 4.0  # from this factor between its ends on, an axis is logarithmic
LEFT, RIGHT = 58, 12  # pixels beside the plot: the axis with its title, and half of a tick's label
EXTENT = 34  # of them the axis' labels
TALL = {True: 330, False: 290}  # pixels, on a desk and on a phone
# Free room at an axis' ends, as shares of what lies between them.
BEFORE, AFTER = 0.07, 0.09
STAIRS, FAINT = 1.4, 0.7  # the frontier's line, in pixels and opacity
CAP = 7  # pixels: the ends of an interval
CLOSE = 12  # pixels: marks of one variant no farther apart share their label


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


def scale(values: Sequence[float], pixels: float) -> Scale:
    """A scale on which all of `values` and some room at the ends find a place."""
    low, high = min(values), max(values)
    if low > 0 and high / low > FAR:
        span = log(high / low)
        return Scale(low * exp(-BEFORE * span), high * exp(AFTER * span), True, pixels)
    span = (high - low) or 0.1 * abs(high) or 1.0
    return Scale(low - BEFORE * span, high + AFTER * span, False, pixels)


def frontier(
    points: Sequence[dict[str, Any]],
    steps: Sequence[dict[str, Any]],
    floor: float,
    titles: tuple[str, str],
    series: Sequence[str],
    names: bool,
) -> Drawn:
    """Time over a count, both over the control's, a mark for each variant and a line of the best.

    Args:
        points: `series`, `x`, `value`, `low`, `high`, `name`, `number` (which stands for the name
            where there is no room), `control`, `beaten` (drawn hollow) and `told`.
        steps: `series`, `x` and `value` of the points on the line, by rising x.
        floor: The largest noise floor, drawn as a band around 1.
        titles: Of the horizontal axis and of the vertical one.
        series: All series, in order.
        names: Whether marks have their names on a desk; otherwise, and on a phone, their numbers.
    """
    data, corners = [dict(each) for each in points], [dict(each) for each in steps]
    return lambda width: _frontier(data, corners, floor, titles, list(series), names, width)


def _frontier(data, corners, floor, titles, series, names, width) -> dict[str, Any]:
    wide, several = width > 500, len(series) > 1
    inner, height = width - LEFT - RIGHT, TALL[wide]
    across = scale([1.0, *(point["x"] for point in data)], inner)
    ends = [point[end] for point in data for end in ("low", "high")]
    up = scale([1 - floor, 1 + floor, *ends], height)
    x = alt.X("x:Q", title=titles[0], scale=across.drawn(), axis=across.ticks(inner // 70))
    extent = {"minExtent": EXTENT, "maxExtent": EXTENT}
    y = alt.Y("value:Q", title=titles[1], scale=up.drawn(), axis=up.ticks(6, **extent))
    where = None
    if several:
        where = alt.Legend(orient="top", title=None, symbolSize=70, symbolOpacity=1)
    colour = alt.Color("series:N", sort=series, scale=_series(series, SERIES), legend=where)
    shape = alt.Shape("series:N", sort=series, scale=_series(series, SHAPES), legend=where)
    named = _named(data, corners, across, up, names=wide and names)
    at = {"x": x, "y": y}
    band = alt.Chart(_values([{"from": 1 - floor, "to": 1 + floor, "x": 1.0, "value": 1.0}]))
    layers = [
        band.mark_rect(color=BAND, stroke=BAND).encode(y=alt.Y("from:Q"), y2="to:Q"),
        band.mark_rule(color=MUTED, strokeDash=[4, 3]).encode(y=y),
        band.mark_rule(color=MUTED, strokeDash=[4, 3]).encode(x=x),
    ]
    for name in series:
        mine = [corner for corner in corners if corner["series"] == name]
        if mine:
            line = alt.Chart(_values(_reaching(mine, across, up)))
            # Thin, so that a step upwards is not taken for a mark's interval, which has two ends.
            stairs = line.mark_line(strokeWidth=STAIRS, interpolate="step-after", opacity=FAINT)
            layers.append(stairs.encode(**at, color=colour, order=alt.Order("order:Q")))
    led = [each for each in named if each["led"]]
    if led:
        lines = alt.Chart(_values(led)).mark_rule(color=MUTED, strokeWidth=1)
        layers.append(
            lines.encode(x=alt.X("from_x:Q"), x2="to_x:Q", y=alt.Y("from_y:Q"), y2="to_y:Q")
        )
    others = [point for point in data if not point["control"]]
    if others:
        spans = alt.Chart(_values(others)).mark_rule(strokeWidth=1.6)
        layers.append(spans.encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour))
        for end in ("low", "high"):
            caps = alt.Chart(_values(others)).mark_tick(
                orient="horizontal", size=CAP, thickness=1.6
            )
            layers.append(caps.encode(x=x, y=alt.Y(f"{end}:Q"), color=colour))
    for beaten in (True, False):
        some = [point for point in others if point["beaten"] == beaten]
        marks = alt.Chart(_values(some)).encode(**at, color=colour, description="told:N")
        kind = marks.mark_point(filled=not beaten, size=70, opacity=1, strokeWidth=1.8)
        layers += [kind.encode(shape=shape)] if some else []
    control = alt.Chart(_values([point for point in data if point["control"]]))
    layers.append(
        control.mark_point(filled=True, size=80, opacity=1, color=TEXT).encode(
            **at, description="told:N"
        )
    )
    for align in ("left", "center", "right"):
        some = [each for each in named if each["align"] == align]
        words = alt.Chart(_values(some)).mark_text(
            color=TEXT, fontSize=11, baseline="middle", align=align
        )
        layers += [words.encode(**at, text="text:N")] if some else []
    return _configured(alt.layer(*layers).properties(width=inner, height=height))


def _reaching(mine, across, up) -> list[dict[str, Any]]:
    """A line's corners with its ends at the edges: nothing needs less, and nothing is faster."""
    first, last = mine[0], mine[-1]
    ends = [first | {"value": up.high}, *mine, last | {"x": across.high}]
    return [each | {"order": order} for order, each in enumerate(ends)]


def _named(data, corners, across, up, *, names: bool) -> list[dict[str, Any]]:
    """Names or numbers beside the marks, each with its leader line where it has one."""
    height = up.pixels
    wanted, bars = [], []
    for point in data:
        at = across.at(point["x"])
        word = point["name"] if names else "" if point["control"] else point["number"]
        here = at, height - up.at(point["value"])
        bars.append(labels.around(*here))
        # Marks of one variant on top of each other, in several series, share their name.
        if word and not any(w == word and dist(here, there) < CLOSE for *there, w in wanted):
            wanted.append((*here, word))
        ends = height - up.at(point["high"]), height - up.at(point["low"])
        bars.append(labels.Box(at - 1, ends[0], at + 1, ends[1]))
    lines = []
    for name in dict.fromkeys(corner["series"] for corner in corners):
        mine = _reaching([each for each in corners if each["series"] == name], across, up)
        for one, other in pairwise(mine):
            level = height - up.at(one["value"])
            ends = across.at(one["x"]), across.at(other["x"])
            lines.append((ends[0], level, ends[1], level))
            lines.append((ends[1], level, ends[1], height - up.at(other["value"])))
    lines.append((0.0, height - up.at(1.0), across.pixels, height - up.at(1.0)))
    lines.append((across.at(1.0), 0.0, across.at(1.0), height))
    found = []
    size = (across.pixels, height)
    for label in labels.placed(wanted, bars, lines, size):
        from_x, from_y, to_x, to_y = label.leader or (0.0, 0.0, 0.0, 0.0)
        found.append(
            {
                "text": label.text,
                "align": label.align,
                "x": across.value(label.anchor),
                "value": up.value(height - label.y),
                "led": label.leader is not None,
                "from_x": across.value(from_x),
                "to_x": across.value(to_x),
                "from_y": up.value(height - from_y),
                "to_y": up.value(height - to_y),
            }
        )
    return found
