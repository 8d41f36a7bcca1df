"""Charts of what happened when: boxes in lanes over time.

They are in the manner of `anatomy.charts.plain`, which has what all charts share.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt

from anatomy.charts.plain import GRID, SERIES, TEXT, Drawn, _series, _spec, _values

# Kind of event -> its colour, and its height as a share of the lane: never colour alone.
KINDS = {
    "launch": (SERIES[0], 0.45),
    "wait": (SERIES[1], 0.9),
    "kernel": (SERIES[2], 0.9),
    "copy": (SERIES[3], 0.45),
}
HOLLOW = ("wait",)  # drawn as a frame: nothing is done there
LANE = 46  # pixels


def timeline(
    boxes: Sequence[dict[str, Any]], lanes: Sequence[str], longest: float, unit: str
) -> Drawn:
    """Events as boxes, from their start to their end, each in its lane.

    Args:
        boxes: `lane`, `kind` (one of `KINDS`), `start`, `end` and `told` of each event.
        lanes: All lanes, from above.
        longest: Where the axis ends, so that several runs have the same scale.
        unit: Of the times.
    """
    data = [dict(box) for box in boxes]
    return lambda width: _timeline(data, list(lanes), longest, unit, width)


def _timeline(data, lanes, longest, unit, width) -> dict[str, Any]:
    cells = []
    for box in data:
        middle = len(lanes) - lanes.index(box["lane"]) - 0.5
        half = KINDS[box["kind"]][1] / 2
        cells.append(
            {name: box[name] for name in ("kind", "start", "end", "told")}
            | {"low": middle - half, "high": middle + half}
        )
    x = alt.X(
        "start:Q",
        scale=alt.Scale(domain=[0, longest], nice=False),
        title=f"time since the first event, {unit}",
        axis=alt.Axis(grid=True, tickCount=8 if width > 500 else 4),
    )
    names = " : ".join(
        f"datum.value == {len(lanes) - place - 0.5} ? '{lane}'" for place, lane in enumerate(lanes)
    )
    y = alt.Y(
        "low:Q",
        scale=alt.Scale(domain=[0, len(lanes)], nice=False),
        title=None,
        axis=alt.Axis(
            values=[place + 0.5 for place in range(len(lanes))],
            labelExpr=f"{names} : ''",
            grid=False,
            ticks=False,
            domain=False,
            minExtent=34,
        ),
    )
    kinds = [kind for kind in KINDS if any(cell["kind"] == kind for cell in cells)]
    scale = _series(kinds, [KINDS[kind][0] for kind in kinds])
    legend = alt.Legend(orient="top", title=None, symbolType="square", symbolSize=90)
    colour = alt.Color("kind:N", sort=kinds, scale=scale, legend=legend)
    layers = []
    between = [{"at": place} for place in range(1, len(lanes))]
    layers.append(
        alt.Chart(_values(between)).mark_rule(color=GRID).encode(y=alt.Y("at:Q", title=None))
    )
    for hollow in (False, True):
        some = [cell for cell in cells if (cell["kind"] in HOLLOW) == hollow]
        if some:
            drawn = alt.Chart(_values(some)).mark_rect(
                fillOpacity=0.18 if hollow else 0.9,
                strokeWidth=1.2 if hollow else 0.5,
                strokeDash=[3, 2] if hollow else [1, 0],
                stroke=TEXT if hollow else None,
            )
            layers.append(
                drawn.encode(x=x, x2="end:Q", y=y, y2="high:Q", color=colour, description="told:N")
            )
    return _spec(alt.layer(*layers), width, height=LANE * len(lanes))
