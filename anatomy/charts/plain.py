"""Charts of recorded rows as Vega-Lite specifications: the plain ones, and what all share.

Each function returns a callable that draws its chart for a width in pixels. Every chart shows 95 %
intervals; ratios stand beside a band of the noise floor and a line at 1; rates under the machine's
ceiling. Shapes and labels say what colours say.
"""

from collections.abc import Callable, Sequence
from math import log2
from typing import Any

import altair as alt

from anatomy import rows, tables, units
from anatomy.errors import UnknownName
from anatomy.rows import Row

Drawn = Callable[[int], dict[str, Any]]

TEXT, MUTED, GRID = "var(--chart-text)", "var(--chart-muted)", "var(--chart-grid)"
BAND, TONE = "var(--chart-band)", "var(--chart-tone)"
SERIES = [f"var(--chart-{number})" for number in range(1, 7)]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
# Verdict -> colour and shape of its mark in a chart of ratios.
MARKS = {
    "slower": ("var(--chart-worse)", "triangle-right"),
    "faster": ("var(--chart-better)", "triangle-left"),
    "same": (MUTED, "circle"),
    "undecided": (MUTED, "diamond"),
    "impossible": ("var(--chart-worse)", "cross"),
}
ROW, CHARACTER, GAP = 26, 6.3, 12  # pixels: a row, a letter of a label, its distance from the axis
FONT = "system-ui, sans-serif"
LOG_TICKS = [base * 10.0**power for power in range(-3, 4) for base in (1, 1.5, 2, 3, 5, 7)]


def times(table: Sequence[Row]) -> Drawn:
    """Times from zero, each with its interval, and the value beside it."""
    table = _measured(table, "median_s")
    size, unit = tables.time_unit([row["median_s"] for row in table])
    data = [
        _point(row, "median_s", size) | {"tone": row.get("role") in ("control", "again")}
        for row in table
    ]
    longest = max(point["high"] for point in data)
    title = f"time, {unit} ({rows.interval_name(table)})"
    return lambda width: _bars(data, title, longest, None, width)


def rates(table: Sequence[Row]) -> Drawn:
    """Work per second, under the machine's ceiling where that is known."""
    table = _measured(table, "rate")
    unit = table[0]["rate_unit"]
    ceilings = {row.get("share_of"): row for row in table if row.get("limit_value")}
    top = max([row["rate"] for row in table] + [r["limit_value"] for r in ceilings.values()])
    size, prefix = next(step for step in reversed(units.PREFIXES) if top >= step[0])
    data = [
        _point(row, "rate", size) | {"tone": row.get("role") in ("control", "again")}
        for row in table
    ]
    rules = [
        {
            "value": row["limit_value"] / size,
            "text": f"{name} {rows.printed(row, 'limit_value')} ({row['limit_kind']})",
        }
        for name, row in ceilings.items()
    ]
    longest = max([point["high"] for point in data] + [rule["value"] for rule in rules])
    title = f"{prefix}{unit} ({rows.interval_name(table)})"
    return lambda width: _bars(data, title, longest, rules, width)


def ratios(table: Sequence[Row], cited: Sequence[Row] = ()) -> Drawn:
    """Time over the control's time, with the noise band around 1.

    Args:
        table: Rows with a ratio; the control has none and is left out.
        cited: Figures of somebody else for the same variants, drawn hollow and without interval.
    """
    table = _measured(table, "ratio")
    floor = max((row.get("noise_floor") or 0.0 for row in table), default=0.0)
    data = []
    for row in table:
        colour, shape = MARKS.get(row.get("verdict"), (MUTED, "circle"))
        data.append(_point(row, "ratio", 1.0) | {"colour": colour, "shape": shape})
    others = [
        {"label": row["variant"], "value": row["ratio"], "told": row["told"]} for row in cited
    ]
    title = f"time / control ({rows.interval_name(table)})"
    return lambda width: _dots(data, others, floor, title, width)


