"""Heat maps of where something pays, with the line around the cells that do.

They are in the manner of `anatomy.charts.plain`, which has what all charts share.
"""

import json
from collections.abc import Sequence
from typing import Any

import altair as alt

from anatomy.charts.plain import BAND, CHARACTER, GAP, MUTED, TEXT, Drawn, _spec, _values

# Tone of a cell -> its colour; a tone without one is an empty cell with a frame, or nothing.
TONES = {"better": "var(--chart-better)", "worse": "var(--chart-worse)", "even": BAND}
FAINTEST, DEEPEST = 0.06, 0.42  # opacity of a tone: text over the deepest must still stand out
LARGEST = 118  # pixels that a cell is wide at most
WORDED = 66  # pixels from which a cell has its verdict in a word beside the mark
TALL = {True: 50, False: 44}  # pixels, with the verdict in a word and without
SMALLEST = 10.5  # pixels of type, which a narrow phone shrinks a little more, and not below 10
DIGIT = 0.6  # width of a digit in heights of its type
INSIDE = 0.022  # share of a cell that stays free at each edge


def heat(
    squares: Sequence[dict[str, Any]],
    across: tuple[str, Sequence[str]],
    up: tuple[str, Sequence[str]],
    edges: Sequence[tuple[int, int, int, int]],
) -> Drawn:
    """Cells with a number, a mark and a tone each, and a line along some of their edges.

    Args:
        squares: `i` and `j` (column and row from 0), `text`, `word`, `mark`, `tone` (better,
            worse, even, open or none), `depth` of the tone from 0 to 1, and `told`.
        across: Title of the horizontal axis and the name of each column.
        up: Title of the vertical axis and the name of each row, from below.
        edges: Ends of the line's pieces: x and y and x and y, in cells.
    """
    data, line = [dict(each) for each in squares], [tuple(edge) for edge in edges]
    return lambda width: _heat(data, across, up, line, width)


def _heat(data, across, up, line, width) -> dict[str, Any]:
    (x_title, columns), (y_title, lines) = across, up
    beside = max(map(len, lines)) * CHARACTER + 2.5 * GAP  # the rows' names and the axis' title
    cell = min((width - beside) / len(columns), LARGEST)
    size = 13 if cell > WORDED else 11 if cell > 46 else SMALLEST
    cells = []
    for each in data:
        text = _fitting(each["text"], cell / size / DIGIT)
        word = f"{each['mark']} {each['word']}" if cell >= WORDED else each["mark"]
        cells.append(
            {"told": each["told"], "tone": each["tone"], "text": text, "word": word}
            | {"x0": each["i"] + INSIDE, "x1": each["i"] + 1 - INSIDE, "x": each["i"] + 0.5}
            | {"y0": each["j"] + INSIDE, "y1": each["j"] + 1 - INSIDE, "y": each["j"] + 0.5}
            | {"fill": TONES.get(each["tone"], "transparent")}
            | {"opacity": _opacity(each)}
        )
    x = alt.X("x0:Q", scale=_scale(len(columns)), title=x_title, axis=_axis(columns, cell))
    y = alt.Y("y0:Q", scale=_scale(len(lines)), title=y_title, axis=_axis(lines))
    box = {"x": x, "x2": "x1:Q", "y": y, "y2": "y1:Q"}
    base = alt.Chart(_values(cells))
    told = base.mark_rect(cornerRadius=3).encode(
        **box,
        fill=alt.Fill("fill:N", scale=None),
        fillOpacity=alt.FillOpacity("opacity:Q", scale=None),
        description="told:N",
    )
    open_ = alt.Chart(_values([each for each in cells if each["tone"] == "open"]))
    frame = open_.mark_rect(cornerRadius=3, stroke=MUTED, strokeDash=[3, 3], fill=None)
    at = {"x": alt.X("x:Q"), "y": alt.Y("y:Q")}
    layers = [
        told,
        frame.encode(**box),
        base.mark_text(color=TEXT, fontSize=size, fontWeight=600, dy=-6).encode(
            **at, text="text:N"
        ),
        base.mark_text(color=TEXT, fontSize=11 if cell >= WORDED else SMALLEST, dy=10).encode(
            **at, text="word:N"
        ),
    ]
    if line:
        names = ("x0", "y0", "x1", "y1")
        pieces = alt.Chart(_values([dict(zip(names, edge, strict=True)) for edge in line]))
        layers.append(
            pieces.mark_rule(color=TEXT, strokeWidth=3, strokeCap="round", clip=True).encode(
                x=alt.X("x0:Q"), x2="x1:Q", y=alt.Y("y0:Q"), y2="y1:Q"
            )
        )
    drawn = round(beside + cell * len(columns))
    return _spec(alt.layer(*layers), min(drawn, width), height=TALL[cell >= WORDED] * len(lines))


def _fitting(text: str, most: float) -> str:
    """A ratio in at most so many characters: without its sign, then with fewer decimals."""
    if len(text) <= most or not text.endswith("×"):
        return text
    text = text[:-1]
    while len(text) > most and "." in text:
        places = len(text.partition(".")[2]) - 1
        text = f"{float(text):.{places}f}"
    return text


def _opacity(each) -> float:
    if each["tone"] not in ("better", "worse"):
        return 0.85 if each["tone"] == "even" else 0.0
    return FAINTEST + each["depth"] * (DEEPEST - FAINTEST)


def _scale(count: int) -> alt.Scale:
    return alt.Scale(domain=[0, count], nice=False, zero=False)


def _axis(names: Sequence[str], room: float | None = None) -> alt.Axis:
    """An axis whose ticks are the middles of the cells, with their names."""
    slanted = room is not None and max(map(len, names)) * CHARACTER > room
    turned = {"labelAngle": -40, "labelAlign": "right"} if slanted else {"labelAngle": 0}
    return alt.Axis(
        values=[place + 0.5 for place in range(len(names))],
        labelExpr=f"{json.dumps(list(names))}[floor(datum.value)]",
        labelOverlap=False,
        tickCount=len(names),  # Vega drops every other value beyond what it would have chosen
        grid=False,
        ticks=False,
        domain=False,
        labelPadding=5,
        titlePadding=6,
        **turned,
    )
