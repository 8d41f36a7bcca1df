"""Charts with logarithmic axes: bandwidth, the roofline, the ledger, and costs over a size.

They are in the manner of `anatomy.charts.plain`, which has what all charts share.
"""

import json
from collections.abc import Sequence
from math import ceil, floor, log2, log10
from typing import Any

import altair as alt

from anatomy.charts.plain import (
    BAND,
    CHARACTER,
    GAP,
    MUTED,
    SERIES,
    SHAPES,
    TEXT,
    Drawn,
    _ratio_scale,
    _series,
    _spec,
    _values,
)

# Verdict on a claim -> colour and shape of its mark.
VERDICTS = {
    "holds": ("var(--chart-better)", "circle"),
    "holds only where": ("var(--mixed)", "diamond"),
    "fails": ("var(--chart-worse)", "triangle-down"),
    "inconclusive": (MUTED, "square"),
    "not measurable here": (MUTED, "cross"),
}
CLAIM = 19  # pixels of a claim's row
KEY = 24  # pixels of a series' mark in the legend, with the gaps around it
# Roofs whose peaks are no farther apart than this share their label.
CLOSE = 1.25
# Vega names a size in bytes as a power of two.
BYTES = (
    "datum.value < 1048576 ? format(datum.value / 1024, 'd') + ' KiB' : "
    "datum.value < 1073741824 ? format(datum.value / 1048576, 'd') + ' MiB' : "
    "format(datum.value / 1073741824, 'd') + ' GiB'"
)


def bandwidth(
    points: Sequence[dict[str, Any]], rules: Sequence[dict[str, Any]], cache: dict[str, Any]
) -> Drawn:
    """Bandwidth of each operation over its working set, with intervals.

    Args:
        points: `bytes` (the working set), `series`, `value`, `low`, `high` (TB/s) and `told`.
        rules: `value` (TB/s) and `name` of bandwidths that hold for every size.
        cache: `bytes` and `name` of the cache.
    """
    data, across, size = [dict(each) for each in points], [dict(r) for r in rules], dict(cache)
    return lambda width: _bandwidth(data, across, size, width)


def roofline(roofs: Sequence[dict[str, Any]], limits: dict[str, Any]) -> Drawn:
    """The most that a call can reach over its operations per byte, a roof for each format.

    Args:
        roofs: `series`, `peak` (FLOP/s), `ridge` (FLOP per byte), `text` (of the ridge) and `told`
            of each number format.
        limits: `bandwidth` (B/s) under the slope, and `name` of it.
    """
    data, slope = [dict(each) for each in roofs], dict(limits)
    return lambda width: _roofline(data, slope, width)


def claimed(points: Sequence[dict[str, Any]]) -> Drawn:
    """Measured numbers over claimed ones, a row for each claim: 1 where the claim was right.

    Args:
        points: `label`, `value`, `low`, `high` (over the middle of what was claimed, all
            positive), `claimed_low` and `claimed_high` (over the same middle), `many` (whether low
            to high spans several cases), `verdict` and `told`.
    """
    data = [dict(each) for each in points]
    return lambda width: _claimed(data, width)


def payoff(
    points: Sequence[dict[str, Any]],
    ranges: Sequence[dict[str, Any]],
    ticks: Sequence[tuple[Any, str]],
    floor: float,
    titles: tuple[str, str],
    numeric: bool,
) -> Drawn:
    """A ratio over a coordinate, a line for each variant, with the ranges of break-even.

    Args:
        points: `series`, `x`, `value`, `low`, `high`, `told`, and `shown`, whether it was shown to
            differ from 1; the marks of others are hollow.
        ranges: `series`, `at`, `low` and `high` of each break-even, on the horizontal axis.
        ticks: Each coordinate and its name.
        floor: The largest noise floor, drawn as a band around 1.
        titles: Of the horizontal axis and of the vertical one.
        numeric: Whether the coordinate is a number, on a logarithmic axis.
    """
    data, across = [dict(each) for each in points], [dict(each) for each in ranges]
    return lambda width: _payoff(data, across, list(ticks), floor, titles, numeric, width)


