"""Kinds of fusion as trips through memory, eager and compiled, and the kernels of all patterns."""

from collections.abc import Mapping, Sequence
from typing import Any

from anatomy.figures import framing, tables
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, Canvas
from anatomy.figures.diagrams.trips import Kernel, panel
from anatomy.figures.text import spans
from anatomy.judge import rows
from anatomy.record.showing import current
from anatomy.table import units
from anatomy.table.errors import lookup

EAGER, COMPILED, TEMPLATE = "eager", "compiled", "Triton template"
Kernels = tuple[Kernel, ...]
# Pattern -> its kernels eager, and fused as it is drawn; the recording says how many there were.
DRAWN: dict[str, tuple[Kernels, Kernels]] = {
    "x.cos().cos()": (
        (Kernel("cos", ("x",), ("t",)), Kernel("cos", ("t",), ("y",))),
        (Kernel("cos, cos", ("x",), ("y",)),),
    ),
    "x.sin(), x.cos()": (
        (Kernel("sin", ("x",), ("s",)), Kernel("cos", ("x",), ("c",))),
        (Kernel("sin, cos", ("x",), ("s", "c")),),
    ),
    "(x * x).sum(-1)": (
        (Kernel("x * x", ("x",), ("t",)), Kernel("sum", ("t",), ())),
        (Kernel("x * x, sum", ("x",), ()),),
    ),
    "x / x.sum()": (
        (Kernel("sum", ("x",), ()), Kernel("x / s", ("x",), ("y",))),
        (Kernel("sum", ("x",), ()), Kernel("x / s", ("x",), ("y",))),
    ),
    "relu(a @ b + bias)": (
        (Kernel("a @ b", ("a", "b"), ("p",)), Kernel("+ bias", ("p",), ("q",)),
         Kernel("relu", ("q",), ("y",))),
        (Kernel("@, +, relu", ("a", "b"), ("y",)),),
    ),
    "a @ int8.to(bf16)": (
        (Kernel("to(bf16)", ("w8",), ("w",)), Kernel("a @ w", ("a", "w"), ("y",))),
        (Kernel("to, @", ("a", "w8"), ("y",)),),
    ),
}  # fmt: skip


def fused(*ops: str, experiment: str = "fusion.patterns", caption: str | None = None) -> str:
    """Each pattern eager and fused, as trips of tensors, with the kernels and times recorded.

        fused("x.cos().cos()", "x.sin(), x.cos()")

    Args:
        ops: Patterns of `DRAWN` in the experiment.
    """
    found = current().find(experiment)
    drawn = {op: lookup("drawn pattern", op, DRAWN) for op in ops}
    way = COMPILED if experiment == "fusion.patterns" else TEMPLATE

    def draw() -> str:
        told = {op: _told(found.recording.rows, op, way) for op in ops}
        if lacking := [each for each in told.values() if isinstance(each, str)]:
            return spans.gap_because(lacking[0])
        label = "; ".join(f"{op}: {a}, {b}" for op, (a, b) in told.items())
        return canvas.both(lambda sheet: _panels(sheet, drawn, told), f"Trips to memory. {label}.")

    return framing.exhibit(found, caption, draw)


def _told(table: Sequence[Mapping[str, Any]], op: str, way: str) -> tuple[str, str] | str:
    """What is said of a pattern, eager and fused; or why nothing is drawn of it."""
    said = []
    for name, kernels in zip((EAGER, way), DRAWN[op], strict=True):
        row = rows.select(table, op=op, variants=[name])[0]
        if units.missing(row.get("median_s")) or units.missing(row.get("launched")):
            return row.get("note") or "not measured with its kernels listed"
        count = int(row["launched"])
        if count != len(kernels):
            return f"{op}, {name}, is {count} kernels here; the drawing of {len(kernels)} is not it"
        kernels_said = f"{count} kernel{'s' * (count > 1)}"
        said.append(f"{name}: {kernels_said}, {units.seconds(row['median_s'])}")
    return said[0], said[1]


def _panels(sheet: Canvas, drawn: dict, told: dict[str, tuple[str, str]]) -> None:
    top = 14.0
    for op, pair in drawn.items():
        sheet.words(1, top, op, bold=True, code=True, size=13)
        places = max(2, len(pair[0]))
        for at, (kernels, said) in enumerate(zip(pair, told[op], strict=True)):
            tone = BAD if at == 0 or len(kernels) == len(pair[0]) else GOOD
            top = panel(sheet, top + 22, sheet.width, said, kernels, places, tone) + 24
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
