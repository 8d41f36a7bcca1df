"""Charts of many points: what several harnesses say of each workload, raw samples, and figures that
were measured twice."""

from collections.abc import Sequence

import altair as alt

from anatomy.figures.charts import grammar
from anatomy.figures.charts.grammar import (
    BAND,
    BETTER,
    MUTED,
    TEXT,
    WORSE,
    Data,
    Spec,
    Titles,
)
from anatomy.figures.charts.loglog import powers_of_ten, steps_of_ten

MARK = 6  # pixels of a small mark
TALL = 1.15  # times a row: marks, one for each series, must stay apart in it


def harnesses(points: Data, title: str, logarithmic: bool = False, *, width: int) -> Spec:
    """One row per workload (`label`) and one mark per harness (`series`) in it. An axis that is not
    logarithmic has a rule at 0 and is linear around it; far out, where a short kernel's bias lies,
    it is logarithmic too, so its ticks are powers of ten on both sides."""
    names = grammar.members(points)
    scale = alt.Scale(type="log") if logarithmic else alt.Scale(type="symlog", constant=1)
    axis = alt.Axis(grid=True, tickCount=6)
    if not logarithmic:
        values = [point["value"] for point in points]
        steps = sorted({0, *(sign * 10**power for power in range(5) for sign in (1, -1))})
        axis.values = [step for step in steps if min(values) <= step <= max(values)]
    x = alt.X("value:Q", scale=scale, title=title, axis=axis)
    room = width - grammar.label_width(points, width)  # the legend begins where the plot does
    colour, shape = grammar.series(names, grammar.legend(names, room))
    rows, labels, height = grammar.row_names(points, width, code=False)
    # A label in the plot stands above the middle of its row: there the marks begin at the middle.
    slots = [*(" " * number for number in range(1, len(names))), *names] if labels else names
    beside = alt.YOffset("series:N", scale=alt.Scale(domain=slots))
    base = grammar.on(points, y=rows, yOffset=beside, description="hover:N")
    layers = [] if logarithmic else [grammar.dashed([{"value": 0.0}], x="value:Q")]
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


def pairs(points: Data, names: Sequence[str], titles: Titles, *, width: int) -> Spec:
    """One figure of each row (`x`) against another of it (`value`), both logarithmic, with the
    diagonal on which they are equal: on two machines, or on two occasions. A point has the ends of
    both intervals (`x_low` to `x_high`, `low` to `high`) where these are to be drawn, if they reach
    beyond its mark. `names` are the series, at most three: as expected, surprising, in between."""
    ends = grammar.ends_of(points, "x", "value")
    room = (max(ends) / min(ends)) ** 0.04 * 1.05
    low, high = min(ends) / room, max(ends) * room
    steps = [step for step in steps_of_ten(low, high) if low <= step <= high]
    steps = steps if len(steps) <= 9 else powers_of_ten(low, high)
    axis, scale = alt.Axis(values=steps, format="~g"), grammar.log_scale(low, high)
    x = alt.X("x:Q", title=titles[0], scale=scale, axis=axis)
    y = alt.Y("value:Q", title=titles[1], scale=scale, axis=axis)
    where = grammar.legend(names, width)
    colours, shapes = (BETTER, WORSE, MUTED), ("circle", "triangle-down", "square")
    colour, shape = grammar.series(names, where, "series", colours, shapes)
    diagonal = grammar.on([{"x": end, "value": end} for end in (low, high)], x=x, y=y)
    layers = [diagonal.mark_line(color=TEXT, strokeWidth=1.2)]
    seen_from = (high / low) ** (MARK / width)  # the factor that a mark reaches over
    moved = [point for point in points if "low" in point]
    across = [point for point in moved if point["x_high"] / point["x_low"] > seen_from]
    up = [point for point in moved if point["high"] / point["low"] > seen_from]
    thin = {"opacity": alt.value(0.7), "color": colour, "thick": 1}
    if up:
        layers.append(grammar.intervals(grammar.on(up, x=x), **thin))
    if across:
        ends = grammar.on(across, x="x_low:Q", x2="x_high:Q", y=y, color=colour)
        layers.append(ends.mark_rule(strokeWidth=1, opacity=0.7))
    for shown, seen in (([p for p in points if "low" not in p], 0.5), (moved, 1)):
        if shown:
            marks = grammar.on(shown, x=x, y=y, color=colour, shape=shape)
            marks = marks.encode(description="hover:N") if seen == 1 else marks
            layers.append(marks.mark_point(filled=True, size=24, opacity=seen))
    return grammar.framed(layers, width, min(width, 340))
