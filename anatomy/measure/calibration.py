"""What the clock itself costs on a device, measured once a process, and again in every block.

An event pair around a kernel spans more than the kernel: the first time stamp is written before
the kernel is launched, the last one after it has flushed its results. On an H200 that is about
3 us, which is more than a short kernel takes. So a kernel that does nothing is timed both ways, by
an event pair and by CUPTI's record of when it began and ended; the difference is the clock's, and
is taken off every span. It depends on what the device does beside, so for cold calls it is measured
with a flush too, in each block anew. What it differs by from kernel to kernel, a few tenths of a
microsecond, stays: cold figures of less than about ten microseconds are no better than that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, median_grouped

import torch

from anatomy.measure.census import HOLD_KERNEL, kernels_during
from anatomy.measure.clock import Call, Clock, null

# Spans of the null kernel, records of it, and its spans beside the samples of one block.
SPANS, RECORDS, BESIDE = 40, 40, 12
# A sleep in front of queued work, for each call of it: a profiler slows launches, and a flush has
# several.
HOLD_S = 60e-6
# How often it is doubled where it was too short.
RETAKES = 4
# A read after a flush must take at least so many times a read of what the cache holds.
COLDER = 1.05


@dataclass
class Calibration:
    """What the clock itself costs, in seconds."""

    event_pair_s: float  # empty; on a CPU two readings of its clock
    null_kernel_s: float | None  # event pair around a kernel that does nothing; None on a CPU
    null_record_s: float | None  # the same kernel by CUPTI's record; None where there is no record
    clock_s: float  # what a span holds beside its work, without a flush: what is taken off
    resolution_s: float  # the step in which the clock counts; 0 where it is too fine to matter
    queue_s: float  # host time to queue a flush and an event pair
    host_clock_s: float  # two readings of the host's clock
    synchronize_s: float  # a bare one
    flush_s: float
    probe_cold_s: float  # a read of a quarter of the cache after a flush
    probe_warm_s: float  # straight after itself; it must be shorter, or the flush is none


def calibrate(clock: Clock) -> tuple[Calibration, list[str]]:
    """Measure what the clock costs; and a sentence for whatever keeps that from being known."""
    warnings: list[str] = []
    on_gpu = clock.device.type == "cuda"
    probe = torch.zeros(
        max(clock.flush.cache_bytes // 16, 1), dtype=torch.float32, device=clock.device
    )
    sink = torch.empty((), dtype=torch.float32, device=clock.device)

    def read() -> None:
        torch.sum(probe, dim=0, out=sink)

    def typical(call: Call, *, cold: bool = False, times: int = 15) -> float:
        _hidden(clock, [call] * 3, cold=cold)
        return median(_hidden(clock, [call] * times, cold=cold)[0])

    empty_s = typical(lambda: None)
    if on_gpu:
        typical(clock.flush, times=100)  # a device that was idle has yet to wake its clocks
    spans, leaked = _hidden(clock, [null] * SPANS, cold=False) if on_gpu else ([], False)
    if leaked:
        warnings.append(
            f"The host is too slow to queue {SPANS} empty kernels in {_most_s(SPANS):.2g} s, so "
            "what the clock itself adds is not known well; short kernels may come out too short."
        )
    null_s = median(spans) if spans else None
    record_s = _null_record(clock) if on_gpu else None
    if on_gpu and record_s is None:
        warnings.append(
            "No profiler records kernels here, so only the time of an empty event pair is taken "
            "off, and what the launch of a kernel adds between its events stays in short figures."
        )
    cold_s, warm_s = typical(read, cold=True, times=5), typical(read, times=5)
    if on_gpu and cold_s < COLDER * warm_s:
        warnings.append(
            f"The flush does not empty the cache of {clock.device}: a read takes {cold_s:.3g} s "
            f"after it and {warm_s:.3g} s without. Cold figures are warm ones in part."
        )
    found = Calibration(
        event_pair_s=empty_s,
        null_kernel_s=null_s,
        null_record_s=record_s,
        # Two readings of a CPU's clock are some ten nanoseconds, and no work there is as short.
        clock_s=0.0 if not on_gpu else empty_s if record_s is None else null_s - record_s,
        resolution_s=_resolution(spans),
        queue_s=median(clock.enqueue(clock.surroundings) for _ in range(15)) if on_gpu else 0.0,
        host_clock_s=median(clock.enqueue(lambda: None) for _ in range(15)),
        synchronize_s=median(clock.wall([]) for _ in range(15)),
        flush_s=typical(clock.flush, times=5),
        probe_cold_s=cold_s,
        probe_warm_s=warm_s,
    )
    return found, warnings


def _hidden(clock: Clock, calls: Sequence[Call], *, cold: bool) -> tuple[list[float], bool]:
    """Spans of calls behind a sleep that is doubled until it hides them; whether it never did."""
    hold_s = len(calls) * HOLD_S
    spans, leaked = clock.spans(calls, cold=cold, hold_s=hold_s)
    for _ in range(RETAKES):
        if not leaked:
            break
        hold_s *= 2
        spans, leaked = clock.spans(calls, cold=cold, hold_s=hold_s)
    return spans, leaked


def _most_s(calls: int) -> float:
    return calls * HOLD_S * 2**RETAKES


def clock_beside(clock: Clock, known: Calibration) -> float:
    """Seconds that the clock adds to a span after a flush, as it is now; 0 on a CPU."""
    if known.null_record_s is None:
        return known.clock_s
    spans, leaked = _hidden(clock, [null] * BESIDE, cold=True)
    if leaked:
        return known.clock_s  # rather too little taken off than too much
    step = known.resolution_s
    middle = median_grouped(spans, interval=step) if step else median(spans)
    return middle - known.null_record_s


def _null_record(clock: Clock) -> float | None:
    """Seconds of the null kernel by CUPTI's record, behind a flush; None without a record."""

    def act() -> None:
        for _ in range(RECORDS):
            clock.flush()
            null()
        clock.drain()

    try:
        seen = kernels_during(act, clock)
    except RuntimeError:  # another tool holds CUPTI
        return None
    nulls = [end - start for start, end, name in seen if HOLD_KERNEL in name]
    return median(nulls) if nulls else None


def _resolution(spans: Sequence[float]) -> float:
    """The step between neighbouring spans; 0 where they are too few or all different."""
    values = sorted(set(spans))
    if len(values) < 2 or len(values) > len(spans) // 2:
        return 0.0
    return min(later - earlier for earlier, later in pairwise(values))
