"""CUDA graphs: how long one call of a chain keeps the GPU, and after how many replays capturing has
paid."""

from anatomy.judge import payback
from anatomy.judge.comparisons import controlled
from anatomy.judge.rules import rule

REPLAYS = ("replays", "replays_low", "replays_high")


@rule(
    "graph_capture.map",
    "graph_capture.training",
    columns=REPLAYS,
    source="capture_s over what blocks_s of a replay save against the eager call's, on the wall",
)
def paid_back(rows, known):
    """Replays after which the capture has paid: seconds on the wall alone pay back what it cost."""
    for place, row, eager in controlled(rows):
        ends = dict.fromkeys(REPLAYS)
        pays = row["verdict"] == "faster" and row["quantity"] == "step_wall"
        if pays and row.get("capture_s") is not None:
            ends = payback.uses(row["capture_s"], eager["blocks_s"], row["blocks_s"], REPLAYS)
        yield place, ends


@rule(
    "graph_capture.map",
    columns=("kernel_s",),
    source="busy_s of the cell's eager calls over their number",
)
def of_one_call(rows, known):
    """GPU time of one call of a chain. A library may launch a memset before a matmul: over all that
    was launched, a call would seem to be half as long."""
    busy_s = {row["op"]: row.get("busy_s") for row in rows if row.get("role") == "control"}
    for place, row in enumerate(rows):
        if seconds := busy_s.get(row["op"].removeprefix("first call ")):
            yield place, {"kernel_s": seconds / row["links"]}