def growth(
    points: Sequence[dict[str, Any]],
    fits: Sequence[dict[str, Any]],
    ticks: Sequence[tuple[float, str]],
    titles: tuple[str, str],
) -> Drawn:
    """A cost over a size, both logarithmic, a line for each series.

    Args:
        points: `series`, `x`, `value`, `low`, `high` (in the unit of the title) and `told`.
        fits: `series`, `x` and `value` of the two ends of each fitted line.
        ticks: Each size and its name.
        titles: Of the horizontal axis and of the vertical one.
    """
    data, lines = [dict(each) for each in points], [dict(each) for each in fits]
    return lambda width: _growth(data, lines, list(ticks), titles, width)


def _claimed(data, width) -> dict[str, Any]:
    data = sorted(data, key=lambda point: -point["value"])
    ends = [point[end] for point in data for end in ("claimed_low", "claimed_high", "low", "high")]
    low, high = min(ends) / 1.2, max(ends) * 1.2
    ticks = [tick for tick in _steps(low, high) if low <= tick <= high]
    words = [word for word in VERDICTS if any(point["verdict"] == word for point in data)]
    where = alt.Legend(orient="top", title=None, symbolSize=70, columns=5 if width > 500 else 1)
    colours, shapes = zip(*(VERDICTS[word] for word in words), strict=True)
    colour = alt.Color(
        "verdict:N", sort=words, scale=alt.Scale(domain=words, range=list(colours)), legend=where
    )
    shape = alt.Shape(
        "verdict:N", sort=words, scale=alt.Scale(domain=words, range=list(shapes)), legend=where
    )
    axis = alt.Axis(values=ticks, labelExpr="format(datum.value, '~g') + '×'", orient="top")
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    x = alt.X("value:Q", scale=scale, title="measured / claimed", axis=axis)
    labels = alt.Axis(
        grid=True,
        labelLimit=240,
        labelFontSize=11 if width > 500 else 10.2,
        ticks=False,
        domain=False,
    )
    y = alt.Y("label:N", sort=[point["label"] for point in data], title=None, axis=labels)
    base = alt.Chart(_values(data)).encode(y=y, description="told:N")
    ranges = [point for point in data if point["claimed_low"] < point["claimed_high"]]
    dashed = alt.condition("datum.many", alt.value([2, 3]), alt.value([1, 0]))
    layers = [
        alt.Chart(_values([{"value": 1.0}])).mark_rule(color=MUTED, strokeDash=[6, 4]).encode(x=x),
        base.mark_rule(strokeWidth=1.6).encode(
            x=alt.X("low:Q"), x2="high:Q", color=colour, strokeDash=dashed
        ),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=x, color=colour, shape=shape),
    ]
    if ranges:
        bars = alt.Chart(_values(ranges)).mark_bar(color=MUTED, opacity=0.3, height=9)
        layers.insert(0, bars.encode(y=y, x=alt.X("claimed_low:Q"), x2="claimed_high:Q"))
    return _spec(alt.layer(*layers), width, height=CLAIM * len(data))


