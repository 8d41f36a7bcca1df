"""Charts of many points a row: what several harnesses say of each workload, and raw samples."""

import altair as alt

from anatomy.figures.charts import grammar
from anatomy.figures.charts.grammar import BAND, DESK, TEXT, Data, Spec

TALL = 30  # pixels: a row whose marks, one for each series, must stay apart


def harnesses(points: Data, title: str, logarithmic: bool = False, *, width: int) -> Spec:
    """One row per workload (`label`) and one mark per harness (`series`) in it. An axis that is not
    logarithmic has a rule at 0 and is linear around it; far out, where a short kernel's bias lies,
    it is logarithmic too."""
    names = grammar.members(points)
    scale = alt.Scale(type="log") if logarithmic else alt.Scale(type="symlog", constant=1)
    x = alt.X("value:Q", scale=scale, title=title, axis=alt.Axis(grid=True, tickCount=6))
    colour, shape = grammar.series(names, grammar.legend(columns=0 if width >= DESK else 2))
    rows = grammar.row_names(points, grammar.label_width(points, width))
    beside = alt.YOffset("series:N", sort=names)
    base = grammar.on(points, y=rows, yOffset=beside, description="hover:N")
    layers = [] if logarithmic else [grammar.dashed([{"value": 0.0}], x="value:Q")]
    layers.append(grammar.dots(base, 62, x=x, color=colour, shape=shape))
    return grammar.framed(layers, width, len(grammar.members(points, "label")) * TALL)


def samples(points: Data, bands: Data, title: str, *, width: int) -> Spec:
    """Raw samples over the blocks that they were taken in, with each block's median. A point has
    `block` (from 1), `series`, `value` and `median` (of its block and series); a band of a series
    is the interval of the median over the blocks."""
    names, blocks = grammar.members(points), sorted({point["block"] for point in points})
    colour, shape = grammar.series(names, grammar.legend())
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
