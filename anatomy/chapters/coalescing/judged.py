"""Coalescing: the bandwidth that a read should have by what it touches."""

from collections.abc import Sequence
from typing import Any

from anatomy.chapters.coalescing.requirements import ONE
from anatomy.judge.comparisons import Judged, controlled
from anatomy.judge.rows import Row
from anatomy.judge.rules import rule

PIECE_ITEMS = 16  # elements of float32 in 64 bytes


@rule(
    "coalescing.strides",
    "coalescing.offsets",
    columns=("predicted_rate",),
    source="rate of the control, whose warps use all that they touch, times useful_share",
)
def rate_by_sectors(rows: Sequence[Row], known: Any) -> Judged:
    """What is asked for, as a share of what moves, of the rate at which all is used."""
    for place, row, control in controlled(rows):
        rate = control["bytes"] / control["median_s"]
        yield place, {"predicted_rate": rate * row["useful_share"]}


@rule(
    "coalescing.strides",
    columns=("piece_rate",),
    source="rate of the control, times the share of pieces of 64 bytes that is asked for",
)
def rate_by_pieces(rows: Sequence[Row], known: Any) -> Judged:
    """One element of so many is asked for, until each lies in a piece of its own."""
    for place, row, control in controlled(rows):
        rate, apart = control["bytes"] / control["median_s"], row["stride"]
        yield place, {"piece_rate": rate / min(apart if row["op"] == ONE else 1, PIECE_ITEMS)}
