"""Charts of many points a row: what several harnesses say of each workload, and raw samples.

They are in the manner of `anatomy.charts.plain`, which has what all charts share.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt

from anatomy.charts.plain import (
    BAND,
    MUTED,
    SERIES,
    SHAPES,
    TEXT,
    Drawn,
    _label_width,
    _names,
    _series,
    _spec,
    _values,
)

# The rows' height for several series, in pixels: their marks must stay apart.
TALL = 30


def harnesses(points: Sequence[dict[str, Any]], title: str, logarithmic: bool = False) -> Drawn:
    """One row per workload and one mark per harness in it.

    Args:
        points: `label` (the row), `series`, `value` and `told` (what hovering says) of each mark.
        title: Of the horizontal axis, with its unit.
        logarithmic: Whether that axis is; otherwise it has a rule at 0 and is linear around it,
            and logarithmic far out, where a short kernel's bias lies.
    """
    data = [dict(point) for point in points]
    return lambda width: _rows(data, title, logarithmic, width)


def samples(points: Sequence[dict[str, Any]], bands: Sequence[dict[str, Any]], title: str) -> Drawn:
    """Raw samples over the blocks that they were taken in, with each block's median.

    Args:
        points: `block` (from 1), `series`, `value` and `median` (of its block and series).
        bands: `series`, `low`, `high` and `told`: the interval of the median over the blocks.
        title: Of the vertical axis, with its unit.
    """
    data, around = [dict(point) for point in points], [dict(band) for band in bands]
    return lambda width: _blocks(data, around, title, width)


def _rows(data, title, logarithmic, width) -> dict[str, Any]:
    label = _label_width(data, width)
    members = list(dict.fromkeys(point["series"] for point in data))
    scale = alt.Scale(type="log") if logarithmic else alt.Scale(type="symlog", constant=1)
    x = alt.X("value:Q", scale=scale, title=title, axis=alt.Axis(grid=True, tickCount=6))
    where = alt.Legend(orient="top", title=None, symbolSize=70, columns=2 if width < 500 else 0)
    colour = alt.Color("series:N", sort=members, scale=_series(members, SERIES), legend=where)
    shape = alt.Shape("series:N", sort=members, scale=_series(members, SHAPES), legend=where)
    base = alt.Chart(_values(data)).encode(
        y=_names(data, label), yOffset=alt.YOffset("series:N", sort=members), description="told:N"
    )
    marks = base.mark_point(filled=True, size=62, opacity=1).encode(x=x, color=colour, shape=shape)
    layers = [marks]
    if not logarithmic:
        zero = alt.Chart(_values([{"value": 0.0}])).mark_rule(color=MUTED, strokeDash=[4, 3])
        layers.insert(0, zero.encode(x=alt.X("value:Q")))
    rows = len({point["label"] for point in data})
    return _spec(alt.layer(*layers), width, height=rows * TALL)


def _blocks(data, bands, title, width) -> dict[str, Any]:
    members = list(dict.fromkeys(point["series"] for point in data))
    blocks = sorted({point["block"] for point in data})
    where = alt.Legend(orient="top", title=None, symbolSize=70)
    colour = alt.Color("series:N", sort=members, scale=_series(members, SERIES), legend=where)
    shape = alt.Shape("series:N", sort=members, scale=_series(members, SHAPES), legend=where)
    shown = blocks[:: 4 if len(blocks) > 12 else 1]
    x = alt.X("block:O", title="block", axis=alt.Axis(labelAngle=0, values=shown, grid=False))
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False, nice=True))
    beside = alt.XOffset("series:N", sort=members)
    base = alt.Chart(_values(data)).encode(x=x, xOffset=beside)
    layers = [
        alt.Chart(_values(bands))
        .mark_rect(color=BAND, opacity=0.8)
        .encode(y=alt.Y("low:Q"), y2="high:Q", description="told:N"),
        base.mark_point(size=12, strokeWidth=0.8, opacity=0.55).encode(y=y, color=colour),
        base.mark_point(filled=True, size=46, opacity=1, stroke=TEXT, strokeWidth=0.6).encode(
            y=alt.Y("median:Q"), color=colour, shape=shape
        ),
    ]
    drawn = alt.layer(*layers).resolve_scale(y="shared")
    return _spec(drawn, width, height=260)
