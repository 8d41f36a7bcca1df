"""Charts of recorded rows, each with its interval: bars, ratios, sweeps, and small multiples."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
from altair.utils import schemapi

from anatomy.figures import tables
from anatomy.figures.charts import grammar
from anatomy.figures.charts.grammar import BAND, MUTED, SERIES, TEXT, Data, Spec
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units
from anatomy.table.errors import UnknownName

PANEL = 170  # pixels: the height of one of several panels
# Verdict -> colour and shape of its mark in a chart of ratios.
MARKS = {
    "slower": (grammar.WORSE, "triangle-right"),
    "faster": (grammar.BETTER, "triangle-left"),
    "same": (MUTED, "circle"),
    "undecided": (MUTED, "diamond"),
    "impossible": (grammar.WORSE, "cross"),
}


def bars(table: Sequence[Row], column: str, *, width: int) -> Spec:
    """A column from zero, such as `median_s`, `rate` or a share, each with its interval, and the
    value beside it: a time with its rate, where that is known; rates under the machine's ceiling.
    What is slower than the control has another colour."""
    table = _measured(table, column)
    limited = [row for row in table if column == "rate" and row.get("limit_value")]
    ceilings = list({row.get("share_of"): row for row in limited}.values())
    size, title = _axis_of(table, column, ceilings)
    data = [
        _point(row, column, size) | {"text": _beside(row, column), "colour": _tone(row)}
        for row in table
    ]
    rules = [{"value": row["limit_value"] / size, "text": _limit_name(row)} for row in ceilings]
    label, beside = grammar.label_width(data, width), grammar.text_width(data)
    longest = max(grammar.ends_of(data, "high") + grammar.ends_of(rules, "value")) or 1.0
    domain = [0, longest * (1 + beside / (width - label - beside))]
    y, names, height = grammar.row_names(data, width)
    base = grammar.on(data, y=y, description="hover:N")
    scale, axis = alt.Scale(domain=domain, nice=False), alt.Axis(tickCount=width // 90)
    title += f" ({rows.interval_name(table)})" if column in rows.INTERVALS else ""
    x = alt.X("value:Q", scale=scale, title=title, axis=axis)
    colour = alt.Color("colour:N", scale=None)
    layers = [
        base.mark_bar(height=14, cornerRadiusEnd=2).encode(x=x, color=colour),
        base.mark_rule(color=TEXT, strokeWidth=1.5).encode(x="low:Q", x2="high:Q"),
        grammar.words(base, how={"align": "left", "dx": 6}, x="high:Q"),
        *names,
    ]
    for rule in rules:
        how = {"align": "right", "dx": -4, "y": -8, "color": MUTED}
        layers.append(grammar.dashed([rule], x="value:Q"))
        layers.append(grammar.words(grammar.on([rule]), how=how, x="value:Q"))
    return grammar.framed(layers, width, height)


def ratios(table: Sequence[Row], cited: Sequence[Row] = (), *, width: int) -> Spec:
    """Time over the control's time, with the noise band around 1; the control is left out. Cited
    figures of somebody else for the same variants are hollow and have no interval."""
    table = _measured(table, "ratio")
    floor = rows.noise_floor(table)
    data = []
    for row in table:
        colour, shape = MARKS.get(row.get("verdict"), (MUTED, "circle"))
        text = f"{units.significant(row['ratio'])}×"
        data.append(_point(row, "ratio", 1.0) | {"text": text, "colour": colour, "shape": shape})
    others = [{"label": c["variant"], "value": c["ratio"], "hover": c["hover"]} for c in cited]
    label, beside = grammar.label_width(data, width), grammar.text_width(data)
    ends = [1 - floor, 1 + floor, *grammar.ends_of(data), *grammar.ends_of(others, "value")]
    after = 0.03 + beside / (width - label - beside)
    title, seen = f"time / control ({rows.interval_name(table)})", (floor, width - label)
    x = alt.X("value:Q", **grammar.ratio_axis(ends, 0.05, after, width // 90, title, seen))
    (y, names, height), colour = grammar.row_names(data, width), alt.Color("colour:N", scale=None)
    base = grammar.on(data, y=y, description="hover:N")
    layers = [
        grammar.noise(floor, "x"),
        grammar.one("x"),
        grammar.intervals(base, "x", 2, color=colour),
        grammar.dots(base, x=x, color=colour, shape=alt.Shape("shape:N", scale=None)),
        grammar.words(base, how={"align": "left", "dx": 9}, x="high:Q"),
        *names,
    ]
    if others:
        theirs = grammar.on(others, x="value:Q", y=y, description="hover:N")
        layers.append(theirs.mark_point(size=60, color=SERIES[3], strokeWidth=1.6, yOffset=8))
    return grammar.framed(layers, width, height)


def sweep(table: Sequence[Row], column: str = "median_s", *, width: int) -> Spec:
    """A column with an interval against the alignment in bytes, one line for each factor. The row
    without alignment is the control, drawn as a rule with its interval. Ratios have the noise band
    around 1 in its place, and rates the machine's ceiling beside it."""
    floor = rows.noise_floor(table)
    control = next((str(row["variant"]) for row in table if row.get("role") == "control"), "1")
    if column not in rows.INTERVALS:
        raise UnknownName("column with an interval", column, rows.INTERVALS)
    table = _measured(table, column)
    size, title = _axis_of(table, column)
    points, flat = [], []
    for row in table:
        point = _point(row, column, size) | {"factor": row.get("factor")}
        if row.get("alignment_bytes"):
            points.append(point | {"bytes": int(row["alignment_bytes"])})
        elif row.get("role") == "control":
            flat.append(point | {"name": f"{control}: {point['text']}", "dy": 11})
    if column == "ratio":
        flat.append({"value": 1, "low": 1 - floor, "high": 1 + floor, "name": control, "dy": 11})
    if column == "rate" and (limited := [row for row in table if row.get("limit_value")]):
        ends = dict.fromkeys(("value", "low", "high"), limited[0]["limit_value"] / size)
        flat.append(ends | {"name": _limit_name(limited[0]), "dy": -6})
    factors = grammar.members(points, "factor")
    steps = sorted({point["bytes"] for point in points})
    low, high = (choose(grammar.ends_of(points + flat)) for choose in (min, max))
    axis = alt.Axis(labelAngle=0, grid=False)
    x = alt.X("bytes:O", sort=steps, title="aligned to at most, bytes", axis=axis)
    scale = alt.Scale(domain=[0, high * 1.08], nice=True) if low > 0 else alt.Scale()
    y = alt.Y("value:Q", title=f"{title} ({rows.interval_name(table)})", scale=scale)
    colour, shape = grammar.series(factors, grammar.legend(factors, width), "factor")
    # Side by side, because factors that cost nothing would cover each other.
    beside = alt.XOffset("factor:N", sort=factors, scale=alt.Scale(paddingOuter=1))
    base = grammar.on(points, x=x, xOffset=beside, description="hover:N")
    layers = [
        # Between two alignments there is none: the time changes in steps, midway for every factor.
        grammar.through(points, 1.6, "step", x=x, y=y, color=colour),
        grammar.intervals(base, color=colour),
        grammar.dots(base, y=y, color=colour, shape=shape),
    ]
    for each in flat:  # what holds for every line
        band = grammar.on([each], y="low:Q", y2="high:Q").mark_rect(color=BAND, stroke=BAND)
        named = grammar.on([each], y="value:Q", text="name:N")
        name = named.mark_text(align="right", dy=each["dy"], x=alt.expr("width - 4"), color=MUTED)
        layers = [band, *layers, grammar.dashed([each], y="value:Q"), name]
    return grammar.framed(layers, width, 240)


