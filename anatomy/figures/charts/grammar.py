"""What all charts are made of: colours, shapes, axes, layers, and the frame around them.

A chart is a function of plain data that returns its Vega-Lite specification for a `width` in
pixels. Of its data, `hover` is what a reader is told who points at a mark, `low` and `high` are an
interval's ends, and `series` is drawn by colour and shape: shapes and labels say what colours say.
"""

import json
from collections.abc import Sequence
from math import log2
from typing import Any, Self

import altair as alt
from altair.utils import parse_shorthand, schemapi

from anatomy.table.units import percent

Spec = dict[str, Any]
Data = Sequence[dict[str, Any]]  # a mark each
Titles = tuple[str, str]  # of the horizontal axis and of the vertical one

TEXT, MUTED, GRID = "var(--chart-text)", "var(--chart-muted)", "var(--chart-grid)"
BAND, TONE = "var(--chart-band)", "var(--chart-tone)"
BETTER, WORSE = "var(--chart-better)", "var(--chart-worse)"
PAPER = "var(--md-default-bg-color)"  # the page's own colour
SERIES = [f"var(--chart-{number})" for number in range(1, 7)]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
ROW, CHARACTER, GAP = 26, 6.3, 12  # pixels: a row, a letter of a label, its distance from the axis
CODE = 6.7  # pixels: a letter of code
STACKED = 40  # pixels: a row whose name stands above its mark
# Pixels of a series' mark in the legend, and behind its name: a browser's letters may be wider than
# those that the picture was drawn with.
KEY, BEHIND = 32, 20
DESK = 500  # pixels: a wider picture is a desk's, a narrower one a phone's
APART = 6  # pixels between two labels of an axis, at least: some browsers' letters are wider
FONT = "system-ui, sans-serif"
MONOSPACE = "monospace"  # the stylesheet knows it by this name
LOG_TICKS = [base * 10.0**power for power in range(-3, 4) for base in (1, 1.5, 2, 3, 5, 7)]
BESIDE = 2  # pixels from the interval of a series to that of the next
LINE = 2  # pixels: a band that is thinner can't be told from the line at 1
FAR = 4  # from this factor between them on, ratios are drawn on a logarithmic axis


class Points(alt.Data):
    """Data as they are; Altair by itself looks at each value for what it might stand for."""

    def to_dict(self, *_, **__) -> Spec:
        """As of any data."""
        return {"values": list(self.values)}


class Layer(alt.Chart):
    """A chart whose channels may be named in short, such as `low:Q`, or be an `alt.value`; Altair
    by itself searches its whole schema for the class of each."""

    def encode(self, **channels: Any) -> Self:
        """As of any chart, of channels by keyword alone."""
        return super().encode(**{name: _channel(name, each) for name, each in channels.items()})


def _channel(name: str, given: Any) -> Any:
    kind = name[0].upper() + name[1:]
    if type(given) is str:
        return getattr(alt, kind)(given)
    if type(given) is dict and given.keys() == {"value"}:
        return getattr(alt, f"{kind}Value")(**given)
    return given


def on(data: Data, **channels: Any) -> Layer:
    """A layer of these data and channels, before it has its mark."""
    # Each step of making a chart copies all lists in it, and no tuple.
    return Layer(Points(values=tuple(data))).encode(**channels)


def members(data: Data, field: str = "series") -> list:
    """The different values of a field, as they come."""
    return list(dict.fromkeys(point[field] for point in data))


