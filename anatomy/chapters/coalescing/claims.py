"""What strides and offsets cost, beside what the sectors of a warp's request say."""

from collections.abc import Callable

from anatomy.claims import Cases, Finding, Measured, Need, claim
from anatomy.claims.table import Table, quotient, rate_of
from anatomy.judge.rows import Row

STRIDES, OFFSETS = Need("coalescing.strides"), Need("coalescing.offsets")


def _shares(table: Table, true: Callable[[Measured, Row], bool | None], **columns) -> Cases:
    """Of each row, whether something is true of its bandwidth over that of its control, whose warps
    use all that they touch."""
    cases = Cases()
    for row in table.select(role="variant", **columns):
        with cases.at(op=row["op"], place=row["variant"]) as case:
            (control,) = table.select(op=row["op"], role="control")
            share = quotient(*(rate_of(each, "bytes", "B/s") for each in (row, control)))
            case(true(share, row), share)
    return cases


def _by_sectors(share: Measured, row: Row) -> bool | None:
    return share.near(row["useful_share"])


def _by_pieces(share: Measured, row: Row) -> bool | None:
    return share.near(row["piece_rate"] / row["predicted_rate"] * row["useful_share"])


@claim(STRIDES, topic="memory hierarchy", measures="bandwidth at a stride / at stride 1")
def sectors_predict_strides(strides: Table) -> Finding:
    """The sectors of 32 bytes that a warp touches predict its bandwidth at any stride.

    At each stride the bandwidth is within 10 % of what was asked for over what was touched."""
    cases = _shares(strides, _by_sectors, op="one of each")
    return cases.finding(f"Within 10 % in {cases.true} of {len(cases)} strides.")


@claim(STRIDES, topic="memory hierarchy", measures="bandwidth at a stride / at stride 1")
def pieces_predict_strides(strides: Table) -> Finding:
    """Pieces of 64 bytes predict the bandwidth at any stride.

    At each stride the bandwidth is within 10 % of what was asked for over all 64-byte pieces that
    hold some of it."""
    cases = _shares(strides, _by_pieces, op="one of each")
    return cases.finding(f"Within 10 % in {cases.true} of {len(cases)} strides.")


@claim(
    STRIDES,
    topic="memory hierarchy",
    measures="bandwidth at a stride, all elements read / at stride 1",
)
def strides_are_cheap_if_all_is_used(strides: Table) -> Finding:
    """A stride costs at most a fifth of the bandwidth where the elements between are read right
    after, for they lie in the cache by then.

    Read one after the other, all elements come at four fifths of stride 1's rate or more."""
    cases = _shares(strides, lambda share, row: share.at_least(0.8), op="all of them")
    return cases.finding(f"Over stride 1: {cases.spans('place')}.")


@claim(OFFSETS, topic="memory hierarchy", measures="bandwidth at an offset / at none")
def sectors_predict_offsets(offsets: Table) -> Finding:
    """The sectors of 32 bytes that a warp touches predict what an offset costs.

    At each offset the bandwidth is within 10 % of what was asked for over what was touched."""
    cases = _shares(offsets, _by_sectors)
    return cases.finding(f"Over offset 0: {cases.spans('op')}.")
