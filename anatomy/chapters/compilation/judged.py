"""torch.compile: when compiling is paid back, and what one graph break adds."""

from anatomy.judge import payback
from anatomy.judge.comparisons import controlled
from anatomy.judge.payback import USES
from anatomy.judge.rules import rule

BREAK = ("break_s", "break_low_s", "break_high_s")


@rule(
    "compilation.map",
    "compilation.layers",
    columns=(*USES, "pays"),
    source="setup_s over what blocks_s of a step save against eager's",
)
def paid_back(rows, known):
    """Steps after which setting a way up is paid back, where it is faster than eager."""
    for place, row, eager in controlled(rows):
        found, cost_s = dict.fromkeys((*USES, "pays")), row.get("setup_s")
        if cost_s is not None:
            found = payback.paid(row["verdict"], cost_s, eager["blocks_s"], row["blocks_s"])
        yield place, found


@rule(
    "compilation.breaks",
    columns=BREAK,
    source="slope of blocks_s over breaks, on the row with most breaks",
)
def graph_break(rows, known):
    """The slope over all compiled variants of a chain, on the one with most breaks."""
    return payback.slopes(rows, "breaks", BREAK, known)
