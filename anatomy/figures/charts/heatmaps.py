"""Heat maps of where something pays, with the line around the cells that do."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from anatomy.figures.charts import grammar
from anatomy.figures.charts.grammar import CHARACTER, MUTED, TEXT, Data, Spec

# Tone of a cell -> its colour; a tone without one is an empty cell with a frame, or nothing.
TONES = {"better": grammar.BETTER, "worse": grammar.WORSE, "even": grammar.BAND}
FAINTEST, DEEPEST = 0.06, 0.42  # opacity of a tone: text over the deepest must still stand out
LARGEST = 118  # pixels that a cell is wide at most
WORDED = 66  # pixels from which a cell has its verdict in a word beside the mark, if that fits
EDGES = 4  # pixels of a cell that a word leaves free
TALL = {True: 50, False: 44}  # pixels, with the verdict in a word and without
SMALLEST = 10.5  # pixels of type, which a narrow phone shrinks a little more, and not below 10
DIGIT = 0.6  # width of a digit in heights of its type
INSIDE = 0.022  # share of a cell that stays free at each edge
Side = tuple[str, Sequence[str]]  # an axis: its title, and the names of the columns or rows


def heat(
    squares: Data, across: Side, up: Side, edges: Sequence[tuple[int, ...]], *, width: int
) -> Spec:
    """Cells with a number, a mark and a tone each, and a line along some of their edges.

    A square has its column `i` and row `j`, from 0 and from below, `text`, `word`, `mark`, `tone`
    (better, worse, even, open or none) and the `depth` of its tone from 0 to 1. Edges are the ends
    of the line's pieces: x and y and x and y, in cells.
    """
    (x_title, columns), (y_title, lines) = across, up
    # Beside the cells are the rows' names and the axis' title.
    beside = max(map(len, lines)) * CHARACTER + 2.5 * grammar.GAP
    cell = min((width - beside) / len(columns), LARGEST)
    said = max(len(f"{each['mark']} {each['word']}") for each in squares)
    worded = cell >= max(WORDED, said * CHARACTER + EDGES)
    size = 13 if cell > WORDED else 11 if cell > 46 else SMALLEST
    cells = []
    for each in squares:
        i, j = each["i"], each["j"]
        text = _fitting(each["text"], cell / size / DIGIT)
        word = f"{each['mark']} {each['word']}" if worded else each["mark"]
        cells.append(
            {"hover": each["hover"], "tone": each["tone"], "text": text, "word": word}
            | {"x0": i + INSIDE, "x1": i + 1 - INSIDE, "x": i + 0.5}
            | {"y0": j + INSIDE, "y1": j + 1 - INSIDE, "y": j + 0.5}
            | {"fill": TONES.get(each["tone"], "transparent"), "opacity": _opacity(each)}
        )
    ends = ([0, len(names)] for names in (columns, lines))
    right, upwards = (alt.Scale(domain=end, nice=False, zero=False) for end in ends)
    x = alt.X("x0:Q", scale=right, title=x_title, axis=_axis(columns, cell))
    y = alt.Y("y0:Q", scale=upwards, title=y_title, axis=_axis(lines))
    box = {"x": x, "x2": "x1:Q", "y": y, "y2": "y1:Q"}
    depth = alt.FillOpacity("opacity:Q", scale=None)
    full = grammar.on(cells, **box, fill=alt.Fill("fill:N", scale=None), fillOpacity=depth)
    undecided = grammar.on([each for each in cells if each["tone"] == "open"], **box)
    number = {"fontSize": size, "fontWeight": 600, "dy": -6}
    verdict = {"fontSize": 11 if worded else SMALLEST, "dy": 10}
    middles = grammar.on(cells, x="x:Q", y="y:Q")
    layers = [
        full.mark_rect(cornerRadius=3).encode(description="hover:N"),
        undecided.mark_rect(cornerRadius=3, stroke=MUTED, strokeDash=[3, 3], fill=None),
        grammar.words(middles, how=number),
        grammar.words(middles, "word", verdict),
    ]
    if edges:
        pieces = [dict(zip(("x0", "y0", "x1", "y1"), edge, strict=True)) for edge in edges]
        line = grammar.on(pieces, x="x0:Q", x2="x1:Q", y="y0:Q", y2="y1:Q")
        layers.append(line.mark_rule(color=TEXT, strokeWidth=3, strokeCap="round", clip=True))
    drawn = min(round(beside + cell * len(columns)), width)
    return grammar.framed(layers, drawn, TALL[worded] * len(lines))


def _fitting(text: str, most: float) -> str:
    """A ratio in at most so many characters: without its sign, then with fewer decimals."""
    if len(text) > most:
        text = text.removesuffix("×")
    while len(text) > most and "." in text:
        places = len(text.partition(".")[2]) - 1
        text = f"{float(text):.{places}f}"
    return text


def _opacity(square: dict[str, Any]) -> float:
    if square["tone"] not in ("better", "worse"):
        return 0.85 if square["tone"] == "even" else 0.0
    return FAINTEST + square["depth"] * (DEEPEST - FAINTEST)


def _axis(names: Sequence[str], room: float | None = None) -> alt.Axis:
    slanted = room is not None and max(map(len, names)) * CHARACTER > room
    how = {"labelAngle": -40, "labelAlign": "right"} if slanted else {"labelAngle": 0}
    # Vega drops every other value beyond what it would have chosen.
    how |= {"tickCount": len(names), "labelOverlap": False}
    return grammar.middle_axis(names, labelPadding=5, titlePadding=6, **how)
