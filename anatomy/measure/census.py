"""Which kernels one call runs, by name and in order, as CUPTI saw them. They are the evidence for
why a call took its time: which tile, which alignment, whether a copy ran first. They are read
outside the timed blocks, because a profiler slows what it watches."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from anatomy.measure.clock import Call, Clock

# Calls profiled; enough for a median of their busy times.
CALLS = 3
# Each call is queued behind a sleep of this length, whose kernel separates the calls.
HOLD_S, HOLD_KERNEL = 1e-3, "spin_kernel"

# A kernel on the device: when it began and ended, in seconds of one timeline, and its name.
Kernel = tuple[float, float, str]


@dataclass(frozen=True)
class Census:
    """The device's work of one call; times in seconds, medians over `CALLS` calls. Both come from
    one timeline: a busy time from here and a span from an event pair would differ with the clock as
    well as with the gaps."""

    kernels: tuple[str, ...]  # names in order of their start, copies and memsets among them
    busy_s: float  # union of their intervals
    span_s: float  # from the first one's start to the last one's end

    @property
    def gap_share(self) -> float:
        """Share of the span in which no kernel ran."""
        return 1 - self.busy_s / self.span_s if self.span_s else 0.0


def take(calls: Mapping[str, Call], clock: Clock, times: int = CALLS) -> dict[str, Census] | None:
    """Profile warm callables, each called so many `times`, in one session and list their kernels;
    None where there are none. The `clock` of their device hides dispatch here too."""
    if clock.device.type != "cuda":
        return None

    begun = False

    def act() -> None:
        nonlocal begun
        begun = True
        for call in calls.values():
            for _ in range(times):
                clock.hold(HOLD_S)
                call()
                clock.drain()

    try:
        each = split(kernels_during(act, clock))[1:]
    except RuntimeError:
        if begun:
            raise
        return None  # another profiler runs, and only one can
    if len(each) != times * len(calls):
        return None  # the tracer lost events: no list is better than one of another callable
    return {
        name: _census(each[index * times : (index + 1) * times]) for index, name in enumerate(calls)
    }


def _census(runs: Sequence[Sequence[Kernel]]) -> Census:
    return Census(
        # Calls may differ (autotuning, caches): the last one's state is what is timed.
        kernels=tuple(name for _, _, name in runs[-1]),
        busy_s=median(busy(kernels) for kernels in runs),
        span_s=median(span(kernels) for kernels in runs),
    )


def kernels_during(act: Call, clock: Clock) -> list[Kernel]:
    """What ran on the device during `act`, which must wait for it; in order of start."""
    clock.drain()
    with warnings.catch_warnings():
        # The profiler announces that events of one cycle are kept; there is only one here.
        warnings.filterwarnings("ignore", message=".*Profiler clears events")
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
            act()
    return sorted(
        (event.time_range.start * 1e-6, event.time_range.end * 1e-6, event.name)
        for event in profiler.events()
        if event.device_type == DeviceType.CUDA
    )


def split(kernels: Sequence[Kernel]) -> list[list[Kernel]]:
    """Kernels in groups, parted by the sleeps between them; what ran before any sleep is first."""
    groups: list[list[Kernel]] = [[]]
    for kernel in kernels:
        if HOLD_KERNEL in kernel[2]:
            groups.append([])
        else:
            groups[-1].append(kernel)
    return groups


def span(kernels: Sequence[Kernel]) -> float:
    """Seconds from the first start to the last end; 0 where nothing ran."""
    return max(end for _, end, _ in kernels) - kernels[0][0] if kernels else 0.0


def busy(kernels: Sequence[Kernel]) -> float:
    """Seconds in which a kernel ran; kernels of two streams count once."""
    total, reached = 0.0, float("-inf")
    for start, end, _ in kernels:
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
