"""A GPU in virtual time behind torch's own functions: what `CudaStopwatch` does, without a card.

The host and the device each have a clock. The host puts work into a queue and goes on; the device
works it off in order, one queue for each stream. So a host that is too slow, a sleep that is too
short, work on a second stream, a full queue and a cache that is not emptied show what they would
show on a real one. NVML is `fake_driver`'s.
"""

import os
import sys
from bisect import bisect_right
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import torch
from torch.autograd import DeviceType

from anatomy.machine import driver, host, versions
from anatomy.measure import cache, census, clock, stopwatch
from tests.fakes.fake_driver import FIRST, FakeCuda, FakeNvml

RATE = 1.98e9  # cycles of a sleep in a second
LEAST_KERNEL_S = 0.6e-6
STAMP_S, LAUNCH_GAP_S = 1.4e-6, 1.1e-6
CLOCK_S = STAMP_S + LAUNCH_GAP_S  # what an event pair adds to one kernel
QUEUED_AT_MOST = 1024
PROBED_BYTES_S, CACHED_BYTES_S = 4e12, 8e12


@dataclass
class FakeGpu:
    """One card. Seconds, all on one timeline.

    `launch_s` is the host's time for one launch, `gap_s` the device's rest before a kernel,
    `crowd_s` what a span gains while the host still queues. `step_s` is the step in which events
    count. `l2_bytes` is the cache it says it has and `true_l2_bytes` the one that it has.
    `profiler` is `sees`, `blind` or the error it raises. `stalls` are host times at which
    something else has the core for `stall_s`. `host_caches` are what Linux says of the host's
    caches; where it is given, buffers on the CPU are virtual too, and reading one takes host time.
    """

    launch_s: float = 2e-6
    gap_s: float = LAUNCH_GAP_S
    crowd_s: float = 1e-6
    step_s: float = 0.0
    l2_bytes: int = 60 * 2**20
    true_l2_bytes: int = 60 * 2**20
    profiler: str | Exception = "sees"
    stalls: list[float] = field(default_factory=list)
    stall_s: float = 4e-3
    host_caches: tuple[str, ...] | None = None
    nvml: FakeNvml = field(default_factory=FakeNvml)

    def __post_init__(self):
        self.host_s = 1.0
        self.ends = {"current": 0.0}
        self.queue: list[float] = []
        self.cached: list[FakeTensor] = []
        self.kernels: list[tuple[float, float, str]] = []
        self.sleeps: list[float] = []
        self.allocated, self.device_allocs, self.ooms = 0, 0, 0
        self.current_device, self.preempted = 0, 0
        self.events: list[FakeEvent] = []
        self.pending_events: list[FakeEvent] = []
        self.nvml.processes[FIRST] = [os.getpid()]

    def spend(self, seconds):
        """The host is busy; it loses its core where that is declared."""
        self.host_s += seconds
        while self.stalls and self.stalls[0] <= self.host_s:
            self.stalls.pop(0)
            self.host_s += self.stall_s
            self.preempted += 1

    def launch(self, seconds, name="kernel", stream="current"):
        """Queue a kernel; the host waits where the queue is full."""
        self.spend(self.launch_s)
        begin = max(self.host_s, self.ends.get(stream, 0.0)) + self.gap_s
        self.ends[stream] = begin + seconds
        self.kernels.append((begin, begin + seconds, name))
        self._enqueued(self.ends[stream])

    def sleep(self, cycles):
        assert isinstance(cycles, int), "torch takes whole cycles"
        self.sleeps.append(cycles / RATE)
        self.launch(max(LEAST_KERNEL_S, cycles / RATE), "void at::cuda::spin_kernel(long)")

    def synchronize(self, device=None):
        queued = self.host_s
        self.wait(max(self.ends.values()))
        for event in self.pending_events:
            event.crowded = event.time_s < queued
        self.pending_events.clear()

    def wait(self, until_s):
        self.host_s = max(self.host_s, until_s)
        self.spend(3e-6)

    def read(self, tensor):
        """Read a tensor through the cache."""
        hit = tensor in self.cached
        seconds = 1e-6 + tensor.bytes / (CACHED_BYTES_S if hit else PROBED_BYTES_S)
        if tensor.on_host:
            self.spend(seconds)
        else:
            self.launch(seconds, "reduce")
        self.cached = [each for each in self.cached if each is not tensor] + [tensor]
        while sum(each.bytes for each in self.cached) > self.true_l2_bytes:
            self.cached.pop(0)

    def callable(self, seconds, *, kernels=1, stream="current", syncs=False, host_s=0.0, each=None):
        """A callable with kernels of `seconds` together; `each` is told how often it was called."""
        made = SimpleNamespace(calls=0, result=1.0)

        def call():
            made.calls += 1
            self.spend(host_s)
            if each:
                each(made)
            for _ in range(kernels):
                self.launch(seconds / kernels - LAUNCH_GAP_S * (kernels > 1), stream=stream)
            if syncs:
                self.wait(max(self.ends.values()))
            return torch.tensor([made.result])

        call.made = made
        return call

    def _enqueued(self, end_s):
        self.queue = self.queue[bisect_right(self.queue, self.host_s) :]
        self.queue.append(end_s)
        if len(self.queue) > QUEUED_AT_MOST:
            self.host_s = max(self.host_s, self.queue[-QUEUED_AT_MOST])

    def install(self, monkeypatch):
        """Put this card behind torch, NVML and the profiler."""
        self.nvml.order = [FIRST]
        monkeypatch.setitem(sys.modules, "pynvml", self.nvml)
        monkeypatch.setattr(driver, "_libcuda", FakeCuda)
        monkeypatch.setattr(versions, "torch_build", lambda: versions.Build("2.11+cu130", "13.0"))
        counter = SimpleNamespace(perf_counter_ns=self.perf_counter_ns)
        monkeypatch.setattr(clock, "time", counter)
        monkeypatch.setattr(census, "profile", self.profile)
        usage = SimpleNamespace(RUSAGE_SELF=0, getrusage=self.getrusage)
        monkeypatch.setitem(sys.modules, "resource", usage)
        if self.host_caches is not None:
            files = [SimpleNamespace(read_text=lambda text=text: text) for text in self.host_caches]
            monkeypatch.setattr(
                cache, "Path", lambda folder: SimpleNamespace(glob=lambda pattern: files)
            )
        cuda = {
            "Event": self.event,
            "_sleep": self.sleep,
            "synchronize": self.synchronize,
            "set_device": self.set_device,
            "memory_stats": self.memory_stats,
            "memory_allocated": self.memory_allocated,
            "is_available": lambda: True,
            "is_initialized": lambda: True,
            "device_count": lambda: 2,
            "get_device_properties": self._properties,
        }
        for name, function in cuda.items():
            monkeypatch.setattr(torch.cuda, name, function)
        for name in ("zeros", "empty"):
            monkeypatch.setattr(torch, name, self._allocating(getattr(torch, name)))
        summed = torch.sum

        def total(source, *arguments, **options):
            if isinstance(source, FakeTensor):
                return self.read(source)
            return summed(source, *arguments, **options)

        monkeypatch.setattr(torch, "sum", total)
        return self

    def perf_counter_ns(self):
        self.spend(50e-9)
        return round(self.host_s * 1e9)

    def getrusage(self, who):
        return SimpleNamespace(ru_nivcsw=self.preempted)

    def event(self, enable_timing=False):
        return FakeEvent(self)

    def set_device(self, device):
        self.current_device = torch.cuda._utils._get_device_index(device)

    def memory_stats(self, device):
        return {"num_device_alloc": self.device_allocs, "num_ooms": self.ooms}

    def memory_allocated(self, device):
        return self.allocated

    def _properties(self, device):
        return SimpleNamespace(
            name="NVIDIA H200",
            major=9,
            minor=0,
            multi_processor_count=132,
            total_memory=150_000_000_000,
            L2_cache_size=self.l2_bytes,
            uuid=FIRST,
        )

    def _allocating(self, function):
        def make(*size, device=None, dtype=torch.float32, **options):
            kind = None if device is None else torch.device(device).type
            if kind is None or (kind == "cpu" and self.host_caches is None):
                return function(*size, device=device, dtype=dtype, **options)
            elements = size[0] if isinstance(size[0], int) else 1
            return self.allocate(elements * dtype.itemsize, kind == "cpu")

        return make

    def allocate(self, bytes_, on_host):
        return FakeTensor(self, bytes_, on_host)

    @contextmanager
    def profile(self, activities):
        if isinstance(self.profiler, Exception):
            raise self.profiler
        first = len(self.kernels)
        yield SimpleNamespace(events=lambda: self._recorded(first))

    def _recorded(self, first):
        if self.profiler == "blind":
            return []
        return [
            SimpleNamespace(
                time_range=SimpleNamespace(start=start * 1e6, end=end * 1e6),
                name=name,
                device_type=DeviceType.CUDA,
            )
            for start, end, name in self.kernels[first:]
        ]


