"""What strides and offsets cost, beside what the sectors of a warp's request say."""

from anatomy.claims import Cases, Finding, Need, claims_on
from anatomy.claims.table import Table, quotient, rate_of, trusted
from anatomy.judge.rows import Row

STRIDES, OFFSETS = Need("coalescing.strides"), Need("coalescing.offsets")
on_hierarchy = claims_on("memory hierarchy")


def _share(table: Table, row: Row):
    """The row's bandwidth over that of its control, whose warps use all that they touch."""
    (control,) = table.select(op=row["op"], role="control")
    rates = (rate_of(trusted(each), "bytes", "B/s") for each in (row, control))
    return quotient(*rates)


def _cases(table: Table, coordinate: str, **columns) -> Cases:
    """Whether each row's bandwidth is within 10 % of what its sectors predict."""
    cases = Cases()
    for row in table.select(role="variant", **columns):
        with cases.at(op=row["op"], **{coordinate: row["variant"]}) as case:
            share = _share(table, trusted(row))
            case(share.near(row["useful_share"]), share)
    return cases


@on_hierarchy(
    "The sectors of 32 bytes that a warp touches predict its bandwidth at any stride.",
    STRIDES,
    measures="bandwidth at a stride / at stride 1",
)
def sectors_predict_strides(strides: Table) -> Finding:
    """At each stride the bandwidth is within 10 % of what was asked for over what was touched."""
    cases = _cases(strides, "stride", op="one of each")
    return cases.finding(f"Within 10 % in {cases.true} of {len(cases)} strides.")


@on_hierarchy(
    "Pieces of 64 bytes predict the bandwidth at any stride.",
    STRIDES,
    measures="bandwidth at a stride / at stride 1",
)
def pieces_predict_strides(strides: Table) -> Finding:
    """At each stride the bandwidth is within 10 % of what was asked for over all 64-byte pieces
    that hold some of it."""
    cases = Cases()
    for row in strides.select(role="variant", op="one of each"):
        with cases.at(stride=row["variant"]) as case:
            share = _share(strides, trusted(row))
            case(share.near(row["piece_rate"] / row["predicted_rate"] * row["useful_share"]), share)
    return cases.finding(f"Within 10 % in {cases.true} of {len(cases)} strides.")


@on_hierarchy(
    "A stride costs at most a fifth of the bandwidth where the elements between are read "
    "right after, for they lie in the cache by then.",
    STRIDES,
    measures="bandwidth at a stride, all elements read / at stride 1",
)
def strides_are_cheap_if_all_is_used(strides: Table) -> Finding:
    """Read one after the other, all elements come at four fifths of stride 1's rate or more."""
    cases = Cases()
    for row in strides.select(role="variant", op="all of them"):
        with cases.at(stride=row["variant"]) as case:
            share = _share(strides, trusted(row))
            case(share.at_least(0.8), share, f"{row['variant']} {share.text}")
    return cases.finding(f"Over stride 1: {cases.said()}.")


@on_hierarchy(
    "The sectors of 32 bytes that a warp touches predict what an offset costs.",
    OFFSETS,
    measures="bandwidth at an offset / at none",
)
def sectors_predict_offsets(offsets: Table) -> Finding:
    """At each offset the bandwidth is within 10 % of what was asked for over what was touched."""
    cases = _cases(offsets, "offset")
    return cases.finding(f"Over offset 0: {cases.spans('op')}.")
