"""A virtual GPU that writes down what is asked of it, in order.

An operation is a launch, a sleep, an event's record or query, a synchronisation, a reading of a
clock or a counter, or a call of what is being measured; with what it was given, and in the order in
which the measuring room asked for it. Two rooms with the same trace in every scenario do the same
to a device, but for the host's time between two operations, which a virtual clock can't see.
"""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field

from anatomy.machine import host
from tests.fakes.fake_gpu import LAUNCH_GAP_S, FakeEvent, FakeGpu

# Operation -> its letter, of which the golden file keeps one for each operation.
OPERATIONS = {
    "call": "C",
    "clock": "c",
    "launch": "l",
    "sleep": "z",
    "sync": "S",
    "event": "e",
    "record": "r",
    "query": "q",
    "wait": "w",
    "elapsed": "t",
    "device": "d",
    "allocate": "A",
    "read": "R",
    "profile": "P",
    "allocated": "a",
    "allocations": "m",
    "preemptions": "p",
    "conditions": "n",
    "foreign": "f",
}


@dataclass
class TracedGpu(FakeGpu):
    """A virtual GPU with a list of its operations.

    `jitter_s` is by how much its rest before a kernel varies from kernel to kernel, always in the
    same way.
    """

    jitter_s: float = 0.0
    operations: list[tuple] = field(default_factory=list)

    def note(self, kind: str, *details) -> None:
        """Write down one operation."""
        self.operations.append((kind, *details))

    def launch(self, seconds, name="kernel", stream="current"):
        self.note("launch", seconds, name, stream)
        if self.jitter_s:
            self.gap_s = LAUNCH_GAP_S + self.jitter_s * (len(self.kernels) * 7919 % 101) / 101
        super().launch(seconds, name, stream)

    def sleep(self, cycles):
        self.note("sleep", cycles)
        super().sleep(cycles)

    def synchronize(self, device=None):
        self.note("sync", str(device))
        super().synchronize(device)

    def read(self, tensor):
        self.note("read", tensor.bytes)
        super().read(tensor)

    def perf_counter_ns(self):
        self.note("clock")
        return super().perf_counter_ns()

    def getrusage(self, who):
        self.note("preemptions")
        return super().getrusage(who)

    def event(self, enable_timing=False):
        self.note("event", enable_timing)
        return TracedEvent(self)

    def set_device(self, device):
        self.note("device", str(device))
        super().set_device(device)

    def memory_stats(self, device):
        self.note("allocations", str(device))
        return super().memory_stats(device)

    def memory_allocated(self, device):
        self.note("allocated", str(device))
        return super().memory_allocated(device)

    def allocate(self, bytes_, on_host):
        self.note("allocate", bytes_, on_host)
        return super().allocate(bytes_, on_host)

    @contextmanager
    def profile(self, activities):
        self.note("profile", sorted(each.name for each in activities))
        with super().profile(activities) as profiler:
            yield profiler
        self.note("profile", "end")

    def callable(self, seconds, **options):
        call = super().callable(seconds, **options)
        number = self.made = getattr(self, "made", 0) + 1

        def noted():
            self.note("call", number)
            return call()

        noted.made = call.made
        return noted

    def install(self, monkeypatch):
        for name, kind in (("conditions", "conditions"), ("foreign_processes", "foreign")):
            monkeypatch.setattr(host, name, self._noting(kind, getattr(host, name)))
        return super().install(monkeypatch)

    def _noting(self, kind: str, function: Callable) -> Callable:
        def noted(device):
            self.note(kind, str(device))
            return function(device)

        return noted


class TracedEvent(FakeEvent):
    """An event whose uses are written down."""

    def record(self):
        self.gpu.note("record")
        super().record()

    def query(self):
        self.gpu.note("query")
        return super().query()

    def synchronize(self):
        self.gpu.note("wait")
        super().synchronize()

    def elapsed_time(self, end):
        self.gpu.note("elapsed")
        return super().elapsed_time(end)
