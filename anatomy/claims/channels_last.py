"""What the seed says of channels_last, put to the recording of a network built as ResNet-50."""

from anatomy import units
from anatomy.claims import Case, Finding, Need, across, claim, within
from anatomy.claims.graph_capture import is_faster, speed_up
from anatomy.claims.table import Table, between, why_not

NETWORK = Need("channels_last.network")
# The speed-up that the seed names.
CLAIMED = (1.1, 1.3)


@claim(NETWORK)
def channels_last_is_faster(network: Table) -> Finding:
    """In every format, phase and batch the network in channels_last takes less time on the wall.

    Model and images lie in channels_last before the clock starts. The number stands beside it:
    how much faster, and in how many cells as the seed says.
    """
    cases, as_said = [], 0
    for row in network:
        if row["variant"] != "channels_last":
            continue
        where = {
            "format": row["dtype"],
            "phase": row["phase"],
            "batch": f"batch {row['batch']:.0f}",
            "cuDNN": "tuned" if row.get("cudnn_benchmark") else "by default",
        }
        if reason := why_not(row):
            cases.append(Case(where, None, why=reason))
            continue
        gain = speed_up(row)
        as_said += within(gain, *CLAIMED) is True
        cases.append(Case(where, is_faster(row), gain))
    there = [case.measured.value for case in cases if case.measured]
    if not there:
        return across(cases, "")
    low, high = (units.ratio(end) for end in CLAIMED)
    evidence = (
        f"Time in NCHW over that in channels_last: {between(there)} in {len(there)} cells; "
        f"{as_said} of them lie between {low} and {high} with their intervals."
    )
    return across(cases, evidence)
