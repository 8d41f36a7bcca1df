"""The clock of a device with its calibration, its warnings, and counters of what happened beside
the work: the allocator asked the driver, another process came, a graph was compiled."""

import functools
import sys

import torch

from anatomy.machine import host
from anatomy.measure.calibration import Calibration, calibrate, clock_beside
from anatomy.measure.clock import Clock, CudaClock

# Launches that may be queued ahead before the driver makes the host wait (1024, less a margin).
QUEUE_LIMIT = 800


class Stopwatch(Clock):
    """The clock of the host, with its calibration and its counters."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.calibration: Calibration | None = None  # `stopwatch_for` measures it
        self.warnings: list[str] = []  # what the reader of its figures must know, in sentences

    def clock_now(self) -> float:
        """Seconds that the clock adds to a cold span now; see `calibration`."""
        return clock_beside(self, self.calibration)

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


class CudaStopwatch(CudaClock, Stopwatch):
    """The clock of a GPU, with its calibration, and the counters of NVML and of the allocator."""

    def allocated(self) -> int | None:
        return torch.cuda.memory_allocated(self.device)

    def conditions(self) -> dict | None:
        return host.conditions(self.device)

    def disturbances(self) -> dict[str, int | None]:
        stats = torch.cuda.memory_stats(self.device)
        foreign = host.foreign_processes(self.device)
        return {
            "compilations": compilations(),
            "device allocations": stats.get("num_device_alloc", 0) + stats.get("num_ooms", 0),
            "foreign processes": None if foreign is None else len(foreign),
        }


def compilations() -> int:
    """How many graphs torch.compile has compiled in this process."""
    # Looked up, not imported: the import takes seconds, and who never compiled never imported it.
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo.counters["stats"]["unique_graphs"] if dynamo else 0


@functools.lru_cache
def _stopwatch(device: str) -> Stopwatch:
    kind = torch.device(device)
    watch = CudaStopwatch(kind) if kind.type == "cuda" else Stopwatch(kind)
    watch.calibration, told = calibrate(watch)
    watch.warnings += told
    return watch


def stopwatch_for(device: str | torch.device) -> Stopwatch:
    """The stopwatch of a device such as `cuda:0` or `cpu`, calibrated once a process; BadParameter
    for what is no device's name, and DeviceError where there is none such."""
    kind, index = host.require_device(device)
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