def _steps(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten between two numbers; the powers alone if they are far."""
    bases = (1, 2, 5) if high / low < 1e3 else (1,)
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [base * 10.0**power for power in powers for base in bases]


def _bandwidth(data, rules, cache, width) -> dict[str, Any]:
    members = list(dict.fromkeys(point["series"] for point in data))
    sizes = [point["bytes"] for point in data]
    ends = [min(sizes) / 1.3, max(sizes) * 1.3]
    every = 2 if width > 500 else 4
    powers = range(int(log2(min(sizes))), int(log2(max(sizes))) + 1)
    ticks = [2**power for power in powers if (power - 10) % every == 0]
    x = alt.X(
        "bytes:Q",
        scale=alt.Scale(type="log", base=2, domain=ends, nice=False),
        title="working set",
        axis=alt.Axis(values=ticks, labelExpr=BYTES, grid=False),
    )
    top = max([point["high"] for point in data] + [rule["value"] for rule in rules])
    y = alt.Y("value:Q", title="TB/s (95% interval)", scale=alt.Scale(domain=[0, top * 1.1]))
    where = alt.Legend(orient="top", title=None, symbolSize=70)
    colour = alt.Color("series:N", sort=members, scale=_series(members, SERIES), legend=where)
    shape = alt.Shape("series:N", sort=members, scale=_series(members, SHAPES), legend=where)
    base = alt.Chart(_values(data)).encode(x=x, description="told:N")
    layers = []
    for rule in rules:
        flat = alt.Chart(_values([rule])).encode(y=alt.Y("value:Q"))
        layers.append(flat.mark_rule(color=MUTED, strokeDash=[4, 3]))
        # On the right there are the curves; on the left they begin low, so the words stand there.
        words = flat.mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=MUTED)
        layers.append(words.encode(x=alt.value(0), text="name:N"))
    edge = alt.Chart(_values([cache])).encode(x=alt.X("bytes:Q"))
    layers.append(edge.mark_rule(color=MUTED, strokeWidth=1.2))
    words = edge.mark_text(align="right", baseline="bottom", dx=-5, dy=-4, color=MUTED)
    layers.append(words.encode(y=alt.value("height"), text="name:N"))
    layers += [
        base.mark_line(strokeWidth=1.6).encode(y=y, color=colour),
        base.mark_rule(strokeWidth=1.4).encode(y=alt.Y("low:Q"), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=42, opacity=1).encode(y=y, color=colour, shape=shape),
    ]
    return _spec(alt.layer(*layers), width, height=280)


def _roofline(roofs, slope, width) -> dict[str, Any]:
    members = [roof["series"] for roof in roofs]
    ridges = [roof["ridge"] for roof in roofs]
    left = 10 ** int(log10(min(ridges)) - 1)  # a power of ten well left of the first corner
    # The words over a roof stand between its corner and this end.
    right = 10 ** (int(log10(max(ridges))) + (1.3 if width > 500 else 2))
    bottom = slope["bandwidth"] * left
    lines, corners = [], []
    for roof in roofs:
        named = {"series": roof["series"], "told": roof["told"]}
        for at in (left, roof["ridge"], right):
            lines.append(named | {"at": at, "value": min(roof["peak"], at * slope["bandwidth"])})
        corners.append(named | {"at": roof["ridge"], "value": roof["peak"]})
    top = max(roof["peak"] for roof in roofs)
    x = alt.X(
        "at:Q",
        scale=alt.Scale(type="log", domain=[left, right], nice=False),
        title="operations per byte, FLOP/B",
        axis=alt.Axis(values=_decades(left, right), format="~g"),
    )
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(type="log", domain=[bottom, top * 2], nice=False),
        title="the most that a call reaches, FLOP/s",
        axis=alt.Axis(values=_decades(bottom, top * 2), format="~s"),
    )
    where = alt.Legend(orient="top", title=None, symbolSize=70)
    colour = alt.Color("series:N", sort=members, scale=_series(members, SERIES), legend=where)
    shape = alt.Shape("series:N", sort=members, scale=_series(members, SHAPES), legend=where)
    base = alt.Chart(_values(lines)).encode(x=x, y=y, description="told:N")
    at = alt.Chart(_values(corners)).encode(x=x, y=y, description="told:N")
    # At the right end of a roof nothing else is in the way of its words.
    ends = alt.Chart(_values(_labels(roofs)))
    words = ends.mark_text(align="right", baseline="bottom", dx=-2, dy=-3, color=TEXT, fontSize=11)
    under = alt.Chart(_values([{"at": left, "value": bottom, "text": slope["name"]}]))
    layers = [
        base.mark_line(strokeWidth=1.8).encode(color=colour),
        at.mark_point(filled=True, size=70, opacity=1).encode(color=colour, shape=shape),
        words.encode(x=alt.value("width"), y=y, text="text:N"),
        under.mark_text(align="left", baseline="middle", dx=44, dy=-8, color=MUTED).encode(
            x=x, y=y, text="text:N"
        ),
    ]
    return _spec(alt.layer(*layers), width, height=320)


def _labels(roofs) -> list[dict[str, Any]]:
    """What stands over each roof; roofs too close for two lines of text share one."""
    labels: list[dict[str, Any]] = []
    for roof in sorted(roofs, key=lambda each: -each["peak"]):
        text = f"{roof['series']} {roof['text']}"
        if labels and labels[-1]["value"] < CLOSE * roof["peak"]:
            labels[-1]["text"] += f", {text}"
        else:
            labels.append({"value": roof["peak"], "text": text})
    return labels


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten from `low` to `high`."""
    first, last = ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1)]


