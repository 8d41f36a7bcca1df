"""What a workload takes by CUPTI's stamps of its kernels: no event, no host clock, no subtraction.
What comes before a call is in rule 8 of `anatomy.chapters.harnesses.harnesses`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from anatomy.chapters.harnesses.stopwatches.workloads import Call
from anatomy.measure.census import Kernel, busy, kernels_during, span, split
from anatomy.measure.sampling import CHUNK, HOLD_FACTOR, HOLD_MARGIN_S, LAUNCH_S, prepare
from anatomy.measure.stopwatch import QUEUE_LIMIT, Stopwatch
from anatomy.table.errors import MeasurementError

WARM_UP_S = 0.3  # the workload runs for so long in the quantity's own way before what counts
# Launches of it that are recorded; those of a short kernel are run before the profiler begins,
# since it needs longer to read its record than the card needs to cool down by a clock step.
RECORDED = 2000
CALLS, LEAST_CALLS, ABOUT_S = 40, 8, 0.08  # of a cold round; after so many seconds fewer will do
RUNS, LEAST_RUN = 6, 3  # runs of calls in a round of the warm reference, and the least calls in one
LOOP_S = 0.15  # one round of the wall reference is loops of this length together
SLOWED = 2.0  # a profiler slows launches, so the sleep in front of them is longer than elsewhere
AROUND = 6  # launches around a cold call: a flush and a margin
WITNESSED, TURNS = 12, 3  # calls read with the profiler off and on, and how often they take turns
STRETCH_S = 0.02  # seconds of one stretch of calls between two waits, where nothing else bounds it


@dataclass(frozen=True)
class Reference:
    """A time by the record of kernels in one round."""

    seconds: float  # of a call, as the quantity defines it
    busy_s: float  # in which a kernel of one call ran
    values: tuple[float, ...]  # the single ones behind `seconds`
    kernels_per_call: int


def cold(call: Call, watch: Stopwatch) -> Reference:
    """The time from one call's first kernel's start to its last one's end, after a cache flush."""
    enqueue_s = watch.enqueue(call)
    queued_s = enqueue_s + watch.calibration.queue_s
    launches = AROUND + _launches(enqueue_s)
    chunk = max(1, min(CHUNK, QUEUE_LIMIT // launches))

    def act(calls: int) -> None:
        for first in range(0, calls, chunk):
            now = min(chunk, calls - first)
            watch.hold(HOLD_MARGIN_S + SLOWED * HOLD_FACTOR * now * queued_s)
            for _ in range(now):
                # Nothing between the two: a call behind a rest of a microsecond is slower.
                watch.flush()
                call()
            watch.drain()

    def flush_alone() -> None:
        watch.hold(HOLD_MARGIN_S)
        watch.flush()
        watch.drain()

    flushing = len(_seen(split(kernels_during(flush_alone, watch)), 1)[0])
    each_s = max(watch.wall([lambda: act(3)]) / 3, 1e-9)
    calls = int(min(CALLS, max(LEAST_CALLS, ABOUT_S / each_s)))
    ahead = _warmed(watch, act, each_s, launches)

    def recorded() -> None:
        act(ahead)
        act(calls)

    chunks = [-(-count // chunk) for count in (ahead, calls)]
    groups = _seen(split(kernels_during(recorded, watch)), sum(chunks))[chunks[0] :]
    kernels: list[list[Kernel]] = []
    for index, group in enumerate(groups):
        kernels += _calls(group, min(chunk, calls - index * chunk), flushing)
    spans = tuple(span(each) for each in kernels)
    return Reference(median(spans), median(busy(each) for each in kernels), spans, len(kernels[-1]))


def _calls(group: list[Kernel], count: int, flushing: int) -> list[list[Kernel]]:
    """The kernels of each of `count` calls in a group, by their start, of flush, call, flush, call,
    where a flush has `flushing` kernels; MeasurementError if they do not divide into so many."""
    each, rest = divmod(len(group), count)
    if rest or each <= flushing:
        raise MeasurementError(
            f"{len(group)} kernels can't be those of {count} flushes of {flushing} and as many "
            "equal calls; CUPTI may be in use by another tool."
        )
    starts = range(0, len(group), each)
    return [group[start + flushing : start + each] for start in starts]


def warm(call: Call, watch: Stopwatch) -> Reference:
    """The period of back-to-back calls, from the start of one's first kernel to the next one's."""
    enqueue_s = watch.enqueue(call)
    each_s = max(watch.wall([call] * 3) / 3, 1e-9)
    launches = _launches(enqueue_s)
    fits = max(LEAST_RUN, QUEUE_LIMIT // launches)
    calls = int(max(LEAST_RUN, min(fits, ABOUT_S / RUNS / each_s)))
    hold_s = HOLD_MARGIN_S + SLOWED * HOLD_FACTOR * calls * enqueue_s

    def act(runs: int) -> None:
        for _ in range(runs):
            watch.hold(hold_s)
            for _ in range(calls):
                call()
            watch.drain()

    ahead = _warmed(watch, act, calls * each_s, calls * launches)

    def recorded() -> None:
        act(ahead)
        act(RUNS)

    runs = _seen(split(kernels_during(recorded, watch)), ahead + RUNS)[ahead:]
    periods, busies, each = [], [], 0
    for run in runs:
        each, rest = divmod(len(run), calls)
        if rest or not each:
            raise MeasurementError(f"{len(run)} kernels can't be those of {calls} equal calls.")
        starts = [run[first][0] for first in range(0, len(run), each)]
        periods += [later - earlier for earlier, later in pairwise(starts)]
        busies += [busy(run[first : first + each]) for first in range(0, len(run), each)]
    return Reference(median(periods), median(busies), tuple(periods), each)


def witnessed(call: Call, watch: Stopwatch, quantity: str) -> dict[str, float]:
    """What the stopwatch reads of a call with the profiler off, and on: whether that changes it.
    They take turns, so that a card that warms up shows in neither alone."""
    sampler = prepare(watch, [call], quantity)
    count = WITNESSED if sampler.way == "alone" else WITNESSED // 4
    off, on = [median(sampler.take(count))], []
    for _ in range(TURNS):
        profiled: list[float] = []
        kernels_during(lambda into=profiled: into.extend(sampler.take(count)), watch)
        on.append(median(profiled))
        off.append(median(sampler.take(count)))
    return {"events_s": median(off), "events_profiled_s": median(on)}


def wall(call: Call, watch: Stopwatch) -> Reference:
    """The steady period as the host sees it: long loops, each ended by one synchronize."""
    each_s = max(watch.wall([call] * 3) / 3, 1e-9)
    calls = max(1, round(LOOP_S / RUNS / each_s))
    begun = watch.now()
    while watch.now() - begun < WARM_UP_S:
        watch.wall([call] * calls)
    periods = [watch.wall([call] * calls) / calls for _ in range(RUNS)]
    return Reference(median(periods), 0.0, tuple(periods), 0)


def _warmed(watch: Stopwatch, act: Callable[[int], None], each_s: float, launches: int) -> int:
    """Warm up by steps of `act`, of `each_s` seconds and so many `launches` each, but for the last
    ones; returns how many are left to be recorded."""
    recorded = max(1, min(int(WARM_UP_S / each_s), RECORDED // launches))
    stretch = max(1, int(STRETCH_S / each_s))
    begun = watch.now()
    while watch.now() - begun < WARM_UP_S - recorded * each_s:
        act(stretch)
        watch.drain()
    return recorded


def _launches(enqueue_s: float) -> int:
    return max(1, round(enqueue_s / LAUNCH_S))


def _seen(groups: list[list[Kernel]], expected: int) -> list[list[Kernel]]:
    """The groups of kernels behind the first sleep; MeasurementError unless one for each sleep."""
    found = groups[1:]
    if len(found) != expected:
        raise MeasurementError(
            f"The profiler saw {len(found)} of {expected} sleeps: it lost events, or CUPTI is in "
            "use by another tool."
        )
    return found


def columns(rounds: Sequence[Reference]) -> dict[str, Any]:
    """The rounds of a reference as columns of a row: their median, the lowest and the highest."""
    each = [found.seconds for found in rounds]
    last = rounds[-1]
    return {
        "median_s": median(each),
        "low_s": min(each),
        "high_s": max(each),
        "rounds_s": [float(f"{seconds:.6g}") for seconds in each],
        "samples": sum(len(found.values) for found in rounds),
        "busy_s": median(found.busy_s for found in rounds) or None,
        "kernels_per_call": last.kernels_per_call or None,
    }
