"""Kinds of fusion as trips through memory, eager and compiled, and the kernels of all patterns."""

from collections.abc import Mapping, Sequence

from anatomy.figures import framing, tables
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, Canvas
from anatomy.figures.diagrams.trips import LEFT, Kernel, panel
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units
from anatomy.table.errors import lookup

# Pattern -> its kernels eager, then where all that may share a kernel does, then what else it may
# be; each kernel with the large tensors that it reads > writes, a letter for each. None of patterns
# that wait for launches. A row, a column and the sums of rows are too few to count.
KERNELS = {
    "x.cos().cos()": ("cos x>t | cos t>y", "cos, cos x>y"),
    "x.sin(), x.cos()": ("sin x>s | cos x>c", "sin, cos x>sc"),
    "x.sin(), y.cos()": ("sin x>s | cos y>c", "sin x>s | cos y>c"),
    "x * row + column": ("x * row x>t | + column t>y", "x * row + column x>y"),
    "x[order].sin()": ("x[order] x>t | sin t>y", "x[order].sin() x>y"),
    "(x * x).sum(-1)": ("x * x x>t | sum t>", "x * x, sum x>"),
    "softmax by hand": ("max x> | - x>d | exp d>e | sum e> | / e>y", "softmax x>y"),
    "x / x.sum(-1)": ("sum x> | x / s x>y", "sum, x / s x>y"),
    "x / x.sum()": ("sum x> | x / s x>y", "sum x> | x / s x>y", "sums x> | sum > | x / s x>y"),
    "gate, full w and b": ("* xw>t | + tb>u | relu u>v | sigmoid v>y", "gate xwb>y"),
    "gate, vectors": ("* x>t | + t>u | relu u>v | sigmoid v>y", "gate x>y"),
    "relu(a @ b + bias)": (
        "a @ b ab>p | + bias p>q | relu q>y", "@, +, relu ab>y", "a @ b ab>p | +, relu p>y"
    ),
}  # fmt: skip


def kernels_of(op: str) -> list[list[Kernel]]:
    """What a pattern may be, as in `KERNELS`."""
    ways = lookup("drawn pattern", op, KERNELS)
    return [[_kernel(each) for each in way.split(" | ")] for way in ways]


def _kernel(text: str) -> Kernel:
    does, _, moved = text.rpartition(" ")
    return Kernel(does, *moved.split(">"))


@framing.drawn_from()
def fused(table: Sequence[Row], *ops: str) -> str:
    """Each pattern in its ways as trips of tensors, with the kernels and times recorded. Kernels
    are as wide as they have trips.

        fused("fusion.patterns", "x.cos().cos()", "x.sin(), x.cos()")

    Args:
        ops: Patterns of `KERNELS` in the experiment.
    """
    once = [row for row in table if row["role"] != "again"]
    shown = {op: rows.select(once, op=op) for op in ops}
    label = "; ".join(f"{op}: {', '.join(map(_said, ways))}" for op, ways in shown.items())
    return canvas.both(lambda sheet: _panels(sheet, shown), f"Trips to memory. {label}.")


def _said(row: Row) -> str:
    if units.missing(row.get("median_s")) or units.missing(row.get("launched")):
        return f"{row['variant']}: {row.get('note') or 'not measured with its kernels listed'}"
    count = int(row["launched"])
    return f"{row['variant']}: {count} kernel{'s' * (count != 1)}, {units.seconds(row['median_s'])}"


def _panels(sheet: Canvas, shown: Mapping[str, Sequence[Row]]) -> None:
    """Of what a pattern may be, the one is drawn that has as many kernels as were recorded."""
    top = 14.0
    for op, ways in shown.items():
        sheet.words(1, top, op, bold=True, code=True, size=13)
        eager, *_ = drawings = kernels_of(op)
        most = max(sum(each.trips or 0.5 for each in way) for way in drawings)
        for row in ways:
            kernels = next((way for way in drawings if len(way) == row.get("launched")), ())
            widths = [(sheet.width - LEFT) / most * (each.trips or 0.5) for each in kernels]
            tone = GOOD if len(kernels) < len(eager) else BAD
            top = panel(sheet, top + 22, sheet.width, _said(row), kernels, widths, tone) + 24
        top += 26


@framing.drawn_from("fusion.patterns")
def counted(table: Sequence[Row]) -> str:
    """All patterns: how many kernels each is, eager and compiled, how much faster its trips promise
    it to be, and how much faster it is."""
    lines = []
    for op in rows.names(table, "op"):
        pair = rows.select(table, op=op, variants=["eager", "compiled"])
        counts = " → ".join(tables.cell(row, "launched") for row in pair)
        gain = rows.speed_in_words(pair[1]) if pair[1].get("ratio") else tables.NONE
        trips = _promised(op) if op in KERNELS else tables.NONE
        lines.append([tables.cell(pair[1], "pattern"), tables.code(op), counts, trips, gain])
    heads = ["kind", "pattern", "#kernels", "#trips promise", "compiled it is"]
    return tables.listed(heads, lines, "Kernels of each pattern", "patterns")


def _promised(op: str) -> str:
    eager, fused, *_ = (sum(each.trips for each in way) for way in kernels_of(op))
    return f"{eager}/{fused} = {eager / fused:.3g}×"
