"""The concept map of phase I: a concept for each of thirteen days, and on each arrow the measured
number that makes one follow from the other."""

import re
from html import escape, unescape
from typing import NamedTuple

from anatomy.figures import framing, tables
from anatomy.figures.charts.figures import twin
from anatomy.figures.curriculum import lists, outline
from anatomy.figures.diagrams import canvas
from anatomy.figures.text import inline
from anatomy.record.showing import Showing, current

# What a day is about, and where it stands: its column, of four, and its row.
CONCEPTS = {
    1: ("Compilers", 1, 0),
    2: ("SMs, warps", 1, 1),
    3: ("Launches", 2, 1),
    4: ("Memory", 0, 2),
    5: ("Coalescing", 0, 3),
    6: ("Ridge point", 1, 3),
    7: ("Roofline", 1, 4),
    8: ("Measuring", 3, 2),
    9: ("Dispatcher", 2, 2),
    10: ("Sync points", 3, 3),
    11: ("Profiling", 3, 4),
    12: ("Capture", 2, 3),
    13: ("Fusion", 2, 5),
}
BOX, HIGH = 79.0, 28.0  # pixels of a concept's box
UNKNOWN = "?"  # a number that was not recorded
_FIGURE = re.compile(r'<span class="(?:measured|cited)"[^>]*>([^<]*)<')


class Arrow(NamedTuple):
    """From one day's concept down to another's: the number, as a page refers to it, what it is and
    why it joins these two, and the unit of a bare count."""

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
    found = showing.looked_up()[before:]

    def draw() -> str:
        drawn = canvas.both(lambda sheet: _drawn(sheet, showing, said), "Concepts and their days.")
        head = ("from", "to", "#number", "what it is, and why it joins them")
        lines = [
            [escape(each) for each in (_name(start), _name(end), number, sense)]
            for (start, end, _, sense, _), number in said.items()
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


def _name(day: int) -> str:
    return f"{CONCEPTS[day][0]}, day {day}"


def _drawn(sheet: canvas.Canvas, showing: Showing, said: dict[Arrow, str]) -> None:
    """The map, whose arrows all go down."""
    pitch, gap = (sheet.width - BOX - 2) / 3, 24.0 if sheet.width > 500 else 46.0
    heads = {
        day: (1 + BOX / 2 + pitch * column, 1 + (HIGH + gap) * row)
        for day, (_, column, row) in CONCEPTS.items()
    }
    spots = {}
    for each in said:
        (x0, y0), (x1, y1) = heads[each.start], heads[each.end]
        aside = (x1 > x0) - (x1 < x0)  # to the left, straight down, or to the right
        lean = 0.36 * BOX * aside
        sheet.line((x0 + lean, y0 + HIGH), (x1 - lean, y1), arrow=True)
        # A phone has no room for two numbers side by side: that of a slanting arrow stands lower.
        lower = gap / 2 - 13 if aside else 10 - gap / 2
        spots[each] = (x0 + x1) / 2, (y0 + HIGH + y1) / 2 + lower
    for each, (x, y) in spots.items():
        short = said[each].partition(" (")[0]  # its interval stands in the table
        half = canvas.wide(short, 11, bold=True) / 2 + 2
        sheet.box(x - half, y - 6, 2 * half, 12, fill=canvas.PAPER)
        sheet.words(x, y + 4, short, size=11, anchor="middle", bold=True, colour=canvas.GOOD)
    for day, (x, y) in heads.items():
        with sheet.link(lists.address(showing, outline.numbered("day", day))):
            sheet.box(x - BOX / 2, y, BOX, HIGH, fill=canvas.LINE, opacity=0.5, edge=canvas.MUTED)
            sheet.words(x, y + 12, CONCEPTS[day][0], size=11, anchor="middle", bold=True)
            sheet.words(x, y + 24, f"day {day}", size=11, anchor="middle", colour=canvas.MUTED)
    sheet.space(2)
