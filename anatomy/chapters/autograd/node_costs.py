"""What each node of a backward graph takes: CPU time above a line, GPU time below it."""

from collections.abc import Mapping, Sequence

from anatomy.chapters.autograd.nodegraphs import does, short
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, FOURTH, GOOD, LINE, MUTED, THIRD, Canvas
from anatomy.figures.framing import drawn_from
from anatomy.judge.rows import Row, select
from anatomy.table import units
from anatomy.table.errors import BadParameter

ENDS = "accumulate"  # the kind of what ends the graph at a weight: no page counts it as a node
TALL, DEEP = 92.0, 40.0  # pixels of the longest time on the CPU, and on the GPU
NAMED = 5  # so many kinds of nodes, those that take the CPU longest, have their name over a bar
# Kinds of nodes as the census has them -> what they are called, and their colour.
KINDS = {
    "compute": ("computes", GOOD),
    "hands on": ("hands its gradient on", FOURTH),
    "shape": ("changes a shape", BAD),
    "copy": ("copies", BAD),
    "accumulate": ("stores a gradient, not counted", MUTED),
}


@drawn_from()
def node_costs(table: Sequence[Row], *, graphs: Mapping[str, str]) -> str:
    """The nodes of graphs in the order in which the backward pass visits them, each with its CPU
    time and the time of its kernels, on one scale.

        node_costs("autograd_graph.nodes", graphs={"manual": "Unfused", "default": "Fused"})

    Args:
        experiment: One with rows as `autograd_graph.nodes` has them.
        graphs: Op of each graph shown -> what it is called.
    """
    named = {title: visited(table, op) for op, title in graphs.items()}
    label = "; ".join(f"{title}: {_said(nodes)}" for title, nodes in named.items())
    return canvas.both(lambda sheet: _drawn(sheet, named), f"Backward node by node. {label}.")


def visited(table: Sequence[Row], op: str) -> list[Row]:
    """The timed nodes of a graph in the order of the backward pass."""
    nodes = [row for row in select(table, op=op) if row.get("host_s")]
    if not nodes:
        raise BadParameter(f"no node of {op} has a CPU time.")
    return sorted(nodes, key=lambda row: row["runs_at"])


def _said(nodes: Sequence[Row]) -> str:
    nodes = [row for row in nodes if row["kind"] != ENDS]
    if all(units.missing(row.get("kernels_per_call")) for row in nodes):
        return f"{len(nodes)} nodes"  # of a CPU no kernels are seen
    launching = sum(bool(row.get("kernels_per_call")) for row in nodes)
    return f"{launching} of {len(nodes)} nodes launch kernels"


def _drawn(sheet: Canvas, named: Mapping[str, Sequence[Row]]) -> None:
    cpu = max(row["host_s"] for nodes in named.values() for row in nodes)
    gpu = max(row.get("device_s") or 0.0 for nodes in named.values() for row in nodes)
    left, many = 78.0, max(map(len, named.values()))
    per_s = min(TALL / cpu, DEEP / gpu) if gpu else TALL / cpu
    tall = cpu * per_s
    step = (sheet.width - left - 2) / many
    for title, nodes in named.items():
        top = sheet.height + (16 if sheet.height else 0)
        sheet.words(1, top + 13, title, bold=True)
        sheet.words(sheet.width - 2, top + 13, _said(nodes), colour=MUTED, anchor="end")
        ground, right = top + 38 + tall, left + len(nodes) * step
        _scale(sheet, "CPU", ground, -per_s, cpu, (left, right))
        if gpu:
            _scale(sheet, "GPU", ground, per_s, gpu, (left, right))
        at = [left + number * step for number in range(len(nodes))]
        tops = [ground - row["host_s"] * per_s for row in nodes]
        for x, y, row in zip(at, tops, nodes, strict=True):
            handing = does(row) == "hands on"
            colour = KINDS["hands on" if handing else row["kind"]][1]
            sheet.box(x, y, step - 1.4, ground - y, fill=colour, opacity=0.7, round_=0)
            if row.get("device_s"):
                low = max(row["device_s"] * per_s, 1.0)
                sheet.box(x, ground + 1, step - 1.4, low, fill=THIRD, round_=0)
        sheet.line((left, ground), (right, ground), colour=MUTED)
        _names(sheet, nodes, [x + step / 2 for x in at], tops)
    sheet.words(left, sheet.height + 12, "the backward pass, node by node →", size=11, colour=MUTED)
    _key(sheet)


def _scale(
    sheet: Canvas, side: str, ground: float, per_s: float, most: float, ends: tuple[float, float]
) -> None:
    """Which side of the line is whose, and a thin line at its longest time, on its own scale."""
    y = ground + most * per_s
    sheet.words(1, ground + (13 if per_s > 0 else -6), side, size=11, bold=True)
    sheet.line((ends[0], y), (ends[1], y), colour=LINE, thick=1)
    said = units.seconds(most, most=3)
    sheet.words(ends[0] - 5, y + 4, said, size=11, colour=MUTED, anchor="end")


def _names(sheet: Canvas, nodes: Sequence[Row], at: Sequence[float], tops: Sequence[float]) -> None:
    """The names of the kinds of nodes that take the CPU longest, over their longest bars."""
    longest = dict[str, int]()
    for each in sorted(range(len(nodes)), key=lambda each: nodes[each]["host_s"], reverse=True):
        longest.setdefault(short(nodes[each]["name"]), each)
    taken = list[tuple[float, float]]()
    for text, each in list(longest.items())[:NAMED]:
        half = canvas.wide(text, canvas.LEAST) / 2 + 3
        middle, base = min(max(at[each], at[0] + half), sheet.width - half), tops[each] - 4
        words = all(abs(middle - other) > half + its for other, its in taken)
        bars = all(abs(middle - x) > half or y > base for x, y in zip(at, tops, strict=True))
        if words and bars:
            taken.append((middle, half))
            sheet.words(middle, base, text, size=canvas.LEAST, anchor="middle")


def _key(sheet: Canvas) -> None:
    marks = {words: colour for words, colour in KINDS.values() if words != "copies"}
    marks["changes a shape or copies"] = marks.pop("changes a shape")
    marks["kernels"] = THIRD
    sheet.key(sheet.height + 16, marks, opacity=0.7)
