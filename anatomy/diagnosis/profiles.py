"""A profile of a few steps: what the host called, where it waited, and what the GPU ran meanwhile.
Host and GPU stand on one timeline. A profiler slows the host and hardly the GPU, so times of the
GPU may be taken from it, and those of the host as shares."""

import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function

from anatomy.measure import census
from anatomy.measure.stopwatch import Stopwatch

# Seconds that profiled steps may take, and how many are profiled at the least and at the most.
PROFILED_S, FEWEST_STEPS, MOST_STEPS = 0.2, 2, 10
# Names that mark a profiled step and the part of it that gets the input.
STEP, INPUT = "anatomy: one step", "anatomy: its input"
# What stands on the device's timeline and is no work of it: marks, and waits of the driver.
NO_WORK = (
    *(STEP, INPUT, "ProfilerStep#", "Optimizer."),
    *("Stream Sync", "Event Sync", "Context Sync", "Stream Wait Event"),
)
# Calls of the CUDA runtime that return only when the GPU has done something.
SYNC_CALLS = (
    *("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize"),
    *("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize"),
)
# Operators that bring a value to the host: dispatch, copy and wait together are the price of it.
SYNC_OPERATORS = ("aten::item", "aten::_local_scalar_dense")
COPY_CALLS = ("cudaMemcpyAsync", "cudaMemcpy", "cudaMemcpy2DAsync", "cuMemcpyHtoDAsync_v2")
COPY_WAITS_S = 50e-6  # a copy that was only queued returns in less

# One event of a profile: begin and end in seconds of one timeline, and its name.
Event = tuple[float, float, str]


@dataclass
class Profile:
    """What a profile of `steps` steps says; times in seconds."""

    steps: int = 0
    device: list[Event] = field(default_factory=list)
    operators: list[Event] = field(default_factory=list)  # those of a CPU, with their own time
    window_s: float = 0.0  # from the first step to the end of the last one's work
    wait_s: float = 0.0
    transfer_s: float = 0.0
    waits: Counter = field(default_factory=Counter)  # by the operator that waits, else the call


def take(
    watch: Stopwatch,
    full: Callable[[], None],
    period_s: float,
    mark: Callable[[bool], None] = lambda on: None,
) -> Profile:
    """Profile a few calls of `full`: one step of `period_s` seconds, with getting its input. `mark`
    is told whether `INPUT` is to mark the part that gets the input."""
    steps = max(FEWEST_STEPS, min(MOST_STEPS, int(PROFILED_S / max(period_s, 1e-9))))
    on_gpu = watch.device.type == "cuda"
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    watch.drain()
    with warnings.catch_warnings():
        # The profiler announces that events of one cycle are kept; there is only one here.
        warnings.filterwarnings("ignore", message=".*Profiler clears events")
        with profile(activities=kinds) as profiler:
            full()  # the first call under a profiler pays for its buffers
            watch.drain()
            mark(True)
            began = watch.now()
            for _ in range(steps):
                with record_function(STEP):
                    full()
            watch.drain()
            window_s = watch.now() - began
            mark(False)
    return read(list(profiler.events()), steps, window_s)


def read(events: list[Any], steps: int, window_s: float) -> Profile:
    """What all events of a profile say of the steps that `STEP` marks."""
    found = Profile(steps=steps, window_s=window_s)
    host = [event for event in events if event.device_type == DeviceType.CPU]
    marks = [_span(event) for event in host if event.name == STEP]
    if not marks:
        return Profile()
    inputs = [_span(event) for event in host if event.name == INPUT]
    found.device = on_device(events, since_s=marks[0][0])
    waits: list[Event] = []
    copies: list[Event] = []
    operators: list[Event] = []
    for event in host:
        span = _span(event)
        if not _inside(span, marks) or _inside(span, inputs):
            continue
        if span[2].startswith("aten::"):
            operators.append(span)
        if span[2] in SYNC_CALLS or span[2] in SYNC_OPERATORS:
            waits.append(span)
        elif span[2] in COPY_CALLS and span[1] - span[0] > COPY_WAITS_S:
            copies.append(span)
        elif span[2].startswith("aten::"):
            own = event.self_cpu_time_total * 1e-6
            found.operators.append((span[0], span[0] + own, span[2]))
    callers = _outermost(operators)
    found.waits = Counter(
        _caller_of(span, callers) or span[2] for span in _outermost([*waits, *copies])
    )
    found.wait_s = census.busy(sorted(waits))
    # A copy inside of .item() is a part of that wait.
    found.transfer_s = census.busy(sorted(each for each in copies if not _inside(each, waits)))
    return found


def on_device(events: list[Any], since_s: float = 0.0) -> list[Event]:
    """What ran on the GPU from `since_s` on, in order of start, without marks of the host."""
    # A `record_function` is shown on the device as well, over all that it holds. Its name alone
    # does not tell: a Triton kernel has the name of the host's call of it.
    there = [event for event in events if event.device_type == DeviceType.CUDA]
    spans = [
        _span(event)
        for event in there
        if not getattr(event, "is_user_annotation", False) and not event.name.startswith(NO_WORK)
    ]
    return sorted(span for span in spans if span[0] >= since_s)


def _outermost(spans: list[Event]) -> list[Event]:
    """Those that no other one holds, in order."""
    found: list[Event] = []
    for span in sorted(spans, key=lambda each: (each[0], -each[1])):
        if not found or span[0] >= found[-1][1]:
            found.append(span)
    return found


def _caller_of(span: Event, callers: list[Event]) -> str:
    """Name of the one that holds `span`; empty where none does. No two callers overlap."""
    at = bisect_right(callers, span[0], key=lambda each: each[0]) - 1
    return callers[at][2] if at >= 0 and span[1] <= callers[at][1] else ""


def _span(event: Any) -> Event:
    return event.time_range.start * 1e-6, event.time_range.end * 1e-6, event.name


def _inside(span: Event, ranges: list[Event]) -> bool:
    middle = (span[0] + span[1]) / 2
    return any(begin <= middle <= end for begin, end, _ in ranges)
