"""Which kernels one call runs, by name and in order, as CUPTI saw them.

Kernel names are the evidence for why a call took the time it took: which tile, which alignment,
whether a copy ran first. They are read outside the timed blocks, because a profiler slows what it
watches.
"""

import warnings
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


def take(call: Call, watch: Stopwatch, calls: int = CALLS) -> Census | None:
    """Profile `call` and list its kernels; None on a device that has none.

    Args:
        call: The callable, already warm.
        watch: The stopwatch of the device where it runs; it hides dispatch here too.
        calls: How often to call it.
    """
    if watch.device.type != "cuda":
        return None
    watch.drain()
    with warnings.catch_warnings():
        # The profiler announces that events of one cycle are kept; there is only one here.
        warnings.filterwarnings("ignore", message=".*Profiler clears events")
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
            for _ in range(calls):
                watch.hold(HOLD_S)
                call()
                watch.drain()
    each: list[list] = []
    for event in sorted(
        (e for e in profiler.events() if e.device_type == DeviceType.CUDA),
        key=lambda event: event.time_range.start,
    ):
        if HOLD_KERNEL in event.name:
            each.append([])
        elif each:
            each[-1].append(event)
    each = [events for events in each if events]
    if not each:
        return None
    # Calls may differ (autotuning, caches): the last one's state is what is timed.
    return Census(
        kernels=tuple(event.name for event in each[-1]),
        busy_s=median(_busy(events) for events in each),
        span_s=median(_span(events) for events in each),
    )


def _span(events) -> float:
    """Seconds from the first start to the last end."""
    return (max(e.time_range.end for e in events) - events[0].time_range.start) * 1e-6


def _busy(events) -> float:
    """Union of the events' intervals, in seconds; kernels of two streams count once."""
    total, reached = 0.0, float("-inf")
    for event in events:
        start, end = event.time_range.start, event.time_range.end
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total * 1e-6
