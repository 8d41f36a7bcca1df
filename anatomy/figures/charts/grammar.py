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
from altair.utils import schemapi

Spec = dict[str, Any]
Data = Sequence[dict[str, Any]]  # a mark each
Titles = tuple[str, str]  # of the horizontal axis and of the vertical one

TEXT, MUTED, GRID = "var(--chart-text)", "var(--chart-muted)", "var(--chart-grid)"
BAND, TONE = "var(--chart-band)", "var(--chart-tone)"
BETTER, WORSE = "var(--chart-better)", "var(--chart-worse)"
SERIES = [f"var(--chart-{number})" for number in range(1, 7)]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
ROW, CHARACTER, GAP = 26, 6.3, 12  # pixels: a row, a letter of a label, its distance from the axis
DESK = 500  # pixels: a wider picture is a desk's, a narrower one a phone's
FONT = "system-ui, sans-serif"
LOG_TICKS = [base * 10.0**power for power in range(-3, 4) for base in (1, 1.5, 2, 3, 5, 7)]
FAR = 4  # from this factor between them on, ratios are drawn on a logarithmic axis


class Layer(alt.Chart):
    """A chart whose channels may be named in short, such as `low:Q`; Altair by itself searches its
    whole schema for the class of each."""

    def encode(self, **channels: Any) -> Self:
        """As of any chart, of channels by keyword alone."""
        named = {
            name: getattr(alt, name[0].upper() + name[1:])(given) if type(given) is str else given
            for name, given in channels.items()
        }
        return super().encode(**named)


def on(data: Data, **channels: Any) -> Layer:
    """A layer of these data and channels, before it has its mark."""
    # Each step of making a chart copies all lists in it, and no tuple.
    return Layer(alt.Data(values=tuple(data))).encode(**channels)


def members(data: Data, field: str = "series") -> list:
    """The different values of a field, as they come."""
    return list(dict.fromkeys(point[field] for point in data))


def legend(**how: Any) -> alt.Legend:
    """A legend above the plot. Names are whole, and far enough apart for a browser's letters, which
    may be wider than those that they were measured with."""
    room = {"labelLimit": 0, "columnPadding": 26}
    return alt.Legend(**{"orient": "top", "title": None, "symbolSize": 70} | room | how)


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


def dots(layer: alt.Chart, size: int = 70, **channels: Any) -> alt.Chart:
    """A filled mark of so many square pixels for each point."""
    return layer.mark_point(filled=True, size=size, opacity=1).encode(**channels)


def words(layer: alt.Chart, field: str = "text", how: Any = None, **channels: Any) -> alt.Chart:
    """The text of each point, set as `how` says."""
    style = {"color": TEXT, "fontSize": 11} | (how or {})
    return layer.mark_text(**style).encode(text=f"{field}:N", **channels)


def ratio_axis(ratios: Sequence[float], before: float, after: float, ticks: int) -> dict[str, Any]:
    """Scale and axis of ratios, logarithmic where they are far apart; `before` and `after` are free
    room at the ends, as shares of the span of the data."""
    low, high = min(ratios), max(ratios)
    if high / low > FAR:
        span = log2(high / low)
        domain = [low * 2 ** (-before * span), high * 2 ** (after * span)]
        shown = [tick for tick in LOG_TICKS if domain[0] <= tick <= domain[1]]
        kind, axis = "log", alt.Axis(values=shown, format="~g")
    else:
        domain = [low - before * (high - low), high + after * (high - low)]
        kind, axis = "linear", alt.Axis(tickCount=ticks)
    return {"scale": alt.Scale(type=kind, domain=domain, nice=False, zero=False), "axis": axis}


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
    """Pixels for the longest name, the same in every panel of a figure of the same variants."""
    return min(text_width(data, "label"), width * 0.46)


def row_names(data: Data, pixels: float) -> alt.Y:
    """A row for each `label`, whose names take so many pixels."""
    bare = {"title": None, "ticks": False, "domain": False, "grid": False}
    axis = alt.Axis(**bare, labelPadding=6, minExtent=pixels, maxExtent=pixels)
    return alt.Y("label:N", sort=members(data, "label"), axis=axis)


def middle_axis(names: Sequence[str], **how: Any) -> alt.Axis:
    """An axis with names at the middles of its cells: the first one reaches from 0 to 1."""
    middles = [place + 0.5 for place in range(len(names))]
    named = f"{json.dumps(list(names))}[floor(datum.value)]"
    return alt.Axis(values=middles, labelExpr=named, grid=False, ticks=False, domain=False, **how)


def framed(layers: Sequence[alt.Chart], width: int, height: float) -> Spec:
    """The specification of layers, `width` pixels wide with all that stands beside the plot."""
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    return configured(alt.layer(*layers).properties(width=width, height=height, autosize=fit))


def configured(drawn: alt.TopLevelMixin) -> Spec:
    """The specification of a chart, in the colours of the page."""
    small = {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
    axes = {"gridColor": GRID, "domainColor": GRID, "tickColor": GRID, "labelLimit": 200}
    coloured = {"labelColor": TEXT, "titleColor": MUTED}
    # In one call: each copies the chart with all of its data.
    return drawn.configure(
        font=FONT,
        background="transparent",
        padding=2,
        view={"stroke": None},
        axis={**coloured, **small, **axes},
        legend={**coloured, **small, "symbolFillColor": MUTED},
        header={"labelFontSize": 11, "labelColor": TEXT},
    ).to_dict(validate=schemapi.DEBUG_MODE)
