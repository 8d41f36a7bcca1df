"""Autograd: what one view more adds to a backward pass."""

from anatomy.judge import payback
from anatomy.judge.comparisons import comparisons
from anatomy.judge.rules import rule


@rule(
    "autograd_graph.costs",
    columns=("view_s", "view_low_s", "view_high_s"),
    source="slope of blocks_s over views, on the row with most views",
)
def view(rows, known):
    """The slope over all chains of a comparison, on its longest chain alone."""
    for places in comparisons(rows):
        if rows[places[0]].get("views") is None:
            continue
        used = [rows[place] for place in places if rows[place]["role"] != "again"]
        slope = payback.slope([row["views"] for row in used], [row["blocks_s"] for row in used])
        most = max(row["views"] for row in used)
        for place in places:
            ends = (slope.median, slope.low, slope.high)
            ends = ends if rows[place]["views"] == most else payback.NEVER_SAID
            yield place, dict(zip(("view_s", "view_low_s", "view_high_s"), ends, strict=True))
