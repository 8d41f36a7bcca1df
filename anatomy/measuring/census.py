"""Which kernels one call runs, by name and in order, as CUPTI saw them.

Kernel names are the evidence for why a call took the time it took: which tile, which alignment,
whether a copy ran first. They are read outside the timed blocks, because a profiler slows what it
watches.
"""

from dataclasses import dataclass
from statistics import median

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from anatomy.measuring.stopwatch import Call

# Calls profiled; enough for a median of their busy times.
CALLS = 3


@dataclass(frozen=True)
class Census:
    """The device's work of one call.

    `kernels` are names in order of their start, copies and memsets among them. `busy_s` is the
    union of their intervals in seconds, the median over `CALLS` calls.
    """

    kernels: tuple[str, ...]
    busy_s: float


def take(call: Call, device: torch.device) -> Census | None:
    """Profile `call` and list its kernels; None on a device that has none.

    Args:
        call: The callable, already warm.
        device: Where it runs.
    """
    if device.type != "cuda":
        return None
    torch.cuda.synchronize(device)
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        for _ in range(CALLS):
            call()
            torch.cuda.synchronize(device)
    events = sorted(
        (e for e in profiler.events() if e.device_type == DeviceType.CUDA),
        key=lambda event: event.time_range.start,
    )
    if not events:
        return None
    if len(events) % CALLS:  # calls differ (autotuning, caching): the last state is what is timed
        return Census(tuple(e.name for e in events), _busy(events) / CALLS)
    size = len(events) // CALLS
    each = [events[i * size : (i + 1) * size] for i in range(CALLS)]
    return Census(tuple(e.name for e in each[-1]), median(_busy(call) for call in each))


def _busy(events) -> float:
    """Union of the events' intervals, in seconds; kernels of two streams count once."""
    total, reached = 0.0, float("-inf")
    for event in events:
        start, end = event.time_range.start, event.time_range.end
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total * 1e-6
