"""Kinds of fusion as trips through memory, eager and compiled, and the kernels of all patterns."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from anatomy.figures import framing, tables
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, Canvas
from anatomy.figures.diagrams.trips import Kernel, panel
from anatomy.judge import rows
from anatomy.record.showing import current
from anatomy.table import units
from anatomy.table.errors import lookup

EAGER, COMPILED, TEMPLATE = "eager", "compiled", "Triton template"
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


class Told(NamedTuple):
    """One way to run a pattern: its kernels as drawn, none where they are others, and in words."""

    kernels: Kernels
    said: str


def fused(*ops: str, experiment: str = "fusion.patterns", caption: str | None = None) -> str:
    """Each pattern eager and fused, as trips of tensors, with the kernels and times recorded.

        fused("x.cos().cos()", "x.sin(), x.cos()")

    Args:
        ops: Patterns of `DRAWN` in the experiment.
    """
    found = current().find(experiment)
    ways = (EAGER, COMPILED if experiment == "fusion.patterns" else TEMPLATE)
    for op in ops:
        lookup("drawn pattern", op, DRAWN)

    def draw() -> str:
        table = found.recording.rows
        told = {op: [_told(table, op, way) for way in ways] for op in ops}
        label = "; ".join(f"{op}: {a.said}, {b.said}" for op, (a, b) in told.items())
        return canvas.both(lambda sheet: _panels(sheet, told), f"Trips to memory. {label}.")

    return framing.exhibit(found, caption, draw)


def _told(table: Sequence[Mapping[str, Any]], op: str, way: str) -> Told:
    row = rows.select(table, op=op, variants=[way])[0]
    if units.missing(row.get("median_s")) or units.missing(row.get("launched")):
        return Told((), f"{way}: {row.get('note') or 'not measured with its kernels listed'}")
    count, (eager, others) = int(row["launched"]), DRAWN[op]
    known = {len(kernels): kernels for kernels in ([eager] if way == EAGER else others)}
    said = f"{way}: {count} kernel{'s' * (count != 1)}, {units.seconds(row['median_s'])}"
    return Told(known.get(count, ()), said)


def _panels(sheet: Canvas, told: Mapping[str, Sequence[Told]]) -> None:
    top = 14.0
    for op, pair in told.items():
        sheet.words(1, top, op, bold=True, code=True, size=13)
        places = max(2, *(len(each.kernels) for each in pair))
        for each in pair:
            if each.kernels:
                tone = BAD if each is pair[0] or len(each.kernels) >= len(pair[0].kernels) else GOOD
                top = panel(sheet, top + 22, sheet.width, each.said, each.kernels, places, tone)
                top += 24
            else:
                top = sheet.paragraph(1, top + 22, sheet.width - 2, each.said, bold=True) - 10
        top += 26


def counted(*, caption: str | None = None) -> str:
    """All patterns: how many kernels each is, eager and compiled, and how much faster that is."""
    found = current().find("fusion.patterns")

    def draw() -> str:
        table = found.recording.rows
        lines = []
        for op in rows.names(table, "op"):
            pair = rows.select(table, op=op, variants=[EAGER, COMPILED])
            counts = [row.get("launched") for row in pair]
            cells = [tables.NONE if units.missing(each) else f"{each:g}" for each in counts]
            compiled = pair[-1]
            known = not units.missing(compiled.get("ratio"))
            gain = rows.speed_in_words(rows.derived(compiled, None), "ratio") if known else "—"
            lines.append([compiled.get("pattern") or "", tables.code(op), *cells, gain])
        heads = ["kind", "pattern", "#eager kernels", "#compiled", "compiled it is"]
        return tables.listed(heads, lines, "Kernels of each pattern", "patterns")

    return framing.exhibit(found, caption, draw)
