"""Autograd: what one view more adds to a backward pass."""

from anatomy.judge import payback
from anatomy.judge.rules import rule

VIEW = ("view_s", "view_low_s", "view_high_s")


@rule(
    "autograd_graph.costs",
    columns=VIEW,
    source="slope of blocks_s over views, on the row with most views",
)
def view(rows, known):
    """The slope over all chains of a comparison, on its longest chain alone."""
    return payback.slopes(rows, "views", VIEW, known)