def matrix(
    cells: Data, by: str, series: str, floor: float, said: str = "95% interval", *, width: int
) -> Spec:
    """Ratios of several recordings: a panel for each variant, a mark for each of a series. `by` and
    `series` are titles, of axis and legend, and `said` is what the intervals are; the largest noise
    floor is a band around 1."""
    if len(grammar.members(cells, "by")) == 1:
        return _one_place(cells, f"{by} = {cells[0]['by']}", floor, said, width)
    # The panel's name is over two lines.
    data = [cell | {"panel": cell["variant"].replace("_", "_\n", 1)} for cell in _said(cells)]
    panels, kinds = grammar.members(data, "panel"), grammar.members(cells)
    columns = len(panels) if width > grammar.DESK else 2
    where = grammar.legend(kinds, width, title=series, symbolSize=60, titleOrient="left", offset=12)
    colour, shape = grammar.series(kinds, where)
    ends, title = [1 - floor, 1 + floor, *grammar.ends_of(cells)], f"time / control ({said})"
    how = grammar.ratio_axis(ends, 0.06, 0.12, 5, title, (floor, PANEL))
    how["axis"].grid = True  # a layer without an axis of its own would take it away
    y = alt.Y("value:Q", **how)
    steps, axis = grammar.members(cells, "by"), alt.Axis(labelAngle=0, grid=False)
    x = alt.X("by:O", sort=steps, title=by, axis=axis)
    beside = alt.XOffset("series:N", sort=kinds)
    base = grammar.Layer().encode(x=x, xOffset=beside, description="hover:N")
    band = alt.Chart().mark_rect(color=BAND, stroke=BAND)
    one = alt.Chart().mark_rule(color=MUTED, strokeDash=[4, 3])
    layers = alt.layer(
        band.encode(y=alt.datum(1 - floor), y2=alt.datum(1 + floor)),
        one.encode(y=alt.datum(1.0)),
        grammar.intervals(base, color=colour),
        grammar.dots(base, 45, y=y, color=colour, shape=shape),
        grammar.words(base, "said", {"dy": -11}, y="value:Q"),
    ).properties(width=(width - 60) / columns - 16, height=PANEL, data=alt.Data(values=data))
    header = alt.Header(labelExpr="split(datum.value, '\\n')", labelColor=TEXT)
    facet = alt.Facet("panel:N", sort=panels, title=None, header=header)
    panels = layers.facet(facet=facet, columns=columns, spacing=14)
    return grammar.configured(panels.to_dict(validate=schemapi.DEBUG_MODE))


