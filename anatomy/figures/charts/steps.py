"""A cost that goes in steps: marks beside the staircase fitted to them, or beside predictions; and
what is told in its order."""

from collections.abc import Sequence

import altair as alt

from anatomy.figures.charts import grammar
from anatomy.figures.charts.grammar import MUTED, SERIES, Data, Spec, Titles


def staircase(
    points: Data, corners: Data, edges: Data, titles: Titles, levels: Data = (), *, width: int
) -> Spec:
    """Marks with intervals at `x`, the line that was fitted through `corners` or one from mark to
    mark, at the `edges` of steps a dashed line with its `text`, and one across at the `value` of
    each of the `levels`, the text of the first over it, that of others well under it."""
    last, top = (max(grammar.ends_of(points, end)) for end in ("x", "high"))
    axis = alt.Axis(grid=False, tickCount=width // 80)
    scale = alt.Scale(domain=[0, last if corners else 1.03 * last], nice=bool(corners))
    x = alt.X("x:Q", title=titles[0], axis=axis, scale=scale)
    y = alt.Y("value:Q", title=titles[1], scale=alt.Scale(domain=[0, 1.08 * top]))
    base = grammar.on(points, x=x, y=y, description="hover:N")
    above = {"align": "left", "baseline": "top", "dx": 4, "color": MUTED}
    layers = [
        grammar.dashed(edges, x="x:Q"),
        grammar.words(grammar.on(edges, x="x:Q", y=alt.value(2)), how=above),
        grammar.on(corners or points, x=x, y=y).mark_line(color=SERIES[0], strokeWidth=1.8),
        grammar.intervals(base, color=alt.value(grammar.TEXT)),
        grammar.dots(base, 34, color=alt.value(SERIES[bool(corners)]), shape=alt.value("circle")),
    ]
    for number, level in enumerate(levels):
        layers.append(grammar.dashed([level], y="value:Q"))
        how = {"align": "right", "baseline": "bottom", "dx": -2, "dy": 34 if number else -3}
        name = grammar.on([level], x=alt.value("width"), y="value:Q")
        layers.append(grammar.words(name, how=how | {"color": MUTED}))
    return grammar.framed(layers, width, 250)


def predicted(points: Data, ticks: Sequence[float], titles: Titles, *, width: int) -> Spec:
    """Marks with intervals at `x` of one series, from 0 on both axes; what was `predicted` of each
    is a hollow mark, larger, so that both are seen where they meet."""
    last, top = (max(grammar.ends_of(points, end)) for end in ("x", "high"))
    scale = alt.Scale(domain=[-0.02 * last, 1.02 * last], nice=False)
    x = alt.X("x:Q", title=titles[0], axis=alt.Axis(values=list(ticks), grid=False), scale=scale)
    y = alt.Y("value:Q", title=titles[1], scale=alt.Scale(domain=[0, 1.08 * top]))
    base = grammar.on(points, x=x, y=y, description="hover:N")
    hollow = grammar.on(points, x=x, y="predicted:Q")
    layers = [
        hollow.mark_point(filled=False, size=70, opacity=1, strokeWidth=1.2, color=SERIES[1]),
        grammar.intervals(base, color=alt.value(SERIES[0])),
        grammar.dots(base, 34, color=alt.value(SERIES[0]), shape=alt.value("circle")),
    ]
    return grammar.framed(layers, width, 190)


def in_order(points: Data, titles: Titles, *, width: int) -> Spec:
    """Ratios at `x` as they came, in a line around the one of 1; no axis is shorter than 10 %, or
    it would show noise as if it were much."""
    ends = [0.95, 1.05, *grammar.ends_of(points, "value")]
    scale = alt.Scale(domain=[min(ends), max(ends)], nice=False, zero=False)
    axis = alt.Axis(grid=False, tickCount=width // 80)
    x = alt.X("x:Q", title=titles[0], axis=axis, scale=alt.Scale(nice=False))
    y = alt.Y("value:Q", title=titles[1], scale=scale)
    blue = alt.value(SERIES[0])
    line = grammar.through(points, 1.6, "step-after", x=x, y=y, color=blue)
    told = grammar.dots(grammar.on(points, x=x, y=y, description="hover:N"), 12, color=blue)
    return grammar.framed([grammar.one("y"), line, told], width, 150)
