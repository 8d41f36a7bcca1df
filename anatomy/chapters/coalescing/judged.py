"""Coalescing: the bandwidth that a read should have by what it touches."""

from collections.abc import Sequence
from typing import Any

from anatomy.chapters.coalescing.requirements import ONE
from anatomy.judge.comparisons import Judged, comparisons
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
    for place, rate in _controls(rows):
        yield place, {"predicted_rate": rate * rows[place]["useful_share"]}


@rule(
    "coalescing.strides",
    columns=("piece_rate",),
    source="rate of the control, times the share of pieces of 64 bytes that is asked for",
)
def rate_by_pieces(rows: Sequence[Row], known: Any) -> Judged:
    """One element of so many is asked for, until each lies in a piece of its own."""
    for place, rate in _controls(rows):
        row = rows[place]
        apart = row["stride"] if row["op"] == ONE else 1
        yield place, {"piece_rate": rate / min(apart, PIECE_ITEMS)}


def _controls(rows: Sequence[Row]):
    """Each place, with the rate of its comparison's control."""
    for places in comparisons(rows):
        control = rows[places[0]]
        yield from ((place, control["bytes"] / control["median_s"]) for place in places)
