"""Checkpointing and accumulation: memory and operations of each variant over the control's."""

from anatomy.judge.comparisons import controlled
from anatomy.judge.rules import rule

# Column -> the column that it is the ratio of, over the control's.
RATIOS = {
    "memory_ratio": "peak_bytes",
    "total_memory_ratio": "total_peak_bytes",
    "activation_ratio": "activation_bytes",
    "product_ratio": "run_flops",
}


@rule("checkpointing.frontier", columns=tuple(RATIOS), source="bytes and run_flops over none's")
def over_none(rows, known):
    """Each row over the control of its comparison; None where one of the two is not known."""
    for place, row, control in controlled(rows):
        both = {name: (row.get(of), control.get(of)) for name, of in RATIOS.items()}
        yield place, {name: a / b if a and b else None for name, (a, b) in both.items()}


@rule("accumulation.steps", columns=("memory_ratio",), source="peak_bytes over the control's")
def memory(rows, known):
    """Memory of each row over that of its comparison's control, likewise."""
    for place, ratios in over_none(rows, known):
        yield place, {"memory_ratio": ratios["memory_ratio"]}
