"""What the seed says of channels_last, put to the recording of a network built as ResNet-50."""

from anatomy.claims import Finding, Need, claim
from anatomy.claims.graph_capture import gains_in
from anatomy.claims.table import Table
from anatomy.rows import Row

NETWORK = Need("channels_last.network")
# The speed-up that the seed names.
CLAIMED = (1.1, 1.3)


@claim(NETWORK)
def channels_last_is_faster(network: Table) -> Finding:
    """In every format, phase and batch the network is at least 1.1 times as fast in channels_last.

    That is on the wall. Model and images lie in channels_last before the clock starts.
    """
    cells = [(_where(row), row) for row in network if row["variant"] == "channels_last"]
    return gains_in(cells, CLAIMED, "Time in NCHW over that in channels_last")


def _where(row: Row) -> dict[str, str]:
    return {
        "format": row["dtype"],
        "phase": row["phase"],
        "batch": f"batch {row['batch']:.0f}",
        "cuDNN": "tuned" if row.get("cudnn_benchmark") else "by default",
    }
