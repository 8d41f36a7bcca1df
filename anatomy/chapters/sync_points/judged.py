"""What a wait adds to a step or takes of an iteration, who sets the pace, who noticed the wait."""

from anatomy.judge import payback
from anatomy.judge.comparisons import TIMES, comparisons, controlled, in_columns
from anatomy.judge.gates import LAUNCH_BOUND_SHARE
from anatomy.judge.rules import rule

WAIT = ("wait_s", "wait_low_s", "wait_high_s")
SHARES = {"wait_share": "ratio", "wait_share_low": "ratio_low", "wait_share_high": "ratio_high"}
GAPS = ("gap_s", "gap_low_s", "gap_high_s")
PRODUCT, BEHIND, LOOP, IDLE = "product ", "behind ", "loop ", "idle"
NO_WAIT = "no wait"
PINNED = "pinned"
# Lines that only queue a copy, as far as is known; the rest wait for what was queued before.
QUEUES = ("to(device), non_blocking", "to(device), pinned, non_blocking")


def wait(row, control, known) -> dict:
    """What a variant takes more than the control, block by block; of another row None."""
    if row["role"] != "variant":
        return dict.fromkeys(WAIT)
    return in_columns(WAIT, payback.extra(row, control, known))


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
            yield place, wait(row, control, known) | pace(control)


@rule("synchronizations.detected", columns=("agree",), source="waits and warned")
def agreement(rows, known):
    """Whether the debug mode warns of what waits; None where that is in doubt."""
    for place, row in enumerate(rows):
        if row.get("warned") is not None:
            waits = row.get("waits")
            yield place, {"agree": None if waits is None else waits == bool(row["warned"])}


@rule("transfers.to_device", columns=("busy_s",), source="median_s of the same copy", early=True)
def copying(rows, known):
    """For how long the GPU copies while the host waits for it: as long as where it does not."""
    for place, row in enumerate(rows):
        for other in rows if row.get("variant") == PINNED else ():
            alike = (other["op"], other["variant"]) == (row["op"], f"{PINNED}, non_blocking")
            if alike and other["quantity"] == "step_wall":
                yield place, {"busy_s": other["median_s"]}


@rule("transfers.hazard", columns=("stale",), source="read and later against copied")
def stale(rows, known):
    """Whether what was read at once, or what arrived in the end, is not what was copied."""
    for place, row in enumerate(rows):
        if (copied := row.get("copied")) is not None:
            late = row.get("later") != copied
            yield place, {"stale": late or row.get("read") not in (copied, None)}


@rule(
    "sync_points.bench",
    columns=("busy_s",),
    source="time of the matmul alone, which runs in every iteration and in every wait for it",
    early=True,
)
def running(rows, known):
    """How long the GPU runs in an iteration, and while the host waits behind a matmul."""
    kernel_s = None
    for places in comparisons(rows):
        members = [rows[place] for place in places]
        op = members[0]["op"]
        if op.startswith(PRODUCT):
            kernel_s = next(row["median_s"] for row in members if row["role"] == "control")
        elif op.startswith((LOOP, BEHIND)) and kernel_s is not None:
            for place, row in zip(places, members, strict=True):
                if op.startswith(LOOP) or row["role"] == "variant":
                    yield place, {"busy_s": kernel_s}


@rule(
    "sync_points.bench",
    columns=(*("kernel_s", *WAIT, *SHARES, *GAPS, "bound_by"), *("predicted_s", "residual_share")),
    source="blocks_s and times of the loop, of the product alone, and of each line alone",
)
def bench(rows, known):
    """What each line takes of an iteration, and how well its parts foretell that."""
    alone: dict[str, float] = {}
    kernel = queue_s = None
    for places in comparisons(rows):
        members = [rows[place] for place in places]
        op, control = members[0]["op"], next(row for row in members if row["role"] == "control")
        if op == IDLE:
            alone = {row["variant"]: row["median_s"] for row in members}
        elif op.startswith(PRODUCT):
            kernel = control
            for place in places:
                yield place, {"kernel_s": kernel["median_s"]}
        elif kernel is not None:
            queue_s = members[0]["median_s"] if op.startswith(BEHIND) else queue_s
            for place in places:
                row = rows[place]
                found = {"kernel_s": kernel["median_s"]} | wait(row, control, known)
                if op.startswith(LOOP):
                    found |= _of_an_iteration(row, kernel) | pace(control)
                    said = predicted(row["variant"], kernel["median_s"], queue_s, alone)
                    found["predicted_s"] = said
                    found["residual_share"] = said and row["median_s"] / said - 1
                yield place, found


def _of_an_iteration(row, kernel) -> dict:
    """The share of an iteration that a line takes, and the time in which no product runs."""
    # (t - control) / t is 1 - 1 / ratio, whose interval is of the same blocks.
    own = row["role"] == "variant"
    shares = {name: 1 - 1 / row[ratio] if own else None for name, ratio in SHARES.items()}
    ends = zip(TIMES, ("median_s", "high_s", "low_s"), strict=True)
    gaps = [row[one] - kernel[other] for one, other in ends]
    return shares | dict(zip(GAPS, gaps, strict=True))


def predicted(line: str, kernel_s: float, queue_s: float, alone: dict) -> float | None:
    """What an iteration should take, from what its parts take alone; None of a line unknown.

    A line that waits puts its parts one after the other: queueing the kernel, the kernel, the line.
    One that does not lets host and GPU work at once, and the slower of the two sets the pace.
    """
    if line == NO_WAIT:
        return max(queue_s, kernel_s)
    if line not in alone:
        return None
    if line in QUEUES:
        return max(queue_s + alone[line], kernel_s)
    return queue_s + kernel_s + alone[line]


@rule(
    "sync_points.training_loop",
    columns=("step_s", "step_low_s", "step_high_s", *WAIT, "bound_by"),
    source="blocks_s and times of a piece over steps_each",
)
def training(rows, known):
    """Times of a piece of training as those of one of its steps."""
    for place, row, control in controlled(rows):
        every = control.get("steps_each")
        if every is None:
            continue
        found = wait(row, control, known).items()
        waits = {name: s if s is None else s / every for name, s in found}
        times = {f"step_{name.removeprefix('median_')}": row[name] / every for name in TIMES}
        yield place, times | waits | pace(control)
