"""How a bottleneck is told: the questions that part its names, with a recorded workload at each."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from anatomy.diagnosis import bottleneck
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, LINE, MUTED, THIRD, Canvas
from anatomy.figures.framing import drawn_from
from anatomy.judge.rows import Row
from anatomy.table import units
from anatomy.table.errors import lookup

EXPERIMENT = "bottlenecks.confusion"
LEAF = 42.0  # pixels: the height of a leaf


class Leaf(NamedTuple):
    """A name, what one sees, and the share of a workload that shows it."""

    name: str
    sees: str
    column: str
    says: str  # the share in words, with {} for its figure


class Branch(NamedTuple):
    """A question with the names that it leads to."""

    asks: str
    leaves: tuple[Leaf, ...]
    colour: str
    kernels: tuple[tuple[float, float], ...]  # when the GPU works, as shares of a strip


BRANCHES = (
    Branch(
        "Gaps without a kernel: what fills them?",
        (
            Leaf(
                bottleneck.INPUT,
                "the CPU prepares or copies a batch",
                "input_share",
                "{} of a step to get a batch",
            ),
            Leaf(
                bottleneck.SYNC,
                "the CPU waits for a result of the GPU",
                "sync_share",
                "the CPU waits for {} of a step",
            ),
            Leaf(
                bottleneck.LAUNCH,
                "the CPU launches kernel by kernel",
                "idle_share",
                "the GPU is idle for {} of a step",
            ),
        ),
        BAD,
        ((0.0, 0.14), (0.36, 0.5), (0.72, 0.86)),
    ),
    Branch(
        "No gaps: which limit are the kernels near?",
        (
            Leaf(bottleneck.COMPUTE, "FLOP/s of the tensor cores", "flop_share", "{} of the peak"),
            Leaf(bottleneck.MEMORY, "bandwidth of HBM", "byte_share", "{} of the bandwidth"),
            Leaf(bottleneck.LATENCY, "neither: too little runs at a time", "", ""),
        ),
        GOOD,
        ((0.0, 0.24), (0.25, 0.49), (0.5, 0.74), (0.75, 1.0)),
    ),
)


@drawn_from(EXPERIMENT)
def causes(table: Sequence[Row], *, shown: Mapping[str, str]) -> str:
    """The two questions and their names as a tree, with the shares of recorded workloads.

        causes(shown={"matmul": "compute", "copy": "memory"})

    Args:
        shown: Workload of `bottlenecks.confusion` -> the name beside which it stands; its code or
            what it does.
    """
    table = {row["op"]: row for row in table if row.get("role") == "control"}
    for op in shown:
        lookup("workload", op, table)
    told = {leaf.name: _told(leaf, table, shown) for each in BRANCHES for leaf in each.leaves}
    names = "; ".join(
        f"{leaf.name}: {leaf.sees}{f', as {told[leaf.name]}' if told[leaf.name] else ''}"
        for each in BRANCHES
        for leaf in each.leaves
    )
    label = f"A tree that begins with whether the GPU has gaps, and ends at six names. {names}."
    return canvas.both(lambda sheet: _tree(sheet, told), label)


def _told(leaf: Leaf, table: Mapping[str, Row], shown: Mapping[str, str]) -> str:
    """The recorded workload of a name, and the share that gives it away."""
    op = next((op for op, name in shown.items() if name == leaf.name), None)
    if op is None or units.missing(table[op].get(leaf.column)):
        return ""
    return f"{op}: {leaf.says.format(units.percent(table[op][leaf.column]))}"


def _tree(sheet: Canvas, told: Mapping[str, str]) -> None:
    top = 4.0
    for branch in BRANCHES:
        top = (_beside if sheet.width > 500 else _under)(sheet, branch, top, told) + 12


def _beside(sheet: Canvas, branch: Branch, top: float, told: Mapping[str, str]) -> float:
    """A question at the left, its names at the right."""
    height = LEAF * len(branch.leaves)
    middle = top + height / 2
    sheet.box(1, middle - 43, 176, 86, fill=branch.colour, opacity=0.14, edge=branch.colour)
    sheet.paragraph(10, middle - 23, 138, branch.asks, size=12, bold=True)
    sheet.words(10, middle + 33, "GPU", size=11, colour=MUTED)
    for start, end in branch.kernels:
        x, wide = 40 + 128 * start, 128 * (end - start)
        sheet.box(x, middle + 23, wide, 12, fill=THIRD, opacity=0.85, round_=1)
    for number, leaf in enumerate(branch.leaves):
        y = top + (number + 0.5) * LEAF
        ends = (177, middle), (196, middle), (196, y), (214, y)
        sheet.line(*ends, colour=branch.colour, arrow=True)
        _leaf(sheet, leaf, branch.colour, 220, y, told[leaf.name])
    return top + height


def _under(sheet: Canvas, branch: Branch, top: float, told: Mapping[str, str]) -> float:
    """A question, and its names below it."""
    sheet.box(1, top, sheet.width - 2, 42, fill=branch.colour, opacity=0.14, edge=branch.colour)
    sheet.paragraph(10, top + 18, sheet.width - 50, branch.asks, size=12, bold=True)
    y = joint = top + 42
    for leaf in branch.leaves:
        middle = y + LEAF / 2 + 6
        sheet.line((10, joint), (10, middle), (24, middle), colour=branch.colour, arrow=True)
        joint = middle
        _leaf(sheet, leaf, branch.colour, 30, middle, told[leaf.name])
        y += LEAF
    return y + 8


def _leaf(sheet: Canvas, leaf: Leaf, colour: str, x: float, y: float, told: str) -> None:
    sheet.box(x, y - 16, sheet.width - x - 1, 34, fill=LINE, opacity=0.4)
    sheet.words(x + 8, y - 1, leaf.name, colour=colour, bold=True, size=13)
    sheet.words(x + 80, y - 1, leaf.sees, size=12)
    sheet.words(x + 8, y + 13, told or "no workload was built for it", colour=MUTED, size=11)
