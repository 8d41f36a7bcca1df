"""What the seed says of channels_last, put to the recording of a network built as ResNet-50."""

from anatomy import units
from anatomy.claims import Case, Finding, Measured, Need, across, claim, within
from anatomy.claims.graph_capture import is_faster, speed_up
from anatomy.claims.pace import listed, pace
from anatomy.claims.table import Table, why_not
from anatomy.rows import Row

NETWORK = Need("channels_last.network")
# The speed-up that the seed names.
CLAIMED = (1.1, 1.3)


@claim(NETWORK)
def channels_last_is_faster(network: Table) -> Finding:
    """In every format, phase and batch the network in channels_last takes less time on the wall.

    Model and images lie in channels_last before the clock starts. The number stands beside it:
    how much faster, and in how many cells as the seed says.
    """
    cases: list[Case] = []
    seen: dict[tuple[str, str], list[Measured]] = {}
    for row in network:
        if row["variant"] != "channels_last":
            continue
        if reason := why_not(row):
            cases.append(Case(_where(row), None, why=reason))
            continue
        gain = speed_up(row)
        cases.append(Case(_where(row), is_faster(row), gain))
        seen.setdefault((pace(row), row["dtype"]), []).append(gain)
    gains = [gain for each in seen.values() for gain in each]
    as_said = sum(within(gain, *CLAIMED) is True for gain in gains)
    low, high = (units.ratio(end) for end in CLAIMED)
    return across(
        cases,
        f"Time in NCHW over that in channels_last, {listed(seen)}. Of {len(gains)} cells {as_said} "
        f"are shown to lie between {low} and {high}.",
    )


def _where(row: Row) -> dict[str, str]:
    return {
        "format": row["dtype"],
        "phase": row["phase"],
        "batch": f"batch {row['batch']:.0f}",
        "cuDNN": "tuned" if row.get("cudnn_benchmark") else "by default",
    }