def _payoff(data, ranges, ticks, floor, titles, numeric, width) -> dict[str, Any]:
    ends = [1 - floor, 1 + floor] + [point[end] for point in data for end in ("low", "high")]
    scale, axis = _ratio_scale(min(ends), max(ends), 0.06, 0.1, 6)
    x = _over_x(ticks, titles[0], numeric, width)
    colour, shape = _members([point["series"] for point in data], width)
    band = alt.Chart(_values([{"from": 1 - floor, "to": 1 + floor}]))
    one = alt.Chart(_values([{"value": 1.0}]))
    base = alt.Chart(_values(data)).encode(x=x, description="told:N")
    y = alt.Y("value:Q", title=titles[1], scale=scale, axis=axis)
    layers = [
        band.mark_rect(color=BAND, stroke=BAND).encode(y=alt.Y("from:Q"), y2="to:Q"),
        one.mark_rule(color=MUTED, strokeDash=[4, 3]).encode(y=alt.Y("value:Q")),
        base.mark_rule(strokeWidth=1.6).encode(y=alt.Y("low:Q"), y2="high:Q", color=colour),
    ]
    if numeric:  # between texts there is nothing for a line to pass
        layers.append(base.mark_line(strokeWidth=1.8).encode(y=y, color=colour))
    for shown in (True, False):
        some = [point for point in data if point["shown"] == shown]
        marks = alt.Chart(_values(some)).encode(x=x, y=y, color=colour, description="told:N")
        filled = marks.mark_point(filled=shown, size=62, opacity=1, strokeWidth=1.8)
        layers += [filled.encode(shape=shape)] if some else []
    if ranges:
        found = alt.Chart(_values(ranges))
        reach = found.mark_rect(opacity=0.13).encode(x=alt.X("low:Q"), x2="high:Q", color=colour)
        where = found.mark_rule(strokeWidth=1.4, strokeDash=[2, 2])
        layers.insert(0, reach)
        layers.append(where.encode(x=alt.X("at:Q"), color=colour))
    return _spec(alt.layer(*layers), width, height=260)


def _growth(data, fits, ticks, titles, width) -> dict[str, Any]:
    low, high = min(point["low"] for point in data), max(point["high"] for point in data)
    domain = [low / 1.25, high * 1.25]
    values = [tick for tick in _steps(*domain) if domain[0] <= tick <= domain[1]]
    if len(values) > 9:
        values = _decades(*domain)
    y = alt.Y(
        "value:Q",
        title=titles[1],
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=values, format="~g"),
    )
    x = _over_x(ticks, titles[0], True, width)
    colour, shape = _members([point["series"] for point in data], width)
    base = alt.Chart(_values(data)).encode(x=x, description="told:N")
    layers = [
        base.mark_line(strokeWidth=1.8).encode(y=y, color=colour),
        base.mark_rule(strokeWidth=1.6).encode(y=alt.Y("low:Q"), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=62, opacity=1).encode(y=y, color=colour, shape=shape),
    ]
    if fits:
        fitted = alt.Chart(_values(fits)).mark_line(strokeWidth=1.2, strokeDash=[5, 4], opacity=0.8)
        layers.insert(0, fitted.encode(x=alt.X("x:Q"), y=alt.Y("value:Q"), color=colour))
    return _spec(alt.layer(*layers), width, height=300)


def _over_x(ticks, title, numeric, width) -> alt.X:
    """A coordinate along the axis: its measured values are the ticks."""
    names = dict(ticks)
    if not numeric:
        slanted = sum(map(len, names)) * CHARACTER > width - 6 * GAP
        plain = alt.Axis(labelAngle=-40 if slanted else 0, grid=False)
        return alt.X("x:O", sort=list(names), title=title, axis=plain)
    sizes = sorted(names)
    room = 1.12 if len(sizes) > 1 else 2
    scale = alt.Scale(type="log", domain=[sizes[0] / room, sizes[-1] * room], nice=False)
    pairs = "".join(f"datum.value == {size} ? {json.dumps(names[size])} : " for size in sizes)
    axis = alt.Axis(
        values=sizes,
        tickCount=len(sizes),
        labelExpr=f"{pairs}''",
        grid=False,
        labelOverlap="greedy",
    )
    return alt.X("x:Q", title=title, scale=scale, axis=axis)


def _members(series, width) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape of each series; a legend where there are several, in columns if long."""
    members = list(dict.fromkeys(series))
    long = sum(len(member) * CHARACTER + KEY for member in members) > width
    several = alt.Legend(
        orient="top", title=None, symbolSize=70, symbolOpacity=1, columns=2 if long else 0
    )
    where = several if len(members) > 1 else None
    return (
        alt.Color("series:N", sort=members, scale=_series(members, SERIES), legend=where),
        alt.Shape("series:N", sort=members, scale=_series(members, SHAPES), legend=where),
    )
