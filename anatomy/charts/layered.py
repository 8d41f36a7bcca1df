"""Graphs in layers: marks on lanes, the lines between them, and a band behind the part in question.

They are in the manner of `anatomy.charts.plain`, which has what all charts share.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt

from anatomy.charts.plain import BAND, CHARACTER, MUTED, SERIES, TEXT, Drawn, _spec, _values

STEP, LANE = 19, 34  # pixels from layer to layer, and from lane to lane
SIDE_BY_SIDE = 500  # pixels of width from which two graphs stand beside each other
SMALLEST, LARGEST = 26, 300  # area of a mark, in square pixels
TITLE = 26  # pixels above a graph for its name
# What a node does -> colour, shape, whether it is filled.
LOOKS = {
    "computes": (SERIES[0], "circle", True),
    "hands on": (SERIES[0], "circle", False),
    "moves": ("var(--chart-worse)", "diamond", True),
    "free": (MUTED, "circle", False),
    "collects": (MUTED, "square", False),
    "collects and copies": ("var(--chart-worse)", "square", True),
}


def graphs(panels: Sequence[dict[str, Any]]) -> Drawn:
    """Graphs beside each other, or one below the other where there is no room for that.

    Args:
        panels: Of each its `title`, `lanes` and `layers` (how many), `nodes` (`lane`, `layer`,
            `look`, `share` of the largest from 0 to 1, `label`, `told`), `edges` (lists of (lane,
            layer)) and `band` (first and last layer, and its name) or None.
    """
    data = [dict(each) for each in panels]
    return lambda width: _graphs(data, width)


def _graphs(panels, width) -> dict[str, Any]:
    beside = width > SIDE_BY_SIDE
    room = width / len(panels) if beside else width
    marks, lines, bands, titles = [], [], [], []
    bottom = 0.0
    for index, panel in enumerate(panels):
        left, top = (index * room, 0.0) if beside else (0.0, bottom)
        words = max((len(node["label"]) for node in panel["nodes"]), default=0) * CHARACTER
        step = min(LANE, (room - words - 24) / max(1, panel["lanes"] - 1))
        first = left + words + 16

        def x(lane, first=first, step=step):
            return first + lane * step

        def y(layer, top=top):
            return top + TITLE + (layer + 0.5) * STEP

        titles.append({"x": left, "y": top + 8, "text": panel["title"]})
        if panel["band"]:
            low, high, name = panel["band"]
            bands.append(
                {"x": left, "x2": left + room - 8, "y": y(low) - STEP / 2, "y2": y(high) + STEP / 2}
                | {"text": name}
            )
        for number, points in enumerate(panel["edges"]):
            lines += [
                {"edge": f"{index} {number}", "at": at, "x": x(lane), "y": y(layer)}
                for at, (lane, layer) in enumerate(points)
            ]
        for node in panel["nodes"]:
            colour, shape, filled = LOOKS[node["look"]]
            small = node["look"] in ("free", "collects")
            area = SMALLEST if small else SMALLEST + node["share"] * (LARGEST - SMALLEST)
            marks.append(
                {"x": x(node["lane"]), "y": y(node["layer"]), "told": node["told"]}
                | {"fill": colour if filled else "var(--md-default-bg-color)", "stroke": colour}
                | {"shape": shape, "area": area, "label": node["label"], "left": first - 12}
            )
        bottom = max(bottom, y(panel["layers"]) + STEP / 2)
    return _layers(marks, lines, bands, titles, width, bottom)


def _layers(marks, lines, bands, titles, width, height) -> dict[str, Any]:
    across = alt.X("x:Q", scale=alt.Scale(domain=[0, width], nice=False), axis=None)
    down = alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False), axis=None)
    at = {"x": across, "y": down}
    layers = []
    if bands:
        box = alt.Chart(_values(bands))
        layers += [
            box.mark_rect(color=BAND, cornerRadius=4).encode(**at, x2="x2:Q", y2="y2:Q"),
            box.mark_text(align="right", baseline="top", dx=-6, dy=4, color=MUTED).encode(
                x=alt.X("x2:Q", axis=None), y=down, text="text:N"
            ),
        ]
    if lines:
        layers.append(
            alt.Chart(_values(lines))
            .mark_line(color=MUTED, opacity=0.45, strokeWidth=1.2, interpolate="linear")
            .encode(**at, detail="edge:N", order="at:Q")
        )
    points = alt.Chart(_values(marks))
    layers += [
        points.mark_point(opacity=1, strokeWidth=1.5).encode(
            **at,
            fill=alt.Fill("fill:N", scale=None),
            stroke=alt.Stroke("stroke:N", scale=None),
            shape=alt.Shape("shape:N", scale=None),
            size=alt.Size("area:Q", scale=None),
            description="told:N",
        ),
        points.mark_text(align="right", baseline="middle", color=TEXT, fontSize=11).encode(
            x=alt.X("left:Q", axis=None), y=down, text="label:N"
        ),
        alt.Chart(_values(titles))
        .mark_text(align="left", baseline="middle", fontWeight=600, color=TEXT, fontSize=13)
        .encode(**at, text="text:N"),
    ]
    return _spec(alt.layer(*layers), width, height=round(height))
