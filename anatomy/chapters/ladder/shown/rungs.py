"""The rungs of the ladder as rows. The first way of a rung that could be measured stands for it,
against the rung that its script says it changes (`scripts`), and against rung 0, the control. What
is captured in a CUDA graph stands against the compiled step that is, too."""

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

from anatomy.chapters.ladder.shown import scripts
from anatomy.judge import rows
from anatomy.judge.limits import MATMUL, Ceilings
from anatomy.judge.rows import Row
from anatomy.table import units

CEILING = "ceiling "  # of these operations are the best products of the same run, by format
# Compiled and replayed as CUDA graphs: what later rungs' graphs are held against.
COMPILED_GRAPHS = {"rung": "3_compile", "variant": "3 reduce-overhead"}
# Column of an error -> what it is of.
ERRORS = {
    "loss_error": "the loss",
    "gradient_error": "the gradients",
    "output_error": "what the layers add",
}
# How far it may stray from rung 0's by the products' format; a test holds it equal to the gates.
ALLOWED = {
    "loss_error": {"fp32": 2**-16, "tf32": 2**-10, "fp16": 2**-10, "bf16": 2**-8, "fp8": 2**-6},
    "gradient_error": {"fp32": 2**-12, "tf32": 2**-7, "fp16": 2**-7, "bf16": 2**-5, "fp8": 2**-2},
    "output_error": {"fp32": 2**-12, "tf32": 2**-8, "fp16": 2**-8, "bf16": 2**-5, "fp8": 2**-3},
}
# Column -> what its kernels do, in the order drawn; the last is the rest, without a kernel.
KINDS = {
    "product_s": "matmuls",
    "attention_s": "attention",
    "pointwise_s": "pointwise, norms",
    "other_s": "other",
    "gap_s": "no kernel",
}
# Way -> what it is, for who does not know the scripts.
WORDS = {
    "0 fp32": "fp32, unfused attention",
    "1 tf32": "TF32",
    "1 amp bf16": "bf16 autocast",
    "1 amp fp16": "fp16 autocast",
    "2 amp bf16": "fused attention",
    "3 default": "torch.compile",
    "3 reduce-overhead": "torch.compile, CUDA graph",
    "3 max-autotune": "torch.compile, autotuned",
    "4 current": "FP8, Transformer Engine",
    "4 delayed": "FP8, TE, delayed scales",
    "4 block": "FP8, TE, block scales",
    "4 bf16": "Transformer Engine in bf16",
    "4 current in a graph": "FP8, TE, CUDA graph",
    "4 delayed in a graph": "FP8, TE, delayed, graph",
    "5 bf16": "bf16 weights, CUDA graph",
    "5 fp8": "FP8, own casts, graph",
    "5 fp8 delayed": "FP8, delayed scales, graph",
    "5 bf16 without a graph": "bf16 weights, no graph",
    "5 fp8 without a graph": "FP8, own casts, no graph",
    "5 fp8 delayed without a graph": "FP8, delayed, no graph",
}


def in_words(row: Mapping[str, Any]) -> str:
    """A way in words, or its name where it has none."""
    name = str(row.get("variant"))
    return WORDS.get(name, name)


def of(
    table: Sequence[Row], op: str | None = None, variants: Sequence[str] | None = None
) -> list[Row]:
    """Rows of one comparison, by default the first of rungs, without the control's duplicate; of
    `variants`, names or patterns with `*`, in this order. UnknownName if there is none."""
    known = scripts.names()
    op = op or next((row["op"] for row in table if row.get("rung") in known), None)
    every = rows.select(table, op=op)
    every = sorted((row for row in every if row.get("role") != "again"), key=_order)
    if not variants:
        return every
    names = rows.names(every, "variant")
    there = [name for wanted in variants for name in fnmatch.filter(names, wanted) or [wanted]]
    return rows.select(every, variants=list(dict.fromkeys(there)))


def known(steps: Sequence[Row], variants: Sequence[str]) -> list[str]:
    """Those of the variants, or patterns of several, that are in a comparison's rows."""
    names = rows.names(steps, "variant")
    return [wanted for wanted in variants if fnmatch.filter(names, wanted)]


def _order(row: Row) -> tuple[str, int]:
    """Rung by rung, and within one its ways as its script has them."""
    rung = str(row.get("rung") or "")
    known = scripts.ways(rung) if rung in scripts.names() else ()
    way = row.get("way")
    return rung, known.index(way) if way in known else len(known)


def measured(row: Mapping[str, Any]) -> bool:
    """Whether a row has a time that could be trusted."""
    return not units.missing(row.get("median_s")) and row.get("verdict") != "impossible"