def sweep(table: Sequence[Row], column: str = "median_s") -> Drawn:
    """A column against the alignment in bytes, one line for each factor.

    Args:
        table: Rows with `factor` and `alignment_bytes`; the one without alignment is the control
            that the lines are compared with, drawn as a rule with its interval. Ratios have the
            noise band around 1 in its place, and rates the machine's ceiling beside it.
        column: `median_s`, `rate` or `ratio`.
    """
    floor = max((row.get("noise_floor") or 0.0 for row in table), default=0.0)
    control = next((str(row["variant"]) for row in table if row.get("role") == "control"), "1")
    if column not in rows.INTERVALS:
        raise UnknownName("column with an interval", column, rows.INTERVALS)
    table = _measured(table, column)
    size, title = _axis_of(table, column)
    points, lines = [], []
    for row in table:
        point = _point(row, column, size) | {"factor": row.get("factor")}
        if row.get("alignment_bytes"):
            points.append(point | {"bytes": int(row["alignment_bytes"])})
        elif row.get("role") == "control":
            lines.append(point | {"name": f"{control}: {point['text']}", "dy": 11})
    if column == "ratio":
        lines.append({"value": 1, "low": 1 - floor, "high": 1 + floor, "name": control, "dy": 11})
    limit = next((row for row in table if column == "rate" and row.get("limit_value")), None)
    if limit:
        name = f"{limit['share_of']} {rows.printed(limit, 'limit_value')} ({limit['limit_kind']})"
        ends = dict.fromkeys(("value", "low", "high"), limit["limit_value"] / size)
        lines.append(ends | {"name": name, "dy": -6})
    return lambda width: _lines(points, lines, title, width)


def matrix(cells: Sequence[dict[str, Any]], by: str, series: str, floor: float) -> Drawn:
    """Ratios of several recordings: a panel for each variant, a mark for each of a series.

    Args:
        cells: `variant`, `by`, `series`, `value`, `low`, `high` and `told` of each mark.
        by: Title of the horizontal axis.
        series: Title of the legend.
        floor: The largest noise floor of these rows, drawn as a band around 1.
    """
    return lambda width: _multiples(list(cells), by, series, floor, width)


def _measured(table: Sequence[Row], column: str) -> list[Row]:
    found = [row for row in table if not units.missing(row.get(column))]
    if not found:
        raise UnknownName("column with values to draw", column, _drawable(table))
    return found


def _drawable(table: Sequence[Row]) -> list[str]:
    return [c for c in rows.INTERVALS if any(not units.missing(row.get(c)) for row in table)]


def _point(row: Row, column: str, size: float) -> dict[str, Any]:
    low, high = (row.get(name) for name in rows.INTERVALS[column])
    value = row[column]
    interval = (
        "" if units.missing(low) else f", {rows.interval_name([row])} {_span(row, column, size)}"
    )
    return {
        "label": str(row.get("variant")),
        "value": value / size,
        "low": (value if units.missing(low) else low) / size,
        "high": (value if units.missing(high) else high) / size,
        "text": rows.printed(row, column),
        "told": f"{row.get('variant')}: {rows.printed(row, column)}{interval}",
    }


def _span(row: Row, column: str, size: float) -> str:
    low, high = (row[name] / size for name in rows.INTERVALS[column])
    return units.with_interval(row[column] / size, low, high).partition(" ")[2]


def _axis_of(table: Sequence[Row], column: str) -> tuple[float, str]:
    if column == "ratio":
        return 1.0, "time / control"
    if column == "rate":
        top = max(row["rate"] for row in table)
        size, prefix = next(step for step in reversed(units.PREFIXES) if top >= step[0])
        return size, f"{prefix}{table[0]['rate_unit']}"
    size, unit = tables.time_unit([row["median_s"] for row in table])
    return size, f"time, {unit}"


