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
LINE_HIGH = 24.0  # of an arrow on a phone
UNKNOWN = "?"  # a number that was not recorded
_FIGURE = re.compile(r'<span class="(?:measured|cited)"[^>]*>([^<]*)<')


class Grid(NamedTuple):
    """Pixels of a concept's box, and from one to the next."""

    box: float
    high: float
    pitch: float
    row: float


DESK = Grid(106.0, 38.0, 189.0, 84.0)


class Arrow(NamedTuple):
    """From one day's concept to another's: the number, as a page refers to it, what it is and why
    it joins these two, and the unit of a bare count."""

    start: int
    end: int
    number: str
    sense: str
    unit: str = ""


ASKED = 'dispatch.calls."one call"."torch.add".median_s'
FMAS = 'roofline.intensity."1024 FMAs".rate'
RIDGE = 'roofline.intensity."1 FMA".ridge'
RELU = "roofline.operations.elementwise.relu.share"
WAIT = 'synchronizations.costs."step 5 x 1024"."item each step".wait_s'
LAYER = 'roofline.first_layer."small layer"."eager bf16".median_s'
CHASE = 'memory_ladder.latency."chase 1.00 GiB"."1.00 GiB".latency_s'
APART = 'coalescing.strides."one of each"."stride 16".rate'
IDLE = 'compilation.map."training C=256 T=256".eager.gap_share'
CUT = 'compilation.breaks."large elementwise"."1 break".ratio | x'
NO_WAIT = 'timing.ways.GEMM."perf_counter, no wait".median_s'
READ = 'sync_points.training_loop.large."item each step".ratio | x'
WRITTEN_OUT = 'compilation.layers."training written out, bf16, C=1024 B=32 T=1024".eager'
COUNT = f"{WRITTEN_OUT}.kernels_per_call | .0f"
ARROWS = (
    Arrow(1, 2, "limit:matmul bf16", "what the chip could do in bf16: its SMs say how"),
    Arrow(1, 3, LAYER, "time of a small layer, which waits for its launches"),
    Arrow(2, 4, CHASE, "a load from HBM: other warps fill the time, a cache saves it"),
    Arrow(2, 6, FMAS, "bare multiply-adds of the FP32 units: one side of the ridge"),
    Arrow(4, 5, APART, "what arrives of every sixteenth float: memory moves in pieces"),
    Arrow(4, 6, "limit:copy", "what a copy moves in a second: the other side of the ridge"),
    Arrow(6, 7, RIDGE, "where both meet, by a sweep: the roof's corner"),
    Arrow(7, 13, RELU, "a ReLU's share of its roof: only fewer bytes help, so fuse"),
    Arrow(3, 9, ASKED, "to ask for an addition from Python: a launch is a part of it"),
    Arrow(9, 10, WAIT, "what one value adds to a step that asks ahead: a lead is lost"),
    Arrow(9, 12, IDLE, "of a small step the GPU waits for calls: a graph asks once"),
    Arrow(12, 13, CUT, "a chain cut once, over the whole: nothing fuses across"),
    Arrow(8, 10, NO_WAIT, "a GEMM by a clock that does not wait: to know, you must wait"),
    Arrow(10, 11, READ, "a loop that waits each step, over one without: a trace says where"),
    Arrow(11, 13, COUNT, "in a layer's step, by a profile: which could be one?", " kernels"),
)


def concept_map(*, caption: str | None = None) -> str:
    """Thirteen concepts, each a link to its day, and fifteen arrows, each with the measured number
    that justifies it.

        concept_map(caption="Draw it yourself first.")
    """
    showing = current()
    before = len(showing.looked_up())
    said = {arrow: _said(showing, arrow) for arrow in ARROWS}
    found: list[Found] = showing.looked_up()[before:]

    def draw() -> str:
        there = {day: _address(showing, day) for day in CONCEPTS}
        drawn = canvas.both(lambda sheet: _drawn(sheet, said, there), "Concepts and their days.")
        head = ("from", "to", "#number", "what it is, and why it joins them")
        lines = [
            [_name(each.start), _name(each.end), escape(number), escape(each.sense)]
            for each, number in said.items()
        ]
        return drawn + twin(tables.listed(head, lines, "The arrows"), name="What the numbers say")

    return framing.exhibit(found, caption, draw)


