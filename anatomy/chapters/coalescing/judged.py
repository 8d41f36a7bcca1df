"""Coalescing: the bandwidth that a request should have by its sectors."""

from collections.abc import Sequence
from typing import Any

from anatomy.judge.comparisons import Judged, comparisons
from anatomy.judge.rows import Row
from anatomy.judge.rules import rule


@rule(
    "coalescing.strides",
    "coalescing.offsets",
    columns=("predicted_rate",),
    source="rate of the control, whose warps use all that they touch, times useful_share",
)
def rate_by_sectors(rows: Sequence[Row], known: Any) -> Judged:
    """What is asked for, as a share of what moves, of the rate at which all is used."""
    for places in comparisons(rows):
        control = rows[places[0]]
        rate = control["bytes"] / control["median_s"]
        for place in places:
            yield place, {"predicted_rate": rate * rows[place]["useful_share"]}
