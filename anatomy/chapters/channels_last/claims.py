"""What the seed says of channels_last, put to the recording of a network built as ResNet-50."""

from anatomy.claims import Cases, Finding, Measured, Need, claim
from anatomy.claims.pace import listed, pace
from anatomy.claims.table import Table, speed_up

CLAIMED = (1.1, 1.3)  # the speed-up that the seed names


@claim(Need("channels_last.network"))
def channels_last_is_faster(network: Table) -> Finding:
    """In every format, phase and batch the network is at least 1.1 times as fast in channels_last.

    That is on the wall. Model and images lie in channels_last before the clock starts.
    """
    # The control says who sets the pace: what channels_last can gain is what NCHW waits for.
    paces = {row["op"]: pace(row) for row in network.select(variant="NCHW")}
    cases, seen = Cases(), dict[tuple[str, str], list[Measured]]()
    for row in network.select(variant="channels_last"):
        where = {"format": row["dtype"], "phase": row["phase"]}
        where |= {"batch": f"batch {row['batch']:.0f}"}
        tuned = "tuned" if row.get("cudnn_benchmark") else "by default"
        with cases.at(**where, cuDNN=tuned) as case:
            gain = speed_up(row)
            case(gain.at_least(CLAIMED[0]), gain)
            seen.setdefault((paces.get(row["op"], ""), row["dtype"]), []).append(gain)
    times = f"Time in NCHW over that in channels_last. In NCHW, {listed(seen)}."
    return cases.finding(f"{times} {cases.tally(*CLAIMED)}")
