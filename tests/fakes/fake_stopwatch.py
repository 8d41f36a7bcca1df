"""A clock that knows the answer: callables of known cost, with declared noise, drift and faults.

Time is virtual, so a measurement of minutes takes milliseconds, and what comes out can be held
against what went in.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
import torch

from anatomy.measure import blocks, stopwatch
from anatomy.measure.calibration import Calibration
from anatomy.measure.stopwatch import Stopwatch

CLOCK_S = 3e-6  # what an event pair adds to the work between its events
FLUSH_S = 50e-6
TOY_S = 4e-3  # what every call of a toy experiment takes: a block has one sample of it
TICK_S = 1e-7


@dataclass
class FakeFlush:
    """Stands in for the cache flush; what costs time is the clock's business."""

    cache_bytes: int = 60 * 2**20
    bytes: int = 120 * 2**20


@dataclass
class Fake:
    """A callable of known cost in seconds: `warm_s` in the cache, `cold_s` out of it."""

    watch: "FakeStopwatch"
    warm_s: float
    cold_s: float | None = None
    enqueue_s: float = 5e-6
    syncs: bool = False
    result: float = 1.0
    on_call: Callable[[int], None] | None = None
    calls: int = 0

    def __call__(self) -> torch.Tensor:
        self.calls += 1
        if self.on_call:
            self.on_call(self.calls)
        self.watch.ran(self)
        return torch.tensor([self.result])

    def cost(self, cold: bool) -> float:
        return self.cold_s if cold and self.cold_s is not None else self.warm_s


@dataclass
class FakeStopwatch(Stopwatch):
    """Virtual time on a `device` that need not exist.

    `noise` is the relative spread of one call, `drift_per_s` how much slower everything becomes
    in a second. `throttle` maps a counter's name to the chance that it rises in a reading; None
    means a device without counters. `leaks_below_s` is the sleep that dispatch needs to be hidden,
    `step_s` the step in which the clock counts. `clock_jump_s` comes to what the clock adds to a
    cold span in every other millisecond.
    """

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    warnings: list[str] = field(default_factory=list)
    noise: float = 0.0
    drift_per_s: float = 0.0
    throttle: dict[str, float] | None = field(default_factory=dict)
    leaks_below_s: float = 0.0
    foreign: int | None = 0
    compiled: int = 0
    side_stream: bool = False
    leak_bytes: int | None = 0
    interruptions: int | None = 0
    step_s: float = 0.0
    clock_jump_s: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        self.flush = FakeFlush()
        self.calibration = Calibration(
            event_pair_s=1e-6,
            null_kernel_s=CLOCK_S + 1e-6,
            null_record_s=1e-6,
            clock_s=CLOCK_S,
            resolution_s=self.step_s,
            queue_s=15e-6,
            host_clock_s=1e-7,
            synchronize_s=3e-6,
            flush_s=FLUSH_S,
            probe_cold_s=8e-6,
            probe_warm_s=4e-6,
        )
        self.time_s = 0.0
        self.timed = 0
        self.holds: list[float] = []
        self._random = random.Random(self.seed)
        self._counters = dict.fromkeys(self.throttle or {}, 0)
        self._log: list[Fake] | None = None

    def now(self) -> float:
        return self.time_s

    def ran(self, fake: Fake) -> None:
        """A callable was called: the host spent its enqueue time, and somebody may be counting."""
        self.time_s += fake.enqueue_s + (fake.warm_s if fake.syncs else 0.0)
        if self._log is not None:
            self._log.append(fake)

    def wall(self, calls: Sequence[Callable]) -> float:
        return sum(self._device_time(call, cold=False, least=True) for call in calls)

    def enqueue(self, call: Callable) -> float:
        before = self.time_s
        call()
        return (self.time_s - before) * self._factor()

    def clock_now(self) -> float:
        return CLOCK_S + (self.clock_jump_s if int(self.time_s * 1e3) % 2 else 0.0)

    def synchronizes(self, call: Callable) -> bool:
        return getattr(call, "syncs", False)

    def leaves_work(self, call: Callable) -> bool:
        return self.side_stream

    def allocated(self) -> int | None:
        return None if self.leak_bytes is None else self.timed * self.leak_bytes

    def preemptions(self) -> int | None:
        return None if self.interruptions is None else int(self.time_s * self.interruptions)

    def spans(self, calls, *, cold, hold_s):
        self.timed += len(calls)
        self.holds.append(hold_s)
        clock_s = self.clock_now()
        taken = [self._device_time(call, cold=cold) + clock_s for call in calls]
        if self.step_s:
            taken = [round(span / self.step_s) * self.step_s for span in taken]
        return taken, 0 < hold_s < self.leaks_below_s

    def batch(self, calls, *, hold_s):
        self.timed += len(calls)
        self.holds.append(hold_s)
        total = sum(self._device_time(call, cold=False) for call in calls)
        return total + CLOCK_S, 0 < hold_s < self.leaks_below_s

    def conditions(self) -> dict | None:
        if self.throttle is None:
            return None
        for name, chance in self.throttle.items():
            self._counters[name] += self._random.random() < chance
        readings = {"sm_clock_mhz": 1980, "power_w": 400.0, "temperature_c": 40}
        return readings | {"throttle": dict(self._counters)}

    def disturbances(self) -> dict[str, int | None]:
        return {"compilations": self.compiled, "foreign processes": self.foreign}

    def _device_time(self, call: Callable, *, cold: bool, least: bool = False) -> float:
        """Seconds the device spends in `call`, which may call several fakes or none."""
        self._log = []
        call()
        fakes, self._log = self._log, None
        busy = sum(fake.cost(cold) for fake in fakes) * self._factor()
        self.time_s += busy
        host = sum(fake.enqueue_s for fake in fakes)
        return max(busy, host) if least else busy

    def _factor(self) -> float:
        spread = math.exp(self._random.gauss(0, self.noise)) if self.noise else 1.0
        return (1 + self.drift_per_s * self.time_s) * spread


