"""What the seed says of channels_last, put to the recording of a network built as ResNet-50."""

from anatomy.claims import Case, Finding, Measured, Need, across, claim
from anatomy.claims.graph_capture import speed_up
from anatomy.claims.pace import listed, pace
from anatomy.claims.promises import reaches, tally
from anatomy.claims.table import Table, why_not
from anatomy.rows import Row

NETWORK = Need("channels_last.network")
# The speed-up that the seed names.
CLAIMED = (1.1, 1.3)


@claim(NETWORK)
def channels_last_is_faster(network: Table) -> Finding:
    """In every format, phase and batch the network is at least 1.1 times as fast in channels_last.

    That is on the wall. Model and images lie in channels_last before the clock starts.
    """
    cases: list[Case] = []
    # The control says who sets the pace: what channels_last can gain is what NCHW waits for.
    paces = {row["op"]: pace(row) for row in network if row["variant"] == "NCHW"}
    seen: dict[tuple[str, str], list[Measured]] = {}
    for row in network:
        if row["variant"] != "channels_last":
            continue
        if reason := why_not(row):
            cases.append(Case(_where(row), None, why=reason))
            continue
        gain = speed_up(row)
        cases.append(Case(_where(row), reaches(gain, CLAIMED[0]), gain))
        seen.setdefault((paces.get(row["op"], ""), row["dtype"]), []).append(gain)
    told = f"Time in NCHW over that in channels_last. In NCHW, {listed(seen)}."
    return across(cases, f"{told} {tally(cases, *CLAIMED)}")


def _where(row: Row) -> dict[str, str]:
    return {
        "format": row["dtype"],
        "phase": row["phase"],
        "batch": f"batch {row['batch']:.0f}",
        "cuDNN": "tuned" if row.get("cudnn_benchmark") else "by default",
    }
