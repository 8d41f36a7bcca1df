"""What each node of a backward graph takes: CPU time above a line, GPU time below it."""

from collections.abc import Mapping, Sequence
from typing import Any

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, LINE, MUTED, THIRD, Canvas
from anatomy.judge.rows import Row, select
from anatomy.record.showing import current
from anatomy.table import units
from anatomy.table.errors import BadParameter

ENDS = "accumulate"  # the kind of what ends the graph at a weight: no page counts it as a node
TALL = 74.0  # pixels of the longest CPU time
# Kinds of nodes as the census has them -> what they are called, and their colour.
KINDS = {
    "compute": ("computes", GOOD),
    "shape": ("changes a shape", BAD),
    "copy": ("copies", BAD),
    "accumulate": ("stores a gradient, not counted", MUTED),
}


def node_costs(
    experiment: str, *, graphs: Mapping[str, str], caption: str | None = None, **params: Any
) -> str:
    """The nodes of graphs in the order in which the backward pass visits them, each with its CPU
    time and the time of its kernels, all to one scale.

        node_costs("autograd_graph.nodes", graphs={"manual": "Unfused", "default": "Fused"})

    Args:
        experiment: One with rows as `autograd_graph.nodes` has them.
        graphs: Op of each graph shown -> what it is called.
    """
    found = current().find(experiment, **params)

    def draw() -> str:
        named = {title: visited(found.recording.rows, op) for op, title in graphs.items()}
        label = "; ".join(f"{title}: {_said(nodes)}" for title, nodes in named.items())
        return canvas.both(lambda sheet: _drawn(sheet, named), f"Backward node by node. {label}.")

    return framing.exhibit(found, caption, draw)


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
    scale = TALL / max(row["host_s"] for nodes in named.values() for row in nodes)
    left, many = 36.0, max(map(len, named.values()))
    step = (sheet.width - left - 2) / many
    for title, nodes in named.items():
        top = sheet.height + (16 if sheet.height else 0)
        sheet.words(1, top + 13, title, bold=True)
        sheet.words(sheet.width - 2, top + 13, _said(nodes), colour=MUTED, anchor="end")
        ground = top + 26 + TALL
        sheet.words(1, ground - 8, "CPU", size=11, colour=MUTED)
        sheet.words(1, ground + 13, "GPU", size=11, colour=MUTED)
        deepest = 0.0
        for number, row in enumerate(nodes):
            x, high = left + number * step, row["host_s"] * scale
            colour = KINDS[row["kind"]][1]
            sheet.box(x, ground - high, step - 1.4, high, fill=colour, opacity=0.7, round_=0)
            if low := (row.get("device_s") or 0.0) * scale:
                deepest = max(deepest, low)
                sheet.box(x, ground + 1, step - 1.4, low, fill=THIRD, round_=0)
        sheet.line((left, ground), (left + len(nodes) * step, ground), colour=MUTED)
        sheet.space(max(0.0, 4 - deepest / 4))
        _bar(sheet, left + 0.55 * many * step, top + 30, scale)
    sheet.words(left, sheet.height + 12, "the backward pass, node by node →", size=11, colour=MUTED)
    _key(sheet)


def _bar(sheet: Canvas, x: float, y: float, scale: float) -> None:
    """How long a time is as a height."""
    time = 50e-6
    sheet.line((x, y), (x, y + time * scale), colour=INK, thick=1.4)
    sheet.words(x + 6, y + time * scale / 2 + 4, units.seconds(time, most=2), size=10.5)


def _key(sheet: Canvas) -> None:
    marks = {words: colour for words, colour in KINDS.values() if words != "copies"}
    marks["changes a shape or copies"] = marks.pop("changes a shape")
    marks["kernels"] = THIRD
    x, y = 1.0, sheet.height + 16
    for words, fill in marks.items():
        long = 16 + canvas.wide(words, 11.5) + 16
        if x + long > sheet.width and x > 1:
            x, y = 1.0, y + 18
        sheet.box(x, y - 9, 11, 11, fill=fill, opacity=0.7, edge=LINE, round_=1)
        sheet.words(x + 16, y, words, size=11.5, colour=INK)
        x += long
