"""Synchronizations: what a wait adds to a step, who sets its pace, and who noticed the wait."""

from anatomy.judge import payback
from anatomy.judge.comparisons import controlled
from anatomy.judge.gates import LAUNCH_BOUND_SHARE
from anatomy.judge.rules import rule

WAIT = ("wait_s", "wait_low_s", "wait_high_s")


def wait(row, control) -> dict:
    """What a variant takes more than the control, block by block; of another row None."""
    if row["role"] != "variant":
        return dict.fromkeys(WAIT)
    extra = payback.extra(row["blocks_s"], control["blocks_s"])
    return dict(zip(WAIT, (extra.median, extra.low, extra.high), strict=True))


def pace(control) -> dict:
    """What sets the pace of a loop without a wait; None on a CPU, where both are one."""
    if control.get("device") == "cpu":
        return {"bound_by": None}
    if control.get("device") is None or control.get("enqueue_s") is None:
        return {}
    # As `gates.regime` says: a period that is the host's time to queue the step is the host's.
    hosts = control["enqueue_s"] >= LAUNCH_BOUND_SHARE * control["median_s"]
    return {"bound_by": "host" if hosts else "GPU"}


@rule(
    "synchronizations.costs",
    columns=(*WAIT, "bound_by"),
    source="blocks_s less the control's; enqueue_s of the control over its median_s",
)
def steps(rows, known):
    """What a readback adds to a step."""
    for place, row, control in controlled(rows):
        if control.get("kernels_each") is not None:  # otherwise the readbacks alone
            yield place, wait(row, control) | pace(control)


@rule("synchronizations.detected", columns=("agree",), source="waits and warned")
def agreement(rows, known):
    """Whether the debug mode warns of what waits; None where that is in doubt."""
    for place, row in enumerate(rows):
        if row.get("warned") is not None:
            waits = row.get("waits")
            yield place, {"agree": None if waits is None else waits == bool(row["warned"])}


@rule("transfers.hazard", columns=("stale",), source="read and later against copied")
def stale(rows, known):
    """Whether what was read at once, or what arrived in the end, is not what was copied."""
    for place, row in enumerate(rows):
        if row.get("copied") is not None:
            copied = row["copied"]
            found = row.get("read") not in (copied, None) or row.get("later") != copied
            yield place, {"stale": found}
