"""What never to do: what one use costs, and how a first call compares with warm ones."""

from anatomy.judge import payback
from anatomy.judge.comparisons import TIMES, controlled, in_columns
from anatomy.judge.rules import rule
from anatomy.table import intervals

USE = ("use_s", "use_low_s", "use_high_s")
WARM = "warm"


@rule("never.costs", columns=USE, source="blocks_s less the control's, over uses in a call")
def one_use(rows, known):
    """What one use takes more than the control; None where a call has no such use."""
    for place, row, control in controlled(rows):
        found, uses = dict.fromkeys(USE), row.get("uses")
        if uses:
            found = in_columns(USE, payback.extra(row, control, known, uses))
        yield place, found


@rule(
    "never.costs",
    columns=(*TIMES, "over_warm", "mean_first_s", "mean_over_warm"),
    source="the call's median_s over the median of the warm calls' blocks_s",
)
def first_calls(rows, known):
    """Each first call, and the mean of all of them, over the median of the warm calls."""
    for at, row in enumerate(rows):
        if row["variant"] != WARM or not row.get("blocks_s"):
            continue
        warm = intervals.median_interval(row["blocks_s"])
        first_s = []
        for place, other in enumerate(rows):
            if other.get("op") == row["op"] and other.get("call") is not None:
                first_s.append(other["median_s"])
                yield place, {"over_warm": other["median_s"] / warm.median}
        mean_s = sum(first_s) / len(first_s)
        means = {"mean_first_s": mean_s, "mean_over_warm": mean_s / warm.median}
        yield at, in_columns(TIMES, warm) | {"over_warm": 1.0} | means