def _bars(data, title, longest, rules, width) -> dict[str, Any]:
    label = _label_width(data, width)
    beside = _text_width(data)
    scale = alt.Scale(domain=[0, longest * (1 + beside / (width - label - beside))], nice=False)
    base = alt.Chart(_values(data)).encode(y=_names(data, label), description="told:N")
    x = alt.X("value:Q", scale=scale, title=title, axis=alt.Axis(tickCount=width // 90))
    colour = alt.condition("datum.tone", alt.value(TONE), alt.value(SERIES[0]))
    bars = base.mark_bar(height=12, cornerRadiusEnd=2).encode(x=x, color=colour)
    spans = base.mark_rule(color=TEXT, strokeWidth=1.5).encode(x=alt.X("low:Q"), x2="high:Q")
    text = base.mark_text(align="left", dx=6, color=TEXT, fontSize=11).encode(
        x=alt.X("high:Q"), text="text:N"
    )
    layers = [bars, spans, text]
    for rule in rules or []:
        at = alt.Chart(_values([rule]))
        layers.append(at.mark_rule(color=MUTED, strokeDash=[4, 3]).encode(x=alt.X("value:Q")))
        layers.append(
            at.mark_text(align="right", dx=-4, y=-8, color=MUTED, fontSize=11).encode(
                x=alt.X("value:Q"), text="text:N"
            )
        )
    return _spec(alt.layer(*layers), width, rows=len(data))


def _dots(data, others, floor, title, width) -> dict[str, Any]:
    label = _label_width(data, width)
    ends = [1 - floor, 1 + floor] + [point[end] for point in data for end in ("low", "high")]
    ends += [other["value"] for other in others]
    beside = _text_width(data) / (width - label - _text_width(data))
    scale, axis = _ratio_scale(min(ends), max(ends), 0.05, 0.03 + beside, width // 90)
    x = alt.X("value:Q", scale=scale, title=title, axis=axis)
    band = alt.Chart(_values([{"from": 1 - floor, "to": 1 + floor}]))
    shade = band.mark_rect(color=BAND, stroke=BAND).encode(x=alt.X("from:Q"), x2="to:Q")
    one = alt.Chart(_values([{"value": 1.0}])).mark_rule(color=MUTED, strokeDash=[4, 3])
    base = alt.Chart(_values(data)).encode(y=_names(data, label), description="told:N")
    colour = alt.Color("colour:N", scale=None)
    spans = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2="high:Q", color=colour)
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=x, color=colour, shape=alt.Shape("shape:N", scale=None)
    )
    text = base.mark_text(align="left", dx=9, color=TEXT, fontSize=11).encode(
        x=alt.X("high:Q"), text="text:N"
    )
    layers = [shade, one.encode(x=alt.X("value:Q")), spans, dots, text]
    if others:
        theirs = alt.Chart(_values(others)).mark_point(
            size=60, color=SERIES[3], strokeWidth=1.6, yOffset=8
        )
        layers.append(
            theirs.encode(x=alt.X("value:Q"), y=_names(data, label), description="told:N")
        )
    return _spec(alt.layer(*layers), width, rows=len(data))


def _lines(points, reference, title, width) -> dict[str, Any]:
    factors = list(dict.fromkeys(point["factor"] for point in points))
    steps = sorted({point["bytes"] for point in points})
    low = min(point["low"] for point in points + reference)
    high = max(point["high"] for point in points + reference)
    x = alt.X(
        "bytes:O",
        sort=steps,
        title="aligned to at most, bytes",
        axis=alt.Axis(labelAngle=0, grid=False),
    )
    scale = alt.Scale(domain=[0, high * 1.08], nice=True) if low > 0 else alt.Scale()
    y = alt.Y("value:Q", title=f"{title} (95% interval)", scale=scale)
    where = alt.Legend(orient="top", title=None, symbolSize=70)
    colour = alt.Color("factor:N", sort=factors, scale=_series(factors, SERIES), legend=where)
    shape = alt.Shape("factor:N", sort=factors, scale=_series(factors, SHAPES), legend=where)
    # Side by side, because factors that cost nothing would cover each other.
    beside = alt.XOffset("factor:N", sort=factors, scale=alt.Scale(paddingOuter=1))
    base = alt.Chart(_values(points)).encode(x=x, xOffset=beside, description="told:N")
    layers = [
        base.mark_line(strokeWidth=1.6).encode(y=y, color=colour),
        base.mark_rule(strokeWidth=1.6).encode(y=alt.Y("low:Q"), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=70, opacity=1).encode(y=y, color=colour, shape=shape),
    ]
    for each in reference:
        flat = alt.Chart(_values([each]))
        band = flat.mark_rect(color=BAND, stroke=BAND)
        layers.insert(0, band.encode(y=alt.Y("low:Q"), y2="high:Q"))
        layers.append(flat.mark_rule(color=MUTED, strokeDash=[4, 3]).encode(y=alt.Y("value:Q")))
        layers.append(
            flat.mark_text(
                align="right", dy=each["dy"], x=alt.expr("width - 4"), color=MUTED
            ).encode(y=alt.Y("value:Q"), text="name:N")
        )
    return _spec(alt.layer(*layers), width, height=240)


def _multiples(cells, by, series, floor, width) -> dict[str, Any]:
    variants = list(dict.fromkeys(cell["variant"] for cell in cells))
    columns = len(variants) if width > 500 else 2
    members = list(dict.fromkeys(cell["series"] for cell in cells))
    steps = list(dict.fromkeys(cell["by"] for cell in cells))
    ends = [1 - floor, 1 + floor] + [cell[end] for cell in cells for end in ("low", "high")]
    scale, axis = _ratio_scale(min(ends), max(ends), 0.06, 0.06, 5)
    data = [cell | {"panel": cell["variant"].replace("_", "_\n", 1)} for cell in cells]
    where = alt.Legend(orient="top", title=series, symbolSize=60, titleOrient="left", offset=12)
    colour = alt.Color("series:N", sort=members, scale=_series(members, SERIES), legend=where)
    shape = alt.Shape("series:N", sort=members, scale=_series(members, SHAPES), legend=where)
    y = alt.Y("value:Q", scale=scale, title="time / control (95% interval)", axis=axis)
    x = alt.X("by:O", sort=steps, title=by, axis=alt.Axis(labelAngle=0, grid=False))
    beside = alt.XOffset("series:N", sort=members)
    base = alt.Chart().encode(x=x, xOffset=beside, description="told:N")
    layers = alt.layer(
        alt.Chart()
        .mark_rect(color=BAND, stroke=BAND)
        .encode(y=alt.datum(1 - floor), y2=alt.datum(1 + floor)),
        alt.Chart().mark_rule(color=MUTED, strokeDash=[4, 3]).encode(y=alt.datum(1.0)),
        base.mark_rule(strokeWidth=1.6).encode(y=alt.Y("low:Q"), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=45, opacity=1).encode(y=y, color=colour, shape=shape),
    )
    cell = (width - 60) / columns - 16
    drawn = layers.properties(width=cell, height=170, data=_values(data)).facet(
        facet=alt.Facet(
            "panel:N",
            sort=[variant.replace("_", "_\n", 1) for variant in variants],
            title=None,
            header=alt.Header(labelExpr="split(datum.value, '\\n')", labelColor=TEXT),
        ),
        columns=columns,
        spacing=14,
    )
    return _configured(drawn)


def _ratio_scale(low, high, before, after, ticks) -> tuple[alt.Scale, alt.Axis]:
    """Scale and axis of ratios; logarithmic where they are far apart.

    `before` and `after` are free room at the ends, as shares of the span of the data.
    """
    if high / low > 4:
        span = log2(high / low)
        domain = [low * 2 ** (-before * span), high * 2 ** (after * span)]
        shown = [tick for tick in LOG_TICKS if domain[0] <= tick <= domain[1]]
        axis = alt.Axis(values=shown, format="~g")
    else:
        domain = [low - before * (high - low), high + after * (high - low)]
        axis = alt.Axis(tickCount=ticks)
    kind = "log" if high / low > 4 else "linear"
    return alt.Scale(type=kind, domain=domain, nice=False, zero=False), axis


def _text_width(data) -> float:
    """Pixels for the longest value that is written beside its mark."""
    return max(len(point["text"]) for point in data) * CHARACTER + GAP


def _series(members, values) -> alt.Scale:
    return alt.Scale(domain=members, range=values[: len(members)])


def _names(data, label: float) -> alt.Y:
    names = list(dict.fromkeys(point["label"] for point in data))
    axis = alt.Axis(
        title=None,
        ticks=False,
        domain=False,
        grid=False,
        labelPadding=6,
        minExtent=label,
        maxExtent=label,
    )
    return alt.Y("label:N", sort=names, axis=axis)


def _label_width(data, width: int) -> float:
    """Pixels for the longest name, the same in every panel of a figure of the same variants."""
    longest = max(len(point["label"]) for point in data)
    return min(longest * CHARACTER + GAP, width * 0.46)


def _values(data) -> alt.Data:
    return alt.Data(values=data)


def _spec(drawn, width: int, *, rows: int = 0, height: int = 0) -> dict[str, Any]:
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    sized = drawn.properties(width=width, height=height or rows * ROW, autosize=fit)
    return _configured(sized)


def _configured(drawn) -> dict[str, Any]:
    return (
        drawn.configure(font=FONT, background="transparent", padding=2)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=TEXT,
            titleColor=MUTED,
            gridColor=GRID,
            domainColor=GRID,
            tickColor=GRID,
            labelFontSize=11,
            titleFontSize=11,
            titleFontWeight="normal",
            labelLimit=200,
        )
        .configure_legend(
            labelColor=TEXT,
            titleColor=MUTED,
            labelFontSize=11,
            titleFontSize=11,
            titleFontWeight="normal",
            symbolFillColor=MUTED,
        )
        .configure_header(labelFontSize=11, labelColor=TEXT)
        .to_dict()
    )
