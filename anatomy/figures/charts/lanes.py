"""Charts of what happened when: boxes in lanes over time."""

from collections.abc import Sequence

import altair as alt

from anatomy.figures.charts import grammar
from anatomy.figures.charts.grammar import DESK, GRID, SERIES, TEXT, Data, Spec

# Kind of event -> its colour, and its height as a share of the lane: never colour alone.
KINDS = {
    "launch": (SERIES[0], 0.45),
    "wait": (SERIES[1], 0.9),
    "kernel": (SERIES[2], 0.9),
    "copy": (SERIES[3], 0.45),
}
HOLLOW = ("wait",)  # drawn as a frame: nothing is done there
LANE = 46  # pixels


def timeline(boxes: Data, lanes: Sequence[str], longest: float, unit: str, *, width: int) -> Spec:
    """Events as boxes, from their `start` to their `end`, each in its `lane`; lanes from above. A
    `kind` is of `KINDS`. The axis ends at `longest`, so that several runs have the same scale."""
    cells = []
    for box in boxes:
        middle, half = len(lanes) - lanes.index(box["lane"]) - 0.5, KINDS[box["kind"]][1] / 2
        cells.append(box | {"low": middle - half, "high": middle + half})
    ticks = alt.Axis(grid=True, tickCount=8 if width > DESK else 4)
    until = alt.Scale(domain=[0, longest], nice=False)
    x = alt.X("start:Q", scale=until, title=f"time since the first event, {unit}", axis=ticks)
    axis = grammar.middle_axis(lanes[::-1], minExtent=34)
    y = alt.Y("low:Q", scale=alt.Scale(domain=[0, len(lanes)], nice=False), title=None, axis=axis)
    kinds = [kind for kind in KINDS if any(cell["kind"] == kind for cell in cells)]
    legend = grammar.legend(symbolType="square", symbolSize=90)
    colour, _ = grammar.series(kinds, legend, "kind", [KINDS[kind][0] for kind in kinds])
    between = [{"at": place} for place in range(1, len(lanes))]
    layers = [grammar.on(between, y=alt.Y("at:Q", title=None)).mark_rule(color=GRID)]
    full = {"fillOpacity": 0.9, "strokeWidth": 0.5, "strokeDash": [1, 0], "stroke": None}
    frame = {"fillOpacity": 0.18, "strokeWidth": 1.2, "strokeDash": [3, 2], "stroke": TEXT}
    for look, hollow in ((full, False), (frame, True)):
        if some := [cell for cell in cells if (cell["kind"] in HOLLOW) == hollow]:
            box = grammar.on(some, x=x, x2="end:Q", y=y, y2="high:Q", description="hover:N")
            layers.append(box.mark_rect(**look).encode(color=colour))
    return grammar.framed(layers, width, LANE * len(lanes))