def one_way_of_each(table: Sequence[Row]) -> list[Row]:
    """One row of each rung: the first of its script's ways that could be measured."""
    found: dict[Any, Row] = {}
    for row in sorted(table, key=_order):
        if measured(row):
            found.setdefault(row.get("rung"), row)
    return list(found.values())


def rung_before(row: Row, table: Sequence[Row]) -> Row | None:
    """The rung that a row's own changes, in the way that counts; None of rung 0. Where that rung
    could not be measured, it is the one that that one changes. A later rung's CUDA graph is held
    against the compiled step's, which is to be had for a keyword: the rest is not the graph's."""
    later = row.get("rung") not in (None, COMPILED_GRAPHS["rung"]) and as_graph(row)
    compiled = next((each for each in table if COMPILED_GRAPHS.items() <= each.items()), None)
    if later and compiled is not None and measured(compiled):
        return compiled
    there = {each.get("rung"): each for each in one_way_of_each(table)}
    name = row.get("rung")
    while name is not None and (name := scripts.before(name)) is not None:
        if name in there:
            return there[name]
    return None


def as_graph(row: Row) -> bool:
    """Whether a way's step is replayed as CUDA graphs."""
    name = str(row["variant"])
    if "graph" in name:
        return "without" not in name
    return name.startswith("5") or name == COMPILED_GRAPHS["variant"]


def over_rung_before(row: Row, table: Sequence[Row]) -> Row:
    """A row with its ratio and verdict over the last rung, paired block by block, and `control`
    that rung's; a row that has none keeps what it had."""
    below = rung_before(row, table)
    if below is None or not measured(row) or below.get("variant") == row.get("control"):
        return row
    return rows.against([below, row], below["variant"])[1]


def fastest_possible(
    row: Row, table: Sequence[Row], ceilings: Ceilings | None, products: str = "bf16"
) -> float | None:
    """Seconds of a row's matmuls at the rate of the best one of this number format in the same
    run, or of the machine where that has none, if nothing else took time."""
    best_of = [e for e in table if e.get("op") == f"{CEILING}{products}" and measured(e)]
    best = max((each["flops"] / each["median_s"] for each in best_of), default=None)
    if best is None and ceilings and (known := ceilings.get(f"{MATMUL}{products}")):
        best = known.value
    if best is None or units.missing(row.get("flops")):
        return None
    return row["flops"] / best


def share_of_bf16(row: Row, table: Sequence[Row], ceilings: Ceilings | None) -> float | None:
    """A row's rate over the best bf16 product of the same run, or of the machine where that has
    none, whatever format the row multiplies in."""
    least = fastest_possible(row, table, ceilings) if measured(row) else None
    return least and least / row["median_s"]


def format_of(row: Mapping[str, Any]) -> str:
    """Number format of a row's products; empty where not known."""
    limit = str(row.get("limit") or "")
    return row.get("products") or (limit.removeprefix(MATMUL) if MATMUL in limit else "")


def pieces(row: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Kind and seconds of what a step's time is made of; empty where it was not profiled."""
    if not measured(row) or any(units.missing(row.get(column)) for column in KINDS):
        return []
    return [(kind, row[column]) for column, kind in KINDS.items()]


def over_the_limit(
    row: Mapping[str, Any], table: Sequence[Row], ceilings: Ceilings | None
) -> list[tuple[str, float]]:
    """Kind and seconds from a row's limit to its time: all its FLOPs at its format's best rate,
    what its matmuls and its attention take beyond their share of that, its other kernels, and no
    kernel; empty where one is not known."""
    products = format_of(row)
    best = products and pieces(row) and fastest_possible(row, table, ceilings, products)
    if not best:
        return []
    # 24 C^2 + 4 C T for each token and layer, the second of which is attention's.
    attention = best * row["sequence"] / (6 * row["width"] + row["sequence"])
    return [
        ("the limit", best),
        ("matmuls beyond it", row["product_s"] - (best - attention)),
        ("attention beyond it", row["attention_s"] - attention),
        ("other kernels", row["pointwise_s"] + row["other_s"]),
        ("no kernel", row["gap_s"]),
    ]


def timed(row: Mapping[str, Any]) -> str:
    """What a row's time is of, in a word: a forward pass alone is a call, all else a step."""
    return "call" if row.get("op") == "forward" else "step"


def standing(row: Mapping[str, Any]) -> str:
    """`passes`, `void` where the answer strays, or empty where it could not be run."""
    if str(row.get("note") or "").startswith("void"):
        return "void"
    return "passes" if any(not units.missing(row.get(column)) for column in ERRORS) else ""


def heaviest(row: Mapping[str, Any], most: int) -> list[tuple[str, str, int, float]]:
    """Name, kind, launches and seconds of the kernels of one step that take longest."""
    return sorted(map(tuple, row.get("kernel_seconds") or []), key=lambda each: -each[3])[:most]