class FakeEvent:
    """An event: the device notes when it gets to it."""

    def __init__(self, gpu):
        self.gpu, self.time_s, self.crowded = gpu, None, False

    def record(self):
        gpu = self.gpu
        gpu.spend(gpu.launch_s)
        self.queued_s = gpu.host_s
        self.time_s = max(gpu.host_s, gpu.ends["current"])
        gpu.ends["current"] = self.time_s + STAMP_S
        gpu.events.append(self)
        gpu.pending_events.append(self)
        gpu._enqueued(gpu.ends["current"])

    def query(self):
        return self.gpu.host_s >= self.time_s

    def synchronize(self):
        self.gpu.wait(self.time_s)

    def elapsed_time(self, end):
        """Milliseconds, in steps where the card counts in steps."""
        span_s = end.time_s - self.time_s + (self.gpu.crowd_s if self.crowded else 0.0)
        step = self.gpu.step_s
        return 1e3 * (round(span_s / step) * step if step else span_s)


@dataclass(eq=False)
class FakeTensor:
    """Memory of the card that is only ever written and read as a whole."""

    gpu: FakeGpu
    bytes: int
    on_host: bool = False

    def add_(self, number):
        self.gpu.read(self)


CACHED = (*(driver._nvml, driver._handle, host._describe, host._uuid, stopwatch._stopwatch),)


def forget():
    """Forget every card and stopwatch that this process knows."""
    for each in CACHED:
        each.cache_clear()