def _said(cells: Data) -> Data:
    """Cells of a matrix with what stands over some marks: series and ratio of those at the middle
    coordinate that lie well beyond 1, from the largest down, where there is room between them."""
    coordinates = grammar.members(cells, "by")
    middle, room = coordinates[len(coordinates) // 2], max(cell["high"] for cell in cells) ** 0.12
    above, told = {}, []
    for cell in sorted(cells, key=lambda cell: -cell["value"]):
        last, value = above.get(cell["variant"], float("inf")), cell["value"]
        if cell["by"] == middle and last / value > room and value > 1.1:
            above[cell["variant"]] = value
            told.append(id(cell))

    def text(cell: Mapping[str, Any]) -> str:
        return f"{cell['series']} {units.ratio(cell['value'], cell['low'], cell['high'], most=3)}"

    return [cell | {"said": text(cell) if id(cell) in told else ""} for cell in cells]


def _one_place(cells: Data, where: str, floor: float, said: str, width: int) -> Spec:
    """`matrix` where there is one coordinate alone: a row for each variant, and in it a mark for
    each of a series."""
    data = [cell | {"label": cell["variant"]} for cell in cells]
    kinds, label = grammar.members(data), grammar.label_width(data, width)
    colour, shape = grammar.series(kinds, grammar.legend(kinds, width))
    ends, title = [1 - floor, 1 + floor, *grammar.ends_of(cells)], f"time / control ({said})"
    seen = floor, width - label
    how = grammar.ratio_axis(ends, 0.05, 0.05, width // 90, f"{title}, {where}", seen)
    y, names, height = grammar.row_names(data, width)
    beside = alt.YOffset("series:N", sort=kinds, scale=alt.Scale(paddingOuter=0.8))
    base = grammar.on(data, y=y, yOffset=beside, description="hover:N")
    layers = [
        grammar.noise(floor, "x"),
        grammar.one("x"),
        grammar.intervals(base, "x", color=colour),
        grammar.dots(base, 45, x=alt.X("value:Q", **how), color=colour, shape=shape),
        *names,
    ]
    return grammar.framed(layers, width, height * 1.25)


def _tone(row: Row) -> str:
    """The colour of a row's bar by its verdict."""
    if row.get("role") == "again":
        return grammar.TONE
    return grammar.WORSE if row.get("verdict") in ("slower", "more", "impossible") else SERIES[0]


def _beside(row: Row, column: str) -> str:
    """What stands beside a row's bar: its value as the text prints it, with the interval where that
    is wide, and of a time also the rate."""
    text = rows.printed(row, column) + (rows.if_wide(row, column) or "")
    rated = column == "median_s" and not units.missing(row.get("rate"))
    return f"{text} · {units.rate(row['rate'], row['rate_unit'])}" if rated else text


def _measured(table: Sequence[Row], column: str) -> list[Row]:
    def has(name: str) -> list[Row]:
        return [row for row in table if not units.missing(row.get(name))]

    if not (found := has(column)):
        raise UnknownName("column with values to draw", column, filter(has, rows.INTERVALS))
    return found


def _limit_name(row: Row) -> str:
    return f"{row['share_of']} {rows.printed(row, 'limit_value')} ({row['limit_kind']})"


def _point(row: Row, column: str, size: float) -> dict[str, Any]:
    """A row's mark, its value and interval in units of `size`."""
    value, text = row[column] / size, rows.printed(row, column)
    ends = [row.get(name) for name in rows.INTERVALS.get(column, ("", ""))]
    low, high = (value if units.missing(end) else end / size for end in ends)
    hover = f"{row.get('variant')}: {text}"
    if not units.missing(ends[0]):
        hover += f", {rows.interval_name([row])} {rows.ranged(row, column).removeprefix(text)[1:]}"
    mark = {"label": str(row.get("variant")), "value": value, "low": low, "high": high}
    return mark | {"text": text, "hover": hover}


def _axis_of(table: Sequence[Row], column: str, beside: Sequence[Row] = ()) -> tuple[float, str]:
    """Size and title of the unit in which a column, with the limits beside it, is drawn."""
    if column == "ratio":
        return 1.0, "time / control"
    if column == "rate":
        top = max([row["rate"] for row in table] + [row["limit_value"] for row in beside])
        size, prefix = next(step for step in reversed(units.PREFIXES) if top >= step[0])
        return size, f"{prefix}{table[0]['rate_unit']}"
    if column != "median_s":
        return 0.01, f"{rows.heading(column)}, %"
    size, unit = tables.time_unit([row["median_s"] for row in table])
    return size, f"time, {unit}"
