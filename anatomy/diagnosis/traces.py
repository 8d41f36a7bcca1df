"""A trace of a few steps: what the host called, where it waited, and what the GPU ran meanwhile."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from anatomy.diagnosis import profiles
from anatomy.measure.stopwatch import Stopwatch

MOST_STEPS = 5  # more steps make a trace long and show nothing new
GPU, HOST, OPERATORS = "GPU", "CPU", "PyTorch"
PARTS = "step"  # the lane of what an experiment calls the parts of its step
# Calls of the CUDA runtime and driver that queue a kernel or a copy.
LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync")
LONGEST = 160  # characters that are kept of a name; pages shorten it further
WARM_UPS = 3


def recorded(act: Callable[[], None], steps: int, watch: Stopwatch) -> list[Any]:
    """The profiler's events of `steps` calls, after others that pay for the profiler's buffers."""
    for _ in range(WARM_UPS):
        act()
    watch.drain()
    with warnings.catch_warnings():
        # The profiler announces that events of one cycle are kept; there is only one here.
        warnings.filterwarnings("ignore", message=".*Profiler clears events")
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            act()
            watch.drain()
            with torch.profiler.record_function(profiles.STEP):
                for _ in range(steps):
                    act()
            watch.drain()
    return list(profiler.events())


def events_of(events: list[Any], run: str) -> list[dict]:
    """Rows of a profile's events inside the marked steps, in order, timed from the first."""
    host = [event for event in events if event.device_type == DeviceType.CPU]
    mark = next((event for event in host if event.name == profiles.STEP), None)
    if mark is None:
        return [{"run": run, "lane": None, "variant": run, "note": "the profiler lost its events"}]
    began, ended = mark.time_range.start * 1e-6, mark.time_range.end * 1e-6
    found = [(GPU, *span) for span in profiles.on_device(events, since_s=began)]
    for event in host:
        start, end = event.time_range.start * 1e-6, event.time_range.end * 1e-6
        if event is mark or not (began <= start and end <= ended):
            continue
        if lane := _lane(event.name):
            found.append((lane, start, end, event.name))
    if not found:
        return [{"run": run, "lane": None, "variant": run, "note": "the profiler saw nothing"}]
    zero = min(start for _, start, _, _ in found)
    return [
        {
            "run": run,
            "lane": lane,
            "kind": _kind(lane, name),
            "variant": name[:LONGEST],
            # To the nanosecond, which is what the profiler counts in.
            "start_s": round(start - zero, 9),
            "end_s": round(end - zero, 9),
            "note": None,
        }
        for lane, start, end, name in sorted(found, key=lambda each: (each[1], -each[2]))
    ]


def _lane(name: str) -> str | None:
    """Where an event of the host is shown; None of what is left out."""
    if name.startswith("aten::"):
        return OPERATORS
    return HOST if name.startswith(LAUNCHES) or name in profiles.SYNC_CALLS else None


def _kind(lane: str, name: str) -> str:
    if lane == GPU:
        return "copy" if name.startswith(("Memcpy", "Memset")) else "kernel"
    if lane == OPERATORS:
        return "operator"
    return "wait" if name in profiles.SYNC_CALLS else "launch"
