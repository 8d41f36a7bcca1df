"""Who sets the pace of what was timed: the GPU that runs it, or the host that asks for it.

One rule for tables, intervals and claims. What the host paces comes out otherwise on another host.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from anatomy.judge.comparisons import Circumstances, Judged, Row, compared
from anatomy.judge.gates import GAP_BOUND_SHARE
from anatomy.table import units

GPU, HOST = "GPU", "host"
# A ratio of two rows with one pace each. A slower host slows both rows of a host-paced ratio, and
# one of such a ratio.
MIXED = "GPU and host"
# Of a step that takes the host more than half of its time to ask for, but not most of it, and whose
# kernels nobody timed. It differs between hosts far less than what the host paces.
EITHER = "GPU or host"
# A step that the GPU runs for so much of its time is the GPU's, however long the host is in the
# call: it may well be waiting there. And one that takes the host so much of its time to ask for is
# the host's: what is asked for comes unevenly, so that the GPU waits before the two are equal.
MOST = 0.8
# Where nobody knows how long its kernels run, a step is the GPU's if asking for it takes half of it
# at most: hosts were seen to ask half as fast for a while, and then as before.
HALF = 0.5


def paced_by(row: Mapping[str, Any]) -> str | None:
    """Who paces a row's time, `GPU` or `host`; None where that is not known, and on a CPU.

    The time until the host's call returns is the host's, unless it waits there for the GPU. A time
    on the GPU is the GPU's, for its calls are queued before it starts, unless the row says that a
    launch is included."""
    if row.get("device") == "cpu":
        return None
    match row.get("quantity"):
        case "host_enqueue":
            return GPU if _fills(row) else HOST
        case "gpu_cold" | "gpu_warm":
            return HOST if row.get("launch_inclusive") else GPU
    return of_step(row)


def of_step(row: Mapping[str, Any]) -> str | None:
    """Who paces a step: whichever needs longer, the host to ask for it or its kernels to run; None
    where neither is long enough to tell."""
    asking, step, running = (row.get(name) for name in ("enqueue_s", "median_s", "busy_s"))
    if units.missing(step) or units.missing(asking):
        return None
    if units.missing(running):
        return HOST if asking >= MOST * step else GPU if asking <= HALF * step else None
    return GPU if _fills(row) or running > asking else HOST


def _fills(row: Mapping[str, Any]) -> bool:
    """Whether the GPU is known to run for most of a row's time."""
    running = row.get("busy_s")
    return not units.missing(running) and running >= MOST * row["median_s"]


def bound_in_words(row: Mapping[str, Any]) -> str | None:
    """What a step is bound by: `host-bound`, `gap-bound` where its kernels leave the GPU idle for
    more of it than `gates.GAP_BOUND_SHARE` though queueing takes less than they do, else
    `GPU-bound`; None where that is not known."""
    if (pace := row.get("paced_by")) != GPU:
        return pace and f"{pace}-bound"
    step, busy = row.get("median_s"), row.get("busy_s")
    known = not units.missing(step) and not units.missing(busy)
    idle = known and step - busy > GAP_BOUND_SHARE * step
    return "gap-bound" if idle else "GPU-bound"


def class_of(row: Mapping[str, Any]) -> str | None:
    """Who paces a row's time, or `EITHER`; None where not even the host's part is known."""
    if (pace := row.get("paced_by")) or units.missing(row.get("enqueue_s")):
        return pace
    return EITHER if row.get("quantity") == "step_wall" else None


def of_ratio(over: str | None, under: str | None) -> str:
    """The class of a ratio of two rows, by that of each; what is not known may be the host's."""
    if over == under and over:
        return over
    return EITHER if {over, under} == {GPU, EITHER} else MIXED


def of_comparisons(rows: Sequence[Row], known: Circumstances) -> Judged:
    """Who paces each row of a comparison."""
    for place, row in enumerate(rows):
        if compared(row):
            yield place, {"paced_by": paced_by(row)}


def of_the_rest(rows: Sequence[Row], known: Circumstances) -> Judged:
    """Who paces each other row that has a time, its own or one that a topic's rules gave it."""
    for place, row in enumerate(rows):
        if "paced_by" not in row and not units.missing(row.get("median_s")):
            yield place, {"paced_by": paced_by(row)}
