"""The rungs of the ladder as rows: their order, which one each is held against, and what follows.

A rung can be run in several ways; the first of them that could be measured stands for it. A rung is
held against the one that its script says it changes (`anatomy.changes.before`), and against the
control of the comparison, which is rung 0.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from anatomy import changes, rows, units
from anatomy.limits import MATMUL, Ceilings
from anatomy.rows import Row

CEILING = "ceiling"  # the operation whose rows are the best products of the same run
BF16 = MATMUL + "bf16"
# How far a rung's loss, and its gradients, may stray from rung 0's, by the format of its products.
# The experiment's own gates (`ladder_rungs`) are the same; a test holds them together.
ALLOWED = {
    "fp32": (2**-16, 2**-12),
    "tf32": (2**-10, 2**-7),
    "fp16": (2**-10, 2**-7),
    "bf16": (2**-8, 2**-5),
    "fp8": (2**-6, 2**-2),
}
# Column -> what its kernels do, in the order in which they are drawn. The last is the rest of the
# step, in which no kernel runs.
KINDS = {
    "product_s": "matrix products",
    "attention_s": "attention",
    "pointwise_s": "pointwise, norms",
    "other_s": "other",
    "gap_s": "gaps",
}


def operation(table: Sequence[Row]) -> str | None:
    """The comparison that is meant where none is named: the first one of rungs."""
    return next((row["op"] for row in table if row.get("op") not in (None, CEILING)), None)


def of(
    table: Sequence[Row], op: str | None = None, variants: Sequence[str] | None = None
) -> list[Row]:
    """The rows of one comparison, rung by rung, without the control's duplicate.

    Args:
        table: All rows of a recording.
        op: The comparison; by default the first.
        variants: Variants wanted, in this order; by default all.

    Raises:
        UnknownName: There is no such comparison or variant.
    """
    chosen = rows.select(table, op=op or operation(table), variants=variants)
    kept = [row for row in chosen if row.get("role") != "again"]
    return kept if variants else sorted(kept, key=lambda row: str(row.get("rung") or ""))


def measured(row: Mapping[str, Any]) -> bool:
    """Whether a row has a time that could be trusted."""
    return not units.missing(row.get("median_s")) and row.get("verdict") != "impossible"


def counted(table: Sequence[Row]) -> list[Row]:
    """One row of each rung: its first way that could be measured."""
    found: dict[Any, Row] = {}
    for row in table:
        if measured(row):
            found.setdefault(row.get("rung"), row)
    return list(found.values())


def last(row: Row, table: Sequence[Row]) -> Row | None:
    """The rung that a row's own changes, in the way that counts; None of rung 0.

    Where that rung could not be measured, it is the one that that one changes.

    Args:
        row: One way of a rung.
        table: All rows of its comparison.
    """
    there = {each.get("rung"): each for each in counted(table)}
    name = row.get("rung")
    while name is not None and (name := changes.before(name)) is not None:
        if name in there:
            return there[name]
    return None


def climbed(row: Row, table: Sequence[Row]) -> Row:
    """A row with its ratio and verdict over the last rung, paired block by block.

    `control` is then that rung's row; a row that has none keeps what it had.
    """
    below = last(row, table)
    if below is None or not measured(row):
        return row
    if below.get("variant") == row.get("control"):
        return row
    return rows.against([below, row], below["variant"])[1]


def speedup(row: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """What a row's ratio is the inverse of, with its interval; 1 of the control."""
    if row.get("role") == "control":
        return 1.0, None, None
    ends = (row.get(name) for name in ("ratio", "ratio_high", "ratio_low"))
    middle, low, high = (None if units.missing(end) else 1 / end for end in ends)
    return middle, low, high


def share_of_bf16(row: Mapping[str, Any], ceilings: Ceilings | None) -> float | None:
    """A row's rate over the machine's limit of bf16 products, whatever format it multiplies in."""
    ceiling = ceilings.get(BF16) if ceilings else None
    if ceiling is None or not measured(row) or units.missing(row.get("flops")):
        return None
    return row["flops"] / row["median_s"] / ceiling.value


def format_of(row: Mapping[str, Any]) -> str:
    """Number format of a row's products, from the name of its limit; empty where not known."""
    return str(row.get("limit") or "").removeprefix(MATMUL)


def pieces(row: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Kind and seconds of what a step's time is made of; empty where it was not profiled."""
    if not measured(row) or any(units.missing(row.get(column)) for column in KINDS):
        return []
    return [(kind, row[column]) for column, kind in KINDS.items()]


def standing(row: Mapping[str, Any]) -> str:
    """`passes`, `void` where the answer strays, or empty where it could not be run."""
    if str(row.get("note") or "").startswith("void"):
        return "void"
    return "passes" if not units.missing(row.get("loss_error")) else ""


def heaviest(row: Mapping[str, Any], most: int) -> list[tuple[str, int, float]]:
    """Name, launches and seconds of the kernels of one step that take longest."""
    told = [each for each in row.get("kernels") or [] if isinstance(each, list | tuple)]
    return [tuple(each) for each in sorted(told, key=lambda each: -each[2])[:most]]
