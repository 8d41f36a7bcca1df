"""The only clock of the package: CUDA events on a GPU, the host's monotonic counter on a CPU.

A GPU runs behind its host: a call returns once its kernels are queued. An event pair around a call
therefore measures the host as well, unless the GPU is kept busy until the whole call is queued.
Every GPU sample here begins with a device-side sleep (`hold_s`) that is longer than the host
needs, and then asks whether it was: if the start event had already passed when the last kernel was
queued, dispatch leaked into the sample, and the caller learns of it. Several spans are queued as
one behind one sleep: on an H200 a host that goes on queueing while the device works lengthens every
span by 0.6 to 1.3 us.
"""

import functools
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from anatomy import machine
from anatomy.measuring.cache import Flush
from anatomy.measuring.calibration import Calibration, calibrate, clock_beside

Call = Callable[[], object]

# A host call that takes this share of the sleep in front of it waited for it: it synchronizes.
SYNC_SHARE = 0.5
# Sleep in front of the call that is asked whether it synchronizes. Long against any launch.
SYNC_PROBE_S = 0.01
# A device still busy for so long after the stream's last event runs something on another stream.
SIDE_STREAM_S = 100e-6
# Launches that may be queued ahead before the driver makes the host wait (1024, less a margin).
QUEUE_LIMIT = 800


@dataclass
class Stopwatch:
    """Times callables on one device. Every duration is in seconds.

    Subclasses say how a span is taken. What the clock itself adds to a span is still in it here:
    `calibration.clock_s` and `clock_now` say how much, and `sampling` takes it off.
    """

    device: torch.device
    warnings: list[str] = field(default_factory=list)
    calibration: Calibration | None = None

    def now(self) -> float:
        """Seconds on the host's monotonic clock."""
        return time.perf_counter_ns() * 1e-9

    def drain(self) -> None:
        """Wait until everything queued on the device is done."""

    def hold(self, seconds: float) -> None:
        """Keep the device busy for so long, so that the host can queue work behind it."""

    def spans(
        self, calls: Sequence[Call], *, cold: bool, hold_s: float
    ) -> tuple[list[float], bool]:
        """One span per call, each taken alone; and whether dispatch leaked into them.

        All are queued before the first one begins, so `hold_s` must be enough for all.
        """
        raise NotImplementedError

    def batch(self, calls: Sequence[Call], *, hold_s: float) -> tuple[float, bool]:
        """One span around all calls, back to back; and whether dispatch leaked into it."""
        raise NotImplementedError

    def enqueue(self, call: Call) -> float:
        """Host time until `call` returns, with nothing queued before it."""
        self.drain()
        start = self.now()
        call()
        return self.now() - start

    def wall(self, calls: Sequence[Call]) -> float:
        """Host time from the first call to the end of the last one's work."""
        self.drain()
        start = self.now()
        for call in calls:
            call()
        self.drain()
        return self.now() - start

    def clock_now(self) -> float:
        """Seconds that the clock adds to a cold span now; see `calibration`."""
        return clock_beside(self)

    def synchronizes(self, call: Call) -> bool:
        """Whether `call` makes the host wait for the device."""
        return False

    def leaves_work(self, call: Call) -> bool:
        """Whether work of `call` is still running when the current stream has finished with it."""
        return False

    def allocated(self) -> int | None:
        """Bytes that tensors hold on the device now; None where nobody counts them."""
        return None

    def preemptions(self) -> int | None:
        """How often the system took the host's core away from this process; None if unknown."""
        try:
            import resource
        except ImportError:  # not a POSIX system
            return None
        return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw

    def conditions(self) -> dict | None:
        """Clocks, power, temperature and throttle counters now; None where nobody can tell."""
        return None

    def disturbances(self) -> dict[str, int | None]:
        """Counts which, if they move during a block, make it invalid; None where unknown."""
        return {"compilations": compilations()}