class ToyStopwatch(FakeStopwatch):
    """Runs what it is given, each callable once however often it is asked for, on the CPU; the
    times are made up.

    What an experiment does at toy size then runs as it would, in a small part of the calls, and
    nothing in its table depends on how busy the machine is.
    """

    def __init__(self) -> None:
        super().__init__(noise=0.003, throttle=None)

    def now(self) -> float:
        self.time_s += TICK_S  # who waits for a moment to come gets there
        return self.time_s

    def wall(self, calls: Sequence[Callable]) -> float:
        return self._ran(calls)

    def enqueue(self, call: Callable) -> float:
        return self._ran([call])

    def spans(self, calls, *, cold, hold_s):
        self._ran(calls)
        return [TOY_S * self._factor() + CLOCK_S for _ in calls], False

    def batch(self, calls, *, hold_s):
        return self._ran(calls) + CLOCK_S, False

    def disturbances(self) -> dict[str, int | None]:
        return {"compilations": stopwatch.compilations()}

    def _ran(self, calls: Sequence[Callable]) -> float:
        """Call each once, and say how long all of them would have taken, in seconds."""
        for call in {id(call): call for call in calls}.values():
            call()
        seconds = sum(TOY_S * self._factor() for _ in calls)
        self.time_s += seconds
        return seconds


@contextmanager
def made_up_time() -> Iterator[None]:
    """In here the CPU's stopwatch is a `ToyStopwatch`, and a comparison ends at the first look."""
    watches = {}
    with pytest.MonkeyPatch.context() as patched:
        real = stopwatch._stopwatch

        def toy(device: str) -> stopwatch.Stopwatch:
            if device != "cpu":
                return real(device)
            return watches.setdefault(device, ToyStopwatch())

        patched.setattr(stopwatch, "_stopwatch", toy)
        patched.setattr(blocks, "LOOKS", (6,))
        yield
