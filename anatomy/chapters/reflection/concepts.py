"""The concept map of phase I: a concept for each of thirteen days, and on each arrow the measured
number that makes one follow from the other."""

import re
from html import escape, unescape
from typing import NamedTuple

from anatomy.figures import framing, tables
from anatomy.figures.charts.figures import twin
from anatomy.figures.curriculum import lists, outline
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import GOOD, INK, LINE, MUTED, PAPER, Canvas
from anatomy.figures.text import inline
from anatomy.record.showing import Found, Showing, current

# What a day is about, and its column and row on a desk.
CONCEPTS = {
    1: ("Why compilers?", 1, 0),
    2: ("SMs and warps", 0, 0),
    3: ("Launches", 2, 0),
    4: ("Memory ladder", 0, 1),
    5: ("Coalescing", 0, 2),
    6: ("Ridge point", 1, 1),
    7: ("Roofline", 1, 2),
    8: ("Measuring", 3, 0),
    9: ("Dispatcher", 2, 1),
    10: ("Sync points", 3, 1),
    11: ("Profiling", 3, 2),
    12: ("Graph capture", 2, 2),
    13: ("Fusion", 1, 3),
}
BOX, HIGH, PITCH, ROW = 112.0, 38.0, 187.0, 84.0  # pixels: a concept, and from one to the next
LINE_HIGH = 24.0  # of an arrow on a phone
UNKNOWN = "?"  # a number that was not recorded
_FIGURE = re.compile(r'<span class="(?:measured|cited)"[^>]*>([^<]*)<')


class Arrow(NamedTuple):
    """From one day's concept to another's: the number, as a page refers to it, and its sense."""

    start: int
    end: int
    number: str
    sense: str


ASKED = 'dispatch.calls."one call"."torch.add"'
FMAS = 'roofline.intensity."1024 FMAs"'
WAIT = 'synchronizations.costs."step 5 x 1024"."item each step"'
LAYER = 'roofline.first_layer."small layer"."eager bf16"'
CHASE = 'memory_ladder.latency."chase 1.00 GiB"."1.00 GiB"'
APART = 'coalescing.strides."one of each"."stride 16"'
STEP = 'compilation.map."training C=256 T=256".eager'
CUT = 'compilation.breaks."large elementwise"'
FIRST = 'never.costs."first calls, product"."call 1"'
READ = 'sync_points.training_loop.medium."item each step"'
ARROWS = (
    Arrow(1, 2, "limit:matmul bf16", "what the chip could do in bf16, if asked well"),
    Arrow(1, 3, f"{LAYER}.median_s", "time of a small layer, which waits for its launches"),
    Arrow(2, 4, f"{CHASE}.latency_s", "a load from HBM; other warps fill the time"),
    Arrow(2, 6, f"{FMAS}.rate", "what the FP32 units do in a second, in bare multiply-adds"),
    Arrow(4, 5, f"{APART}.rate", "what arrives of every sixteenth float: memory moves in pieces"),
    Arrow(4, 6, "limit:copy", "what a copy moves in a second"),
    Arrow(
        6, 7, 'roofline.intensity."1 FMA".ridge', "where their rate and a copy's meet, by a sweep"
    ),
    Arrow(7, 13, "roofline.operations.elementwise.relu.share", "a ReLU's share of its roof"),
    Arrow(3, 9, f"{ASKED}.median_s", "CPU time of asking for one small addition from Python"),
    Arrow(9, 10, f"{WAIT}.wait_s", "what reading one value adds to a step that asks ahead"),
    Arrow(9, 12, f"{STEP}.gap_share", "share of a small training step in which the GPU waits"),
    Arrow(
        12,
        13,
        f'{CUT}."1 break".ratio | x',
        "time of a chain whose graph is cut once, over the whole",
    ),
    Arrow(8, 10, f"{FIRST}.median_s", "the first call of a matmul, timed alone"),
    Arrow(10, 11, f"{READ}.ratio | x", "a loop that reads its loss each step, over one without"),
    Arrow(11, 13, f"{CUT}.eager.ratio | x", "time of the same chain in eager mode, over compiled"),
)


