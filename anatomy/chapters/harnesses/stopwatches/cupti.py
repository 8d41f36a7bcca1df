"""What a workload takes by CUPTI's stamps of its kernels: no event, no host clock, no subtraction.
Calls are queued ahead behind a sleep, with one wait for many. Before what counts the workload runs
for a while in the same way, so that a kernel that the power cap slows is in the state that it is in
when it is used, and not in that of a rested card."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from statistics import median

from anatomy.chapters.harnesses.stopwatches.workloads import Call
from anatomy.measure.census import Kernel, kernels_during, span, split
from anatomy.measure.sampling import CHUNK, HOLD_FACTOR, HOLD_MARGIN_S, LAUNCH_S, prepare
from anatomy.measure.stopwatch import QUEUE_LIMIT, Stopwatch
from anatomy.table.errors import MeasurementError

WARM_UP_S = 0.3
# Launches of the warm-up that are recorded as well; those of a short kernel are run before the
# profiler begins, which needs longer to read its record than the card needs to cool down.
RECORDED = 2000
CALLS, LEAST_CALLS, ABOUT_S = 40, 8, 0.08  # of a cold round; after so many seconds fewer will do
RUNS, LEAST_RUN = 6, 3  # runs of calls in a round of the warm reference, and the least calls in one
LOOP_S = 0.15  # one round of the wall reference is loops of this length together
SLOWED = 2.0  # a profiler slows launches, so the sleep in front of them is longer than elsewhere
AROUND = 6  # launches around a cold call: a flush and a margin
WITNESSED, TURNS = 12, 3  # calls read with the profiler off and on, and how often they take turns
STRETCH_S = 0.02  # seconds of warm-up between two looks at the clock


def cold(call: Call, watch: Stopwatch) -> list[float]:
    """Of each call the time from its first kernel's start to its last one's end, after a flush."""
    flushing = len(_groups(partial(_queued, watch, [watch.flush], HOLD_MARGIN_S), watch, 1)[0])
    enqueue_s = watch.enqueue(call)
    each_s = max(watch.wall([watch.flush, call] * 3) / 3, 1e-9)
    calls = int(min(CALLS, max(LEAST_CALLS, ABOUT_S / each_s)))
    launches = AROUND + _launches(enqueue_s)
    chunk = max(1, min(CHUNK, QUEUE_LIMIT // launches, calls))
    hold_s = chunk * (enqueue_s + watch.calibration.queue_s)
    # Nothing between the two: a call behind a rest of a microsecond is slower.
    run = partial(_queued, watch, [watch.flush, call] * chunk, hold_s)
    groups = _recorded(run, watch, -(-calls // chunk), chunk * each_s, chunk * launches)
    return [span(each[flushing:]) for group in groups for each in _equal(group, chunk, flushing)]


def warm(call: Call, watch: Stopwatch) -> list[float]:
    """Periods of back-to-back calls, from the start of one's first kernel to the next one's."""
    enqueue_s = watch.enqueue(call)
    each_s = max(watch.wall([call] * 3) / 3, 1e-9)
    fits = max(LEAST_RUN, QUEUE_LIMIT // _launches(enqueue_s))
    calls = int(max(LEAST_RUN, min(fits, ABOUT_S / RUNS / each_s)))
    run = partial(_queued, watch, [call] * calls, calls * enqueue_s)
    groups = _recorded(run, watch, RUNS, calls * each_s, calls * _launches(enqueue_s))
    starts = [[each[0][0] for each in _equal(group, calls)] for group in groups]
    return [later - earlier for run in starts for earlier, later in pairwise(run)]


def wall(call: Call, watch: Stopwatch) -> list[float]:
    """The steady period as the host sees it: long loops, each ended by one synchronize."""
    each_s = max(watch.wall([call] * 3) / 3, 1e-9)
    calls = max(1, round(LOOP_S / RUNS / each_s))
    _warm_up(partial(watch.wall, [call] * calls), watch, WARM_UP_S, LOOP_S / RUNS)
    return [watch.wall([call] * calls) / calls for _ in range(RUNS)]


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


def _queued(watch: Stopwatch, calls: list[Call], dispatch_s: float) -> None:
    """Queue calls, which the host needs `dispatch_s` for, behind one sleep, and wait for them."""
    watch.hold(HOLD_MARGIN_S + SLOWED * HOLD_FACTOR * dispatch_s)
    for call in calls:
        call()
    watch.drain()


def _recorded(
    run: Callable[[], None], watch: Stopwatch, runs: int, run_s: float, launches: int
) -> list[list[Kernel]]:
    """The kernels of each of so many `runs` behind the warm-up, each of about `run_s` seconds and
    so many `launches`; the last ones of the warm-up are recorded with them."""
    ahead = max(1, min(int(WARM_UP_S / run_s), RECORDED // launches))
    _warm_up(run, watch, WARM_UP_S - ahead * run_s, run_s)

    def act() -> None:
        for _ in range(ahead + runs):
            run()

    return _groups(act, watch, ahead + runs)[ahead:]


def _warm_up(run: Callable[[], object], watch: Stopwatch, seconds: float, run_s: float) -> None:
    begun = watch.now()
    while watch.now() - begun < seconds:
        for _ in range(max(1, int(STRETCH_S / run_s))):
            run()


def _launches(enqueue_s: float) -> int:
    return max(1, round(enqueue_s / LAUNCH_S))


def _groups(act: Callable[[], None], watch: Stopwatch, sleeps: int) -> list[list[Kernel]]:
    """The kernels behind each sleep in `act`; MeasurementError unless there are so many."""
    found = split(kernels_during(act, watch))[1:]
    if len(found) != sleeps:
        raise MeasurementError(
            f"The profiler saw {len(found)} of {sleeps} sleeps: it lost events, or CUPTI is in "
            "use by another tool."
        )
    return found


def _equal(group: list[Kernel], count: int, flushing: int = 0) -> list[list[Kernel]]:
    """A group's kernels, by their start, in `count` equal parts of a flush of `flushing` kernels
    and a call; MeasurementError if they do not divide into so many."""
    each, rest = divmod(len(group), count)
    if rest or each <= flushing:
        raise MeasurementError(
            f"{len(group)} kernels can't be those of {count} equal calls, each behind a flush of "
            f"{flushing} kernels; CUPTI may be in use by another tool."
        )
    return [group[start : start + each] for start in range(0, len(group), each)]