def legend(names: Sequence = (), width: float = 0, **how: Any) -> alt.Legend:
    """A legend above the plot, in columns where `width` pixels do not hold all names in a row."""
    sizes = [len(str(name)) * CHARACTER + KEY for name in names]
    columns = 0 if sum(sizes) <= width or not sizes else max(1, int(width // max(sizes)))
    usual = {"orient": "top", "title": None, "symbolSize": 70, "columns": columns}
    usual |= {"columnPadding": BEHIND, "labelLimit": 0}
    return alt.Legend(**usual | how)


def series(
    names: Sequence, where: alt.Legend | None, field="series", colours=SERIES, shapes=SHAPES
) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape of each series; there are at least as many of both as series."""
    name, how = f"{field}:N", {"sort": names, "legend": where}
    colour = alt.Scale(domain=names, range=list(colours[: len(names)]))
    shape = alt.Scale(domain=names, range=list(shapes[: len(names)]))
    return alt.Color(name, scale=colour, **how), alt.Shape(name, scale=shape, **how)


def dashed(data: Data, dash: Sequence[float] = (4, 3), **at: Any) -> alt.Chart:
    """A line across the plot at what other values are held against."""
    return on(data, **at).mark_rule(color=MUTED, strokeDash=list(dash))


def one(axis: str) -> alt.Chart:
    """The line at a ratio of 1, across axis `x` or `y`."""
    return dashed([{"value": 1.0}], **{axis: "value:Q"})


def noise(floor: float, axis: str) -> alt.Chart:
    """The band of the noise floor around a ratio of 1, across axis `x` or `y`."""
    band = [{"from": 1 - floor, "to": 1 + floor}]
    return on(band, **{axis: "from:Q", f"{axis}2": "to:Q"}).mark_rect(color=BAND, stroke=BAND)


def intervals(layer: alt.Chart, axis: str = "y", thick: float = 1.6, **channels: Any) -> alt.Chart:
    """A line from `low` to `high` of each point, along axis `x` or `y`."""
    ends = {axis: "low:Q", f"{axis}2": "high:Q"}
    return layer.mark_rule(strokeWidth=thick).encode(**ends, **channels)


def abreast(points: Data, x: alt.X, colour: alt.Color) -> list[alt.Chart]:
    """Upright intervals, those of several series side by side where they are of one coordinate."""
    names, layers = members(points), []
    for number, name in enumerate(names):
        mine = on([each for each in points if each["series"] == name], x=x, description="hover:N")
        aside = BESIDE * (number - (len(names) - 1) / 2)
        rule = mine.mark_rule(strokeWidth=1.6, xOffset=aside)
        layers.append(rule.encode(y="low:Q", y2="high:Q", color=colour))
    return layers


def through(points: Data, thick: float, shape: str = "linear", **channels: Any) -> alt.Chart:
    """A line through the points of each series. It tells nothing: it would say of all of it what
    holds at its first point."""
    return on(points, **channels).mark_line(strokeWidth=thick, interpolate=shape)


def dots(layer: alt.Chart, size: int = 70, **channels: Any) -> alt.Chart:
    """A filled mark of so many square pixels for each point."""
    return layer.mark_point(filled=True, size=size, opacity=1).encode(**channels)


def words(layer: alt.Chart, field: str = "text", how: Any = None, **channels: Any) -> alt.Chart:
    """The text of each point, set as `how` says."""
    style = {"color": TEXT, "fontSize": 11} | (how or {})
    return layer.mark_text(**style).encode(text=f"{field}:N", **channels)


def ratio_axis(
    ratios: Sequence[float],
    before: float,
    after: float,
    ticks: int,
    title: str = "",
    noise: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Title, scale and axis of ratios, logarithmic where they are far apart; `before` and `after`
    are free room at the ends, as shares of the span of the data. `noise` is the floor that a band
    shows, and the pixels that the axis is long."""
    low, high = min(ratios), max(ratios)
    log = high / low > FAR
    if log:
        span = log2(high / low)
        domain = [low * 2 ** (-before * span), high * 2 ** (after * span)]
        shown = [tick for tick in LOG_TICKS if domain[0] <= tick <= domain[1]]
        kind, axis = "log", alt.Axis(values=shown, format="~g")
    else:
        domain = [low - before * (high - low), high + after * (high - low)]
        kind, axis = "linear", alt.Axis(tickCount=ticks)
    said = [noise_said(noise[0], domain, noise[1], log=log)] if noise and noise[0] else []
    scale = alt.Scale(type=kind, domain=domain, nice=False, zero=False)
    lines = [title, *said]
    if noise and len(f"{title}, log scale") * CHARACTER > noise[1]:  # an axis too short for it
        name, opened, interval = title.partition(" (")
        brief = (each.partition(": thinner")[0] for each in said)
        lines = [name, ", ".join((interval.removesuffix(")"), *brief))] if opened else lines
    return {"scale": scale, "axis": axis, "title": lines if len(lines) > 1 else title}


def log_scale(low: float, high: float, **how: Any) -> alt.Scale:
    """A logarithmic scale that ends where it is told to."""
    return alt.Scale(type="log", domain=[low, high], nice=False, **how)


def ends_of(data: Data, *fields: str) -> list[float]:
    """The values of these fields, by default of the intervals' ends, of all points."""
    return [point[field] for point in data for field in fields or ("low", "high")]


def text_width(data: Data, field: str = "text", gap: float = GAP) -> float:
    """Pixels for the longest text that is written beside its mark."""
    return max(len(point[field]) for point in data) * CHARACTER + gap


def label_width(data: Data, width: int) -> float:
    """Pixels beside the plot for the longest name; none on a phone, where `row_names` stand above
    their marks."""
    return text_width(data, "label", GAP) * CODE / CHARACTER if width > DESK else 0


def row_names(data: Data, width: int, *, code: bool = True) -> tuple[alt.Y, list[alt.Chart], float]:
    """A row for each `label`: the axis, the layers of names, and the height of all rows."""
    names, beside = members(data, "label"), width > DESK
    bare = {"title": None, "ticks": False, "domain": False, "grid": False}
    font = {"labelFont": MONOSPACE} if code else {}
    pixels = label_width(data, width)
    limits = {"minExtent": pixels, "maxExtent": pixels}
    axis = alt.Axis(**bare, labelPadding=6, **limits, **font) if beside else None
    y = alt.Y("label:N", sort=names, title=None, axis=axis)
    if beside:
        return y, [], ROW * len(names)
    # Lines of the plot may pass behind a name: it has an edge in the colour of the page.
    how = {"align": "left", "baseline": "bottom", "dy": -11, "stroke": PAPER, "strokeWidth": 3}
    how |= {"font": MONOSPACE} if code else {}
    above = words(on([{"label": name} for name in names], y=y), "label", how, x=alt.value(0))
    return y, [above], STACKED * len(names)


def middle_axis(names: Sequence[str], **how: Any) -> alt.Axis:
    """An axis with names at the middles of its cells: the first one reaches from 0 to 1."""
    middles = [place + 0.5 for place in range(len(names))]
    named = f"{json.dumps(list(names))}[floor(datum.value)]"
    return alt.Axis(values=middles, labelExpr=named, grid=False, ticks=False, domain=False, **how)


def framed(layers: Sequence[alt.Chart], width: int, height: float) -> Spec:
    """The specification of layers, `width` pixels wide with all that stands beside the plot."""
    return layered(layers, width, height, autosize={"type": "fit-x", "contains": "padding"})


def layered(layers: Sequence[alt.Chart], width: int, height: float, **how: Any) -> Spec:
    """The specification of layers over a plot of this size. They are put together as what they are
    written as: Altair's own chart of layers copies each of them six times."""
    if schemapi.DEBUG_MODE:
        for layer in layers:
            layer.to_dict(context={"top_level": False, "datasets": {}})  # held against its schema
    size = {"width": width, "height": height}
    return configured({"layer": list(map(written, layers)), **size, **how})


def written(part: Any) -> Any:
    """What Altair writes of a part of a chart. By itself it asks of every value, letters of names
    included, whether it might be a table or a date, which takes most of the time of drawing."""
    if isinstance(part, schemapi.SchemaBase) and part._args:  # a word, or another thing in place
        return written(part._args[0])
    if isinstance(part, schemapi.SchemaBase):
        told = {name: each for name, each in part._kwds.items() if each is not alt.Undefined}
        meant = parse_shorthand(told.pop("shorthand")) if "shorthand" in told else {}
        part = {name: each for name, each in meant.items() if name in part._kwds} | told
    if isinstance(part, dict):
        return {name: written(each) for name, each in part.items() if each is not alt.Undefined}
    return list(map(written, part)) if isinstance(part, list | tuple) else part


def noise_said(floor: float, domain: Sequence[float], pixels: float, *, log: bool) -> str:
    """What an axis of ratios says of the noise band around 1, which may be too thin to be seen."""
    high, low, at_most, at_least = 1 + floor, 1 - floor, *reversed(domain)
    if log:
        high, low, at_most, at_least = map(log2, (high, low, at_most, at_least))
    thin = pixels * (high - low) / (at_most - at_least) < LINE
    text = f"noise ±{percent(floor, 2)}"
    return f"{text}: thinner than the line" if thin else f"band: {text}"


def configured(spec: Spec) -> Spec:
    """A specification in the colours of the page; a logarithmic axis says so."""
    small = {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
    axes = {"gridColor": GRID, "domainColor": GRID, "tickColor": GRID}
    # The converter measures a label that has a limit twice, and measuring is most of its time.
    axes |= {"labelSeparation": APART, "labelLimit": 0}
    coloured = {"labelColor": TEXT, "titleColor": MUTED}
    config = alt.Config(
        font=FONT,
        background="transparent",
        padding={"left": 2, "right": 8, "top": 2, "bottom": 2},
        view={"stroke": None},
        axis={**coloured, **small, **axes},
        legend={**coloured, **small, "symbolFillColor": MUTED, "labelLimit": 0},
        header={"labelFontSize": 11, "labelColor": TEXT},
    )
    _name_logarithms(spec)
    return {**spec, "config": config.to_dict(validate=schemapi.DEBUG_MODE)}


def _name_logarithms(spec: Spec) -> None:
    for part in (*spec.get("layer", []), *([spec["spec"]] if "spec" in spec else [])):
        _name_logarithms(part)
    for channel in ("x", "y"):
        axis = spec.get("encoding", {}).get(channel, {})
        if (axis.get("scale") or {}).get("type") == "log" and axis.get("title"):
            first, *others = [axis["title"]] if type(axis["title"]) is str else axis["title"]
            first += "" if "log" in first else ", log scale"
            axis["title"] = [first, *others] if others else first