def concept_map(*, caption: str | None = None) -> str:
    """Thirteen concepts, each a link to its day, and fifteen arrows, each with the measured number
    that justifies it.

        concept_map(caption="Draw it yourself first.")
    """
    showing = current()
    before = len(showing.looked_up())
    said = {arrow: _said(showing, arrow.number) for arrow in ARROWS}
    found: list[Found] = showing.looked_up()[before:]

    def draw() -> str:
        there = {day: _address(showing, day) for day in CONCEPTS}
        drawn = canvas.both(
            lambda sheet: (_mapped if sheet.width > 500 else _listed)(sheet, said, there),
            "Concepts and their days.",
        )
        head = ("from", "to", "#number", "what it says")
        lines = [
            [_name(each.start), _name(each.end), escape(number), escape(each.sense)]
            for each, number in said.items()
        ]
        return drawn + twin(tables.listed(head, lines, "The arrows"), name="What the numbers say")

    return framing.exhibit(found, caption, draw)


def _said(showing: Showing, reference: str) -> str:
    """The figure that a reference stands for, as text; a question mark where none is recorded."""
    kind, _, name = reference.partition(":")
    if kind == "limit" and (ceilings := showing.ceilings) and not ceilings.get(name):
        return UNKNOWN  # on a machine of which nobody knows it, a page's own reference is an error
    shown = _FIGURE.search(inline.render(showing, reference))
    return unescape(shown[1]) if shown else UNKNOWN


def _address(showing: Showing, day: int) -> str | None:
    return lists.address(showing, outline.numbered("day", day))


def _name(day: int) -> str:
    return f"{escape(CONCEPTS[day][0])}, day {day}"


def _mapped(sheet: Canvas, said: dict[Arrow, str], there: dict[int, str | None]) -> None:
    for arrow, number in said.items():
        (x0, y0), (x1, y1) = _ends(arrow)
        sheet.line((x0, y0), (x1, y1), arrow=True)
        half = canvas.wide(number, 11, bold=True) / 2 + 3
        x, y = (x0 + x1) / 2, (y0 + y1) / 2 - (9 if y0 == y1 else 0)
        sheet.box(x - half, y - 8, 2 * half, 15, fill=PAPER)
        sheet.words(x, y + 4, number, size=11, anchor="middle", bold=True, colour=GOOD)
    for day, (name, *_) in CONCEPTS.items():
        x, y = _place(day)
        with sheet.link(there[day]):
            sheet.box(x, y, BOX, HIGH, fill=LINE, opacity=0.5, edge=MUTED)
            sheet.words(x + BOX / 2, y + 16, name, size=11.5, anchor="middle", bold=True)
            sheet.words(x + BOX / 2, y + 31, f"day {day}", size=11, anchor="middle", colour=MUTED)
    sheet.space(2)


def _listed(sheet: Canvas, said: dict[Arrow, str], there: dict[int, str | None]) -> None:
    """The arrows one under the other, for a sheet that is too narrow for the map."""
    middle, half = sheet.width / 2, 32.0
    for at, (arrow, number) in enumerate(said.items()):
        y = LINE_HIGH * at + 16
        for day, x, anchor in ((arrow.start, 0.0, "start"), (arrow.end, sheet.width, "end")):
            with sheet.link(there[day]):
                sheet.words(x, y, CONCEPTS[day][0], size=11, anchor=anchor, colour=INK)
        sheet.line((middle - half, y + 4), (middle + half, y + 4), arrow=True)
        sheet.words(middle, y, number, size=11, anchor="middle", bold=True, colour=GOOD)
    sheet.space(6)


def _place(day: int) -> tuple[float, float]:
    """The upper left corner of a concept."""
    _, column, row = CONCEPTS[day]
    return 1 + column * PITCH + (PITCH if row == 3 else 0) / 2, 1 + row * ROW


def _ends(arrow: Arrow) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where an arrow leaves one concept and meets the other."""
    (x0, y0), (x1, y1) = _place(arrow.start), _place(arrow.end)
    right = x1 > x0
    if y0 == y1:
        return (x0 + BOX * right, y0 + HIGH / 2), (x1 + BOX * (not right), y1 + HIGH / 2)
    # On the side of a box that looks towards the other: the farther off, the nearer to its corner.
    lean = 0.5 if x0 == x1 else 0.9 if abs(x1 - x0) > PITCH else 0.7
    start = lean if right else 1 - lean
    return (x0 + BOX * start, y0 + HIGH), (x1 + BOX * (1 - start), y1)