def _said(showing: Showing, arrow: Arrow) -> str:
    """An arrow's figure as text, with its unit; a question mark where none is recorded."""
    kind, _, name = arrow.number.partition(":")
    if kind == "limit" and (ceilings := showing.ceilings) and not ceilings.get(name):
        return UNKNOWN  # on a machine of which nobody knows it, a page's own reference is an error
    shown = _FIGURE.search(inline.render(showing, arrow.number))
    return unescape(shown[1]) + arrow.unit if shown else UNKNOWN


def _address(showing: Showing, day: int) -> str | None:
    return lists.address(showing, outline.numbered("day", day))


def _name(day: int) -> str:
    return f"{escape(CONCEPTS[day][0])}, day {day}"


def _drawn(sheet: Canvas, said: dict[Arrow, str], there: dict[int, str | None]) -> None:
    """The map; a sheet that is too narrow for its numbers has them in a list under it."""
    desk = sheet.width >= 500
    grid = DESK if desk else Grid(76.0, 34.0, (sheet.width - 78) / 3, 62.0)
    for arrow, number in said.items():
        (x0, y0), (x1, y1) = _ends(arrow, grid)
        sheet.line((x0, y0), (x1, y1), arrow=True)
        if desk:
            short = _short(number)
            half = canvas.wide(short, 11, bold=True) / 2 + 3
            x, y = (x0 + x1) / 2, (y0 + y1) / 2 - (9 if y0 == y1 else 0)
            sheet.box(x - half, y - 8, 2 * half, 15, fill=PAPER)
            sheet.words(x, y + 4, short, size=11, anchor="middle", bold=True, colour=GOOD)
    for day, (name, *_) in CONCEPTS.items():
        x, y = _place(day, grid)
        first, _, last = (name, " ", f"day {day}") if desk else name.rpartition(" ")
        with sheet.link(there[day]):
            sheet.box(x, y, grid.box, grid.high, fill=LINE, opacity=0.5, edge=MUTED)
            middle, tone = x + grid.box / 2, MUTED if desk else INK
            if first:
                sheet.words(middle, y + 15, first, size=11, anchor="middle", bold=True)
            y += grid.high - 7 if first else grid.high / 2 + 4
            sheet.words(middle, y, last, size=11, anchor="middle", bold=not desk, colour=tone)
    if not desk:
        _listed(sheet, said, there)
    sheet.space(2)


def _short(number: str) -> str:
    """A number without its interval, which stands in the table."""
    return number.partition(" (")[0]


def _listed(sheet: Canvas, said: dict[Arrow, str], there: dict[int, str | None]) -> None:
    """The arrows one under the other."""
    middle, half, top = sheet.width / 2, 32.0, sheet.height + 26
    for at, (arrow, number) in enumerate(said.items()):
        y = LINE_HIGH * at + top
        for day, x, anchor in ((arrow.start, 0.0, "start"), (arrow.end, sheet.width, "end")):
            with sheet.link(there[day]):
                named = f"day {day}: {CONCEPTS[day][0]}"
                sheet.words(x, y, named, size=11, anchor=anchor, colour=INK)
        sheet.line((middle - half, y + 4), (middle + half, y + 4), arrow=True)
        sheet.words(middle, y, _short(number), size=11, anchor="middle", bold=True, colour=GOOD)


def _place(day: int, grid: Grid) -> tuple[float, float]:
    """The upper left corner of a concept."""
    _, column, row = CONCEPTS[day]
    return 1 + column * grid.pitch + (grid.pitch if row == 3 else 0) / 2, 1 + row * grid.row


def _ends(arrow: Arrow, grid: Grid) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where an arrow leaves one concept and meets the other."""
    (x0, y0), (x1, y1) = _place(arrow.start, grid), _place(arrow.end, grid)
    right = x1 > x0
    if y0 == y1:
        middle = grid.high / 2
        return (x0 + grid.box * right, y0 + middle), (x1 + grid.box * (not right), y1 + middle)
    # On the side of a box that looks towards the other: the farther off, the nearer to its corner.
    lean = 0.5 if x0 == x1 else 0.9 if abs(x1 - x0) > grid.pitch else 0.7
    start = lean if right else 1 - lean
    return (x0 + grid.box * start, y0 + grid.high), (x1 + grid.box * (1 - start), y1)