class CpuStopwatch(Stopwatch):
    """The host's monotonic counter around calls that run on the host."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.flush = Flush(device)

    def spans(
        self, calls: Sequence[Call], *, cold: bool, hold_s: float
    ) -> tuple[list[float], bool]:
        taken = []
        for call in calls:
            if cold:
                self.flush()
            start = self.now()
            call()
            taken.append(self.now() - start)
        return taken, False

    def batch(self, calls: Sequence[Call], *, hold_s: float) -> tuple[float, bool]:
        start = self.now()
        for call in calls:
            call()
        return self.now() - start, False


class CudaStopwatch(Stopwatch):
    """CUDA event pairs behind a device-side sleep that hides the host's dispatch."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        torch.cuda.set_device(device)
        self.flush = Flush(device)
        self._cycles_per_s = 1e9  # replaced by what this device does, just below
        self._cycles_per_s = self._measure_sleep()

    def drain(self) -> None:
        self._select()
        torch.cuda.synchronize(self.device)

    def _select(self) -> None:
        """Make this device the current one: another one's clock may have been used meanwhile."""
        torch.cuda.set_device(self.device)

    def spans(
        self, calls: Sequence[Call], *, cold: bool, hold_s: float
    ) -> tuple[list[float], bool]:
        self._select()
        pairs = [(_event(), _event()) for _ in calls]
        self.hold(hold_s)
        for (start, end), call in zip(pairs, calls, strict=True):
            if cold:
                self.flush()
            start.record()
            call()
            end.record()
        leaked = hold_s > 0 and pairs[0][0].query()
        self.drain()
        return [start.elapsed_time(end) * 1e-3 for start, end in pairs], leaked

    def batch(self, calls: Sequence[Call], *, hold_s: float) -> tuple[float, bool]:
        self._select()
        start, end = _event(), _event()
        self.hold(hold_s)
        start.record()
        for call in calls:
            call()
        end.record()
        leaked = hold_s > 0 and start.query()
        self.drain()
        return start.elapsed_time(end) * 1e-3, leaked

    def synchronizes(self, call: Call) -> bool:
        self.drain()
        self.hold(SYNC_PROBE_S)
        start = self.now()
        call()
        waited = self.now() - start
        self.drain()
        # A slow host takes as long without the sleep.
        return waited > SYNC_SHARE * SYNC_PROBE_S + self.enqueue(call)

    def leaves_work(self, call: Call) -> bool:
        # A host that is interrupted once looks the same.
        return all(self._still_busy(call) for _ in range(3))

    def _still_busy(self, call: Call) -> bool:
        self.drain()
        end = _event()
        call()
        end.record()
        end.synchronize()
        start = self.now()
        self.drain()
        return self.now() - start > SIDE_STREAM_S

    def allocated(self) -> int | None:
        return torch.cuda.memory_allocated(self.device)

    def conditions(self) -> dict | None:
        return machine.conditions(self.device)

    def disturbances(self) -> dict[str, int | None]:
        stats = torch.cuda.memory_stats(self.device)
        foreign = machine.foreign_processes(self.device)
        return {
            "compilations": compilations(),
            "device allocations": stats.get("num_device_alloc", 0) + stats.get("num_ooms", 0),
            "foreign processes": None if foreign is None else len(foreign),
        }

    def hold(self, seconds: float) -> None:
        if seconds > 0:
            torch.cuda._sleep(int(seconds * self._cycles_per_s))

    def _measure_sleep(self) -> float:
        """Cycles of `torch.cuda._sleep` per second, at the clock the device settles on."""
        cycles = 2_000_000
        rates = []
        for _ in range(20):
            start, end = _event(), _event()
            start.record()
            torch.cuda._sleep(cycles)
            end.record()
            self.drain()
            rates.append(cycles / (start.elapsed_time(end) * 1e-3))
        # The highest rate seen makes every later sleep at least as long as it was asked to be.
        return max(rates)


def compilations() -> int:
    """How many graphs torch.compile has compiled in this process."""
    # Looked up, not imported: the import takes seconds, and who never compiled never imported it.
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo.counters["stats"]["unique_graphs"] if dynamo else 0


@functools.lru_cache
def _stopwatch(device: str) -> CpuStopwatch | CudaStopwatch:
    kind = torch.device(device)
    watch = CudaStopwatch(kind) if kind.type == "cuda" else CpuStopwatch(kind)
    watch.calibration = calibrate(watch)
    return watch


def stopwatch_for(device: str | torch.device) -> CpuStopwatch | CudaStopwatch:
    """The stopwatch of a device, calibrated once a process.

    Args:
        device: `cuda:0` or `cpu`.

    Raises:
        BadParameter: It is no device's name.
        DeviceError: This process has no such device; the message says what to do.
    """
    kind, index = machine.require_device(device)
    return _stopwatch(f"cuda:{index}" if kind == "cuda" else "cpu")


def account(device: str | torch.device) -> dict:
    """What a recording keeps of the clock that made it: calibration (seconds) and warnings."""
    watch = stopwatch_for(device)
    return {
        "method": {
            "clock": "CUDA events" if watch.device.type == "cuda" else "perf_counter_ns",
            "cache_bytes": watch.flush.cache_bytes,
            "flush_bytes": watch.flush.bytes,
            "calibration": dict(vars(watch.calibration)),
        },
        "warnings": list(watch.warnings),
    }


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)
