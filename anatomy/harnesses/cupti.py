"""What a workload takes by the driver's own record: when each of its kernels began and ended.

CUPTI stamps kernels on the device; no event, no host clock and no subtraction stands between. The
calls are put into the state that the quantity is defined by: after a flush and behind a sleep for
`gpu_cold`, back to back behind one sleep for `gpu_warm`. A profiler slows the host, so this is done
in processes of its own, and the wall time of a step is taken there by a long plain loop instead.
"""

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from anatomy import intervals
from anatomy.errors import MeasurementError
from anatomy.harnesses.workloads import Call
from anatomy.measuring.census import busy, kernels_during, span, split
from anatomy.measuring.sampling import HOLD_FACTOR, HOLD_MARGIN_S, LAUNCH_S
from anatomy.measuring.stopwatch import QUEUE_LIMIT, Stopwatch

# Calls of the cold reference, and seconds after which fewer will do.
CALLS, LEAST_CALLS, ABOUT_S = 40, 8, 0.2
# Runs of back-to-back calls of the warm reference.
RUNS = 6
# The wall reference is loops of this length together.
LOOP_S = 0.4
# A profiler slows the host's launches, so the sleep in front of them is longer than elsewhere.
SLOWED = 2.0


@dataclass(frozen=True)
class Reference:
    """A time by the record of kernels, in seconds.

    `seconds` is what the quantity is about: for `gpu_cold` from the first kernel's start to the
    last one's end, for `gpu_warm` from one call's start to the next one's. `busy_s` is the time in
    which a kernel of one call ran. `values` are the single ones behind `seconds`.
    """

    seconds: float
    busy_s: float
    values: tuple[float, ...]
    kernels_per_call: int


def cold(call: Call, watch: Stopwatch) -> Reference:
    """The span of one call's kernels after a cache flush, its dispatch hidden.

    Raises:
        MeasurementError: The profiler saw no kernels.
    """
    hold_s = HOLD_MARGIN_S + SLOWED * HOLD_FACTOR * watch.enqueue(call)
    period_s = max(watch.wall([call] * 3) / 3, 1e-9)
    calls = int(min(CALLS, max(LEAST_CALLS, ABOUT_S / (period_s + hold_s))))

    def act() -> None:
        for _ in range(calls):
            watch.flush()
            watch.hold(hold_s)  # a sleep on either side tells the call's kernels from the flush's
            call()
            watch.hold(1e-6)
            watch.drain()

    groups = split(kernels_during(act, watch))[1::2]
    spans = [span(group) for group in groups if group]
    if not spans:
        raise MeasurementError("The profiler saw no kernels; CUPTI may be in use by another tool.")
    kernels = [group for group in groups if group]
    return Reference(
        median(spans), median(busy(group) for group in kernels), tuple(spans), len(kernels[-1])
    )


def warm(call: Call, watch: Stopwatch) -> Reference:
    """The period of back-to-back calls, from the start of one's first kernel to the next one's.

    Raises:
        MeasurementError: The kernels do not divide into calls.
    """
    enqueue_s = watch.enqueue(call)
    period_s = max(watch.wall([call] * 3) / 3, 1e-9)
    fits = QUEUE_LIMIT // max(1, round(enqueue_s / LAUNCH_S))
    calls = int(max(3, min(fits, ABOUT_S / RUNS / period_s)))
    hold_s = HOLD_MARGIN_S + SLOWED * HOLD_FACTOR * calls * enqueue_s

    def act() -> None:
        for _ in range(RUNS):
            watch.hold(hold_s)
            for _ in range(calls):
                call()
            watch.drain()

    runs = [group for group in split(kernels_during(act, watch))[1:] if group]
    periods, busies, each = [], [], 0
    for run in runs:
        each, rest = divmod(len(run), calls)
        if rest or not each:
            raise MeasurementError(f"{len(run)} kernels can't be those of {calls} equal calls.")
        starts = [run[first][0] for first in range(0, len(run), each)]
        periods += [later - earlier for earlier, later in pairwise(starts)]
        busies += [busy(run[first : first + each]) for first in range(0, len(run), each)]
    if not periods:
        raise MeasurementError("The profiler saw no kernels; CUPTI may be in use by another tool.")
    return Reference(median(periods), median(busies), tuple(periods), each)


def wall(call: Call, watch: Stopwatch) -> Reference:
    """The steady period as the host sees it: long loops, each ended by one synchronize."""
    calls = max(1, round(LOOP_S / RUNS / max(watch.wall([call] * 3) / 3, 1e-9)))
    periods = [watch.wall([call] * calls) / calls for _ in range(RUNS)]
    return Reference(median(periods), 0.0, tuple(periods), 0)


def columns(found: Reference) -> dict[str, Any]:
    """A reference as columns of a row."""
    middle = intervals.median_interval(found.values)
    return {
        "median_s": middle.median,
        "low_s": middle.low,
        "high_s": middle.high,
        "samples": len(found.values),
        "busy_s": found.busy_s or None,
        "kernels_per_call": found.kernels_per_call or None,
    }
