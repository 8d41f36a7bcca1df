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
# Without a profile: where asking for a step takes at least so much of the step's time, the host
# sets the pace. What is asked for comes unevenly, so that the GPU waits before the two are equal.
WITHOUT_PROFILE = 0.8


def paced_by(row: Mapping[str, Any]) -> str | None:
    """Who paces a row's time, `GPU` or `host`; None where that is not known, and on a CPU.

    The time until the host's call returns is the host's. A time on the GPU is the GPU's, for its
    calls are queued before it starts, unless the row says that a launch is included."""
    if row.get("device") == "cpu":
        return None
    match row.get("quantity"):
        case "host_enqueue":
            return HOST
        case "gpu_cold" | "gpu_warm":
            return HOST if row.get("launch_inclusive") else GPU
    return of_step(row)


def of_step(row: Mapping[str, Any]) -> str | None:
    """Who paces a step: whichever needs longer, the host to ask for it or its kernels to run. Where
    no profile says how long these run, the step itself, which is never shorter, stands for them."""
    asking, running = row.get("enqueue_s"), row.get("busy_s")
    if units.missing(running):
        step = row.get("median_s")
        running = None if units.missing(step) else WITHOUT_PROFILE * step
    if units.missing(asking) or units.missing(running):
        return None
    return HOST if asking >= running else GPU


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


def of_ratio(over: str | None, under: str | None) -> str:
    """Who paces a ratio of two rows, by who paces each; what is not known may be the host's."""
    return over if over == under and over else MIXED


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
