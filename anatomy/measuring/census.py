"""Which kernels one call runs, by name and in order, as CUPTI saw them.

Kernel names are the evidence for why a call took the time it took: which tile, which alignment,
whether a copy ran first. They are read outside the timed blocks, because a profiler slows what it
watches.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from anatomy.measuring.stopwatch import Call, Stopwatch

# Calls profiled; enough for a median of their busy times.
CALLS = 3
# Each call is queued behind a sleep of this length, whose kernel separates the calls.
HOLD_S, HOLD_KERNEL = 1e-3, "spin_kernel"


@dataclass(frozen=True)
class Census:
    """The device's work of one call.

    `kernels` are names in order of their start, copies and memsets among them. `busy_s` is the
    union of their intervals and `span_s` the time from the first one's start to the last one's
    end, in seconds, medians over `CALLS` calls. Both come from one timeline: a busy time from here
    and a span from an event pair would differ with the clock as well as with the gaps.
    """

    kernels: tuple[str, ...]
    busy_s: float
    span_s: float

    @property
    def gap_share(self) -> float:
        """Share of the span in which no kernel ran."""
        return 1 - self.busy_s / self.span_s if self.span_s else 0.0


def take(
    calls: Mapping[str, Call], watch: Stopwatch, times: int = CALLS
) -> dict[str, Census] | None:
    """Profile callables in one session and list the kernels of each; None where there are none.

    Args:
        calls: The callables by name, already warm.
        watch: The stopwatch of the device where they run; it hides dispatch here too.
        times: How often to call each.
    """
    if watch.device.type != "cuda":
        return None
    watch.drain()
    with warnings.catch_warnings():
        # The profiler announces that events of one cycle are kept; there is only one here.
        warnings.filterwarnings("ignore", message=".*Profiler clears events")
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
            for call in calls.values():
                for _ in range(times):
                    watch.hold(HOLD_S)
                    call()
                    watch.drain()
    each = _split(profiler.events())
    if len(each) != times * len(calls):
        return None  # the tracer lost events: no list is better than one of another callable
    return {
        name: _census(each[index * times : (index + 1) * times]) for index, name in enumerate(calls)
    }


def _split(events) -> list[list]:
    """The device's events in order of their start, cut where a call's sleep ended."""
    each: list[list] = []
    for event in sorted(
        (e for e in events if e.device_type == DeviceType.CUDA),
        key=lambda event: event.time_range.start,
    ):
        if HOLD_KERNEL in event.name:
            each.append([])
        elif each:
            each[-1].append(event)
    return each


def _census(runs: list[list]) -> Census:
    """The census of one callable from the events of its calls."""
    return Census(
        # Calls may differ (autotuning, caches): the last one's state is what is timed.
        kernels=tuple(event.name for event in runs[-1]),
        busy_s=median(_busy(events) for events in runs),
        span_s=median(_span(events) for events in runs),
    )


def _span(events) -> float:
    """Seconds from the first start to the last end."""
    if not events:
        return 0.0
    return (max(e.time_range.end for e in events) - events[0].time_range.start) * 1e-6


def _busy(events) -> float:
    """Union of the events' intervals, in seconds; kernels of two streams count once."""
    total, reached = 0.0, float("-inf")
    for event in events:
        start, end = event.time_range.start, event.time_range.end
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total * 1e-6
