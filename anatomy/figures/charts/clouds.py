"""Charts of many points: what several harnesses say of each workload, raw samples, and figures that
were measured twice."""

import altair as alt

from anatomy.figures.charts import grammar
from anatomy.figures.charts.grammar import (
    BAND,
    TEXT,
    Data,
    Spec,
    Titles,
)
from anatomy.figures.charts.loglog import steps_of_ten

# Steps of an axis of factors.
FACTORS = (0.01, 0.1, 0.2, 0.5, 0.7, 1, 1.4, 2, 5, 10, 100)
TALL = 1.15  # times a row: marks, one for each series, must stay apart in it


def harnesses(
    points: Data, title: str, logarithmic: bool = False, near: float = 0.0, *, width: int
) -> Spec:
    """One row per workload (`label`) and one mark per harness (`series`) in it. An axis that is not
    logarithmic has a rule at 0, a band of `near` around it if any, and is linear there; far out,
    where a short kernel's bias lies, it is logarithmic too, so its ticks are powers of ten on both
    sides."""
    names = grammar.members(points)
    scale = alt.Scale(type="log") if logarithmic else alt.Scale(type="symlog", constant=1)
    values = [point["value"] for point in points]
    steps = sorted({0, *(sign * 10**power for power in range(5) for sign in (1, -1))})
    if logarithmic:
        steps = steps_of_ten(min(values), max(values))
    shown = [step for step in steps if min(values) <= step <= max(values)]
    axis = alt.Axis(grid=True, values=shown)
    x = alt.X("value:Q", scale=scale, title=title, axis=axis)
    room = width - grammar.label_width(points, width)  # the legend begins where the plot does
    colour, shape = grammar.series(names, grammar.legend(names, room))
    rows, labels, height = grammar.row_names(points, width, code=False)
    # A label in the plot stands above the middle of its row: there the marks begin at the middle.
    slots = [*(" " * number for number in range(1, len(names))), *names] if labels else names
    beside = alt.YOffset("series:N", scale=alt.Scale(domain=slots))
    base = grammar.on(points, y=rows, yOffset=beside, description="hover:N")
    layers = [] if logarithmic else [grammar.dashed([{"value": 0.0}], x="value:Q")]
    if near:
        band = grammar.on([{"low": -near, "high": near}], x="low:Q", x2="high:Q")
        layers.insert(0, band.mark_rect(color=BAND))
    layers.append(grammar.dots(base, 62, x=x, color=colour, shape=shape))
    return grammar.framed([*layers, *labels], width, height * (1.5 if labels else 1) * TALL)


def samples(points: Data, bands: Data, title: str, *, width: int) -> Spec:
    """Raw samples over the blocks that they were taken in, with each block's median. A point has
    `block` (from 1), `series`, `value` and `median` (of its block and series); a band of a series
    is the interval of the median over the blocks."""
    names, blocks = grammar.members(points), sorted({point["block"] for point in points})
    colour, shape = grammar.series(names, grammar.legend(names, width))
    shown = blocks[:: 4 if len(blocks) > 12 else 1]
    x = alt.X("block:O", title="block", axis=alt.Axis(labelAngle=0, values=shown, grid=False))
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False, nice=True))
    base = grammar.on(points, x=x, xOffset=alt.XOffset("series:N", sort=names))
    band = grammar.on(bands, y="low:Q", y2="high:Q", description="hover:N")
    medians = base.mark_point(filled=True, size=46, opacity=1, stroke=TEXT, strokeWidth=0.6)
    layers = [
        band.mark_rect(color=BAND, opacity=0.8),
        base.mark_point(size=12, strokeWidth=0.8, opacity=0.55).encode(y=y, color=colour),
        medians.encode(y="median:Q", color=colour, shape=shape),
    ]
    return grammar.framed(layers, width, 260)


def moved(
    points: Data,
    looks: dict[str, tuple[str, str]],
    titles: Titles,
    reach: float = 1.0,
    farthest: float = 2.0,
    *,
    width: int,
) -> Spec:
    """By which factor (`value`) a figure found before (`x`) came out otherwise when it was found
    again, both logarithmic; on the line at 1 both are the same. `looks` are the colour and the
    shape of each series; none where points have no `series`. A point with
    `hover` has a ring. The band is a factor `reach` to both sides of 1, the axis at least a
    factor `farthest`: one for all panels that are read beside each other."""
    across = grammar.ends_of(points, "x")
    low, high = min(across) / 1.15, max(across) * 1.15
    steps = [step for step in steps_of_ten(low, high) if low <= step <= high]
    axis = alt.Axis(values=steps, format="~g", labelOverlap="greedy")
    x = alt.X("x:Q", title=titles[0], scale=grammar.log_scale(low, high), axis=axis)
    far = max(reach, farthest)
    up = grammar.ends_of(points, "value")
    least, most = min(*up, 1 / far) / 1.05, max(*up, far) * 1.05
    shown = [step for step in FACTORS if least <= step <= most]
    axis = alt.Axis(values=shown, labelExpr="format(datum.value, '~g') + '×'")
    y = alt.Y("value:Q", title=titles[1], scale=grammar.log_scale(least, most), axis=axis)
    band = [{"x": end, "value": 1 / reach, "upper": reach} for end in (low, high)]
    line = grammar.on([{"x": end, "value": 1.0} for end in (low, high)], x=x, y=y)
    layers = [line.mark_line(color=TEXT, strokeWidth=1.2)]
    if reach > 1:
        area = grammar.on(band, x=x, y=y, y2="upper:Q")
        layers.insert(0, area.mark_area(color=BAND, clip=True))
    look = {"color": alt.value(grammar.SERIES[0])}
    if looks:
        colours, shapes = zip(*looks.values(), strict=True)
        colour, shape = grammar.series([*looks], None, "series", colours, shapes)
        look = {"color": colour, "shape": shape}
    for strong in (False, True):
        if some := [point for point in points if ("hover" in point) == strong]:
            marks = grammar.on(some, x=x, y=y, **look)
            marks = marks.encode(description="hover:N") if strong else marks
            ring = {"stroke": TEXT, "strokeWidth": 1.1} if strong else {}
            layers.append(
                marks.mark_point(filled=True, size=24, opacity=1 if strong else 0.4, **ring)
            )
    return grammar.framed(layers, width, 260)
