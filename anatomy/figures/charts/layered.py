"""Graphs in layers: marks on lanes, the lines between them, and a band behind a part of them."""

import altair as alt

from anatomy.figures.charts import grammar
from anatomy.figures.charts.grammar import BAND, CHARACTER, MUTED, SERIES, WORSE, Data, Spec

STEP, LANE = 19, 34  # pixels from layer to layer, and from lane to lane
SIDE_BY_SIDE = 500  # pixels of width from which two graphs stand beside each other
SMALLEST, LARGEST = 26, 300  # area of a mark, in square pixels
TITLE = 26  # pixels above a graph for its name
NOTE, BAR = 2, 9  # layers that a note with its bar takes, and pixels of the bar's height
LONGEST = 96  # pixels of the longest bar, the same beside each graph: their bars are compared
CAPITALS = 8  # pixels that a name's capitals take beyond what its letters do
# What a node does -> colour, shape, whether it is filled.
LOOKS = {
    "computes": (SERIES[0], "circle", True),
    "hands on": (SERIES[0], "circle", False),
    "moves": (WORSE, "diamond", True),
    "free": (MUTED, "circle", False),
    "collects": (MUTED, "square", False),
    "collects and copies": (WORSE, "square", True),
}


def graphs(panels: Data, *, width: int) -> Spec:
    """Graphs beside each other, or one below the other where there is no room for that.

    A panel has its `title`, how many `lanes` and `layers`, `nodes` (`lane`, `layer`, `look`,
    `share` of the largest from 0 to 1, `label`, `hover`), `edges` (lists of (lane, layer)),
    `band` (first and last layer, and its name) or None, and `notes` beside it: their `text`, and
    the `share` of the largest that their bar has.
    """
    beside = width > SIDE_BY_SIDE
    room = width / len(panels) if beside else width
    marks, lines, bands, titles, notes, bottom = [], [], [], [], [], 0.0
    for index, panel in enumerate(panels):
        left, top = (index * room, 0.0) if beside else (0.0, bottom)
        longest = max((len(node["label"]) for node in panel["nodes"]), default=0)
        words = longest * CHARACTER + CAPITALS if longest else 0
        step = min(LANE, (room - words - 24) / max(1, panel["lanes"] - 1))
        first = left + words + 16

        def at(lane, layer, first=first, step=step, top=top):
            return {"x": first + lane * step, "y": top + TITLE + (layer + 0.5) * STEP}

        titles.append({"x": left, "y": top + 8, "text": panel["title"]})
        for number, note in enumerate(panel["notes"]):
            place = at(panel["lanes"], NOTE * number)
            x, y = place["x"], place["y"] + STEP
            bar = {"x2": x + note["share"] * LONGEST, "top": y - BAR, "y2": y}
            notes.append({"text": note["text"]} | place | bar)
            bottom = max(bottom, y + STEP) if not beside else bottom
        if panel["band"]:
            low, high, name = panel["band"]
            ends = {"y": at(0, low)["y"] - STEP / 2, "y2": at(0, high)["y"] + STEP / 2}
            bands.append({"x": left, "x2": left + room - 8, "text": name} | ends)
        for number, points in enumerate(panel["edges"]):
            for order, point in enumerate(points):
                lines.append({"edge": f"{index} {number}", "at": order} | at(*point))
        for node in panel["nodes"]:
            colour, shape, filled = LOOKS[node["look"]]
            share = 0 if node["look"] in ("free", "collects") else node["share"]
            marks.append(
                at(node["lane"], node["layer"])
                | {"fill": colour if filled else "var(--md-default-bg-color)", "stroke": colour}
                | {"shape": shape, "area": SMALLEST + share * (LARGEST - SMALLEST)}
                | {"hover": node["hover"], "label": node["label"], "left": first - 12}
            )
        bottom = max(bottom, at(0, panel["layers"])["y"] + STEP / 2)
    return _drawn(marks, lines, bands, titles, notes, width, bottom)


def _drawn(marks, lines, bands, titles, notes, width, height) -> Spec:
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, width], nice=False), axis=None)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False), axis=None)
    layers = []
    if bands:
        box = grammar.on(bands, x=x, y=y, x2="x2:Q", y2="y2:Q")
        name = grammar.on(bands, x=alt.X("x2:Q", axis=None), y=y, text="text:N")
        layers.append(box.mark_rect(color=BAND, cornerRadius=4))
        layers.append(name.mark_text(align="right", baseline="top", dx=-6, dy=4, color=MUTED))
    if lines:
        edges = grammar.on(lines, x=x, y=y, detail="edge:N", order="at:Q")
        thin = {"color": MUTED, "opacity": 0.45, "strokeWidth": 1.2}
        layers.append(edges.mark_line(**thin, interpolate="linear"))
    looks = {
        "fill": alt.Fill("fill:N", scale=None),
        "stroke": alt.Stroke("stroke:N", scale=None),
        "shape": alt.Shape("shape:N", scale=None),
        "size": alt.Size("area:Q", scale=None),
    }
    nodes = grammar.on(marks, x=x, y=y, **looks, description="hover:N")
    names = grammar.on(marks, x=alt.X("left:Q", axis=None), y=y)
    bold = {"align": "left", "baseline": "middle", "fontWeight": 600, "fontSize": 13}
    layers += [
        nodes.mark_point(opacity=1, strokeWidth=1.5),
        grammar.words(names, "label", {"align": "right", "baseline": "middle"}),
        grammar.words(grammar.on(titles, x=x, y=y), how=bold),
    ]
    if notes:
        beside = {"align": "left", "baseline": "middle"}
        layers.append(grammar.words(grammar.on(notes, x=x, y=y), how=beside))
        ends = {"x2": "x2:Q", "y2": "y2:Q"}
        bars = grammar.on(notes, x=x, y=alt.Y("top:Q", axis=None), **ends)
        layers.append(bars.mark_rect(color=SERIES[0], opacity=0.7))
    return grammar.framed(layers, width, round(height))
