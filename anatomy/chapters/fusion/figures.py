"""Kinds of fusion as trips through memory, eager and compiled, and the kernels of all patterns."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from anatomy.figures import framing, tables
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, Canvas
from anatomy.figures.diagrams.trips import LEFT, Kernel, panel
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.record.showing import current
from anatomy.table import units
from anatomy.table.errors import lookup

EAGER, COMPILED, TEMPLATE = "eager", "compiled", "Triton template"
# Kernels that are a matmul and no more, and what has two of them and nothing else.
MATMULS, TWO_MATMULS = ("a @ b", "a @ w"), "a @ b @ c"
NAMED = 58.0  # pixels: a kernel beside a matmul is no narrower, so that its name fits
Kernels = tuple[Kernel, ...]
APART = Kernel("sum", ("x",), ()), Kernel("x / s", ("x",), ("y",))
# Pattern -> its kernels eager, and what the compiler may have made of it. Of these the one is drawn
# that has as many kernels as were recorded.
DRAWN: dict[str, tuple[Kernels, tuple[Kernels, ...]]] = {
    "x.cos().cos()": (
        (Kernel("cos", ("x",), ("t",)), Kernel("cos", ("t",), ("y",))),
        ((Kernel("cos, cos", ("x",), ("y",)),),),
    ),
    "x.sin(), x.cos()": (
        (Kernel("sin", ("x",), ("s",)), Kernel("cos", ("x",), ("c",))),
        ((Kernel("sin, cos", ("x",), ("s", "c")),),),
    ),
    "(x * x).sum(-1)": (
        (Kernel("x * x", ("x",), ("t",)), Kernel("sum", ("t",), ())),
        ((Kernel("x * x, sum", ("x",), ()),),),
    ),
    "x / x.sum()": (APART, (APART, (Kernel("sums", ("x",), ()), Kernel("sum", (), ()), APART[1]))),
    "relu(a @ b + bias)": (
        (Kernel("a @ b", ("a", "b"), ("p",)), Kernel("+ bias", ("p",), ("q",)),
         Kernel("relu", ("q",), ("y",))),
        ((Kernel("@, +, relu", ("a", "b"), ("y",)),),
         (Kernel("a @ b", ("a", "b"), ("p",)), Kernel("+, relu", ("p",), ("y",)))),
    ),
    "a @ int8.to(bf16)": (
        (Kernel("to(bf16)", ("w8",), ("w",)), Kernel("a @ w", ("a", "w"), ("y",))),
        ((Kernel("to, @", ("a", "w8"), ("y",)),),
         (Kernel("to(bf16)", ("w8",), ("w",)), Kernel("a @ w", ("a", "w"), ("y",)))),
    ),
}  # fmt: skip


FEW = ", 1024 elements"
# Trips of the large tensor, eager and where all that may share a kernel does; none of those that
# wait for launches. A row, a column and the sums of rows are too few to count.
TRIPS = {
    "x.cos().cos()": (4, 2),
    "x.sin(), x.cos()": (4, 3),
    "x.sin(), y.cos()": (4, 4),
    "x * row + column": (4, 2),
    "x[order].sin()": (4, 2),
    "(x * x).sum(-1)": (3, 1),
    "softmax by hand": (8, 2),
    "x / x.sum(-1)": (3, 2),
    "x / x.sum()": (3, 3),
    "gate, full w and b": (10, 4),
    "gate, vectors": (8, 2),
}


class Told(NamedTuple):
    """One way to run a pattern: its kernels as drawn, none where they are others, in words, and its
    time in seconds, none where it is not known."""

    kernels: Kernels
    said: str
    time: float | None = None


def fused(*ops: str, experiment: str = "fusion.patterns", caption: str | None = None) -> str:
    """Each pattern eager and fused, as trips of tensors, with the kernels and times recorded. The
    kernels of each way are together as wide as its time.

        fused("x.cos().cos()", "x.sin(), x.cos()")

    In a row a matmul is as wide as half of two, all others share the rest; without one, by trips.

    Args:
        ops: Patterns of `DRAWN` in the experiment.
    """
    found = current().find(experiment)
    ways = (EAGER, COMPILED, *([TEMPLATE] if experiment == "fusion.matmuls" else []))
    for op in ops:
        lookup("drawn pattern", op, DRAWN)

    def draw() -> str:
        table = found.recording.rows
        told = {op: [_told(table, op, way) for way in ways] for op in ops}
        two = rows.select(table, op=TWO_MATMULS, variants=[EAGER]) if TEMPLATE in ways else []
        matmul_s = (two[0].get("median_s") or 0.0) / 2 if two else 0.0
        label = "; ".join(
            f"{op}: {', '.join(each.said for each in ways)}" for op, ways in told.items()
        )
        return canvas.both(
            lambda sheet: _panels(sheet, told, matmul_s), f"Trips to memory. {label}."
        )

    return framing.exhibit(found, caption, draw)


def _told(table: Sequence[Row], op: str, way: str) -> Told:
    row = rows.select(table, op=op, variants=[way])[0]
    if units.missing(row.get("median_s")) or units.missing(row.get("launched")):
        return Told((), f"{way}: {row.get('note') or 'not measured with its kernels listed'}")
    count, (eager, others) = int(row["launched"]), DRAWN[op]
    known = {len(kernels): kernels for kernels in ([eager] if way == EAGER else others)}
    said = f"{way}: {count} kernel{'s' * (count != 1)}, {units.seconds(row['median_s'])}"
    return Told(known.get(count, ()), said, row["median_s"])


def _widths(kernels: Kernels, pixels: float, matmul: float) -> list[float]:
    """Pixels of each kernel in a row: of a bare matmul `matmul`, else by trips, or as its name."""
    others = sum(kernel.does not in MATMULS for kernel in kernels)
    if not matmul or others in (0, len(kernels)):
        trips = [kernel.trips for kernel in kernels]
        return [(pixels - NAMED * trips.count(0)) * each / sum(trips) or NAMED for each in trips]
    each = max((pixels - matmul) / others, NAMED)
    rest = (pixels - others * each) / (len(kernels) - others)
    return [rest if kernel.does in MATMULS else each for kernel in kernels]


def _panels(sheet: Canvas, told: Mapping[str, Sequence[Told]], matmul_s: float) -> None:
    top = 14.0
    for op, all_ways in told.items():
        sheet.words(1, top, op, bold=True, code=True, size=13)
        longest = max(each.time or 0.0 for each in all_ways)
        for each in all_ways:
            if each.kernels:
                tone = GOOD if len(each.kernels) < len(all_ways[0].kernels) else BAD
                scale = (sheet.width - LEFT) / longest
                widths = _widths(each.kernels, scale * each.time, scale * matmul_s)
                top = panel(sheet, top + 22, sheet.width, each.said, each.kernels, widths, tone)
                top += 24
            else:
                top = sheet.paragraph(1, top + 22, sheet.width - 2, each.said, bold=True) - 10
        top += 26


@framing.drawn_from("fusion.patterns")
def counted(table: Sequence[Row]) -> str:
    """All patterns: how many kernels each is, eager and compiled, how much faster its trips promise
    it to be, and how much faster it is."""
    lines = []
    for op in rows.names(table, "op"):
        pair = rows.select(table, op=op, variants=[EAGER, COMPILED])
        counts = " → ".join(tables.cell(row, "launched") for row in pair)
        compiled = pair[-1]
        known = not units.missing(compiled.get("ratio"))
        gain = rows.speed_in_words(rows.derived(compiled, None), "ratio") if known else "—"
        before, after = TRIPS.get(op, (0, 0))
        trips = f"{before}/{after} = {before / after:.3g}×" if after else tables.NONE
        line, few, more = op.partition(FEW)  # what comes after is said of it, and is no code
        pattern = f"{tables.code(line)}{few}{more}"
        lines.append([compiled.get("pattern") or "", pattern, counts, trips, gain])
    heads = ["kind", "pattern", "#kernels", "#trips promise", "compiled it is"]
    return tables.listed(heads, lines, "Kernels of each pattern", "patterns")
