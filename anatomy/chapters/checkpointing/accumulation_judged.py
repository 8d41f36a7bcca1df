"""Gradient accumulation: the memory of each way over the full batch's."""

from anatomy.judge.comparisons import controlled
from anatomy.judge.rules import rule


@rule("accumulation.steps", columns=("memory_ratio",), source="peak_bytes over the control's")
def memory(rows, known):
    """Memory of each row over that of its comparison's control; None where one is not known."""
    for place, row, control in controlled(rows):
        both = row.get("peak_bytes"), control.get("peak_bytes")
        yield place, {"memory_ratio": both[0] / both[1] if all(both) else None}
