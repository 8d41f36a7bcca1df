"""What a forward pass leaves for the backward pass: saved tensors as a stack, node by node."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, MUTED, QUIET, Canvas
from anatomy.figures.framing import drawn_from
from anatomy.judge.rows import Row, select
from anatomy.table import units
from anatomy.table.errors import BadParameter

TALL = 300.0  # pixels of the highest stack
LEAST = 0.01  # what holds a smaller share of the highest stack is not drawn
NAMED = 12.0  # pixels: a lower box has no room for its name
PART = "attention"  # the part of the graph whose tensors have a colour
# A node's name in the graph -> the operation as it is written.
WRITTEN = {
    "NativeLayerNorm": "layer norm",
    "Addmm": "linear",
    "Bmm": "matmul",
    "Gelu": "GELU",
}


class Held(NamedTuple):
    """The bytes that one operation keeps in memory of its own for its backward."""

    name: str
    bytes: int
    attention: bool


@drawn_from()
def saved_stack(table: Sequence[Row], *, graphs: Mapping[str, str]) -> str:
    """Stacks of saved tensors to one scale, the first operation's at the bottom.

        saved_stack("autograd_graph.nodes", graphs={"manual": "Unfused", "default": "Fused"})

    Args:
        experiment: One with rows as `autograd_graph.nodes` has them.
        graphs: Op of each graph shown -> what it is called.
    """
    stacks = {title: held(table, op) for op, title in graphs.items()}
    label = "; ".join(
        f"{title}: {units.byte_count(total(stack))}, of them "
        f"{units.byte_count(total([each for each in stack if each.attention]))} of attention"
        for title, stack in stacks.items()
    )
    label = f"Saved tensors of a layer, stacked in the order of the forward pass. {label}."
    return canvas.both(lambda sheet: _stacks(sheet, stacks), label)


def held(table: Sequence[Row], op: str) -> list[Held]:
    """What is held by each operation of a graph, in the order of the forward pass."""
    nodes = [row for row in select(table, op=op) if row.get("own_bytes")]
    if not nodes:
        raise BadParameter(f"no node of {op} holds memory of its own.")
    # Backward runs the other way round.
    nodes.sort(key=lambda row: row["runs_at"], reverse=True)
    return [Held(_written(row["name"]), row["own_bytes"], row["part"] == PART) for row in nodes]


def total(stack: Sequence[Held]) -> int:
    """Bytes of a whole stack."""
    return sum(each.bytes for each in stack)


def _written(name: str) -> str:
    plain = name.partition("Backward")[0]
    return "fused attention" if "ScaledDotProduct" in plain else WRITTEN.get(plain, plain)


def _stacks(sheet: Canvas, stacks: Mapping[str, Sequence[Held]]) -> None:
    most = max(map(total, stacks.values()))
    beside = sheet.width > 500
    across = sheet.width / len(stacks) if beside else sheet.width
    for number, (title, stack) in enumerate(stacks.items()):
        x = number * across if beside else 0.0
        top = 0.0 if beside or not number else sheet.height + 18
        colour = (BAD, GOOD)[number % 2]
        said = f"{title}: {units.byte_count(total(stack))}"
        sheet.words(x + 1, top + 13, said, bold=True)
        wide = min(across - 28, 300.0)
        ground = top + 30 + TALL
        _arrows(sheet, x, wide, ground)
        y, nameless = ground, []
        for each in _together(stack, least=most * NAMED / TALL):
            if each.bytes < LEAST * most:
                continue
            high = TALL * each.bytes / most
            y -= high
            fill = colour if each.attention else QUIET
            inside = x + 26, wide - 52
            sheet.box(
                inside[0], y, inside[1], high - 1, fill=fill, opacity=0.3, edge=fill, round_=1
            )
            if high < NAMED:
                nameless.append(f"{each.name} {units.byte_count(each.bytes)}")
                continue
            size = 11 if high > 13.5 else 10
            line = y + (high - 1) / 2 + 0.36 * size
            sheet.words(inside[0] + 6, line, each.name, size=size, bold=each.attention)
            end = inside[0] + inside[1] - 6
            sheet.words(end, line, units.byte_count(each.bytes), size=size, anchor="end")
        if nameless:
            said = f"too thin for a name: {', '.join(nameless)}"
            sheet.words(x + 1, ground + 30, said, size=11, colour=MUTED)


def _together(stack: Sequence[Held], least: float) -> list[Held]:
    """A stack with neighbours of fewer bytes than `least` as one, where they are no attention."""
    joined: list[Held] = []
    for small, some in groupby(stack, lambda each: each.bytes < least and not each.attention):
        several = list(some)
        if small:
            several = [Held(", ".join(each.name for each in several), total(several), False)]
        joined += several
    return joined


def _arrows(sheet: Canvas, x: float, wide: float, ground: float) -> None:
    """Forward puts on top, at the left; backward takes off the top, at the right."""
    left, right = x + 14, x + wide - 14
    for at, ends in ((left, (ground - 4, ground - TALL)), (right, (ground - TALL, ground - 4))):
        sheet.line(*((at, y) for y in ends), colour=MUTED, thick=1.6, arrow=True)
    sheet.line((x + 1, ground), (x + wide, ground), colour=MUTED)
    sheet.words(x + 1, ground + 15, "forward adds", size=11, colour=INK)
    sheet.words(x + wide, ground + 15, "backward takes off", size=11, colour=INK, anchor="end")
