"""The hot path: all that runs between two readings of a clock, or between two events.

A GPU runs behind its host: a call returns once its kernels are queued. An event pair around a call
therefore measures the host as well, unless the GPU is kept busy until the whole call is queued.
Every GPU sample here begins with a device-side sleep (`hold`) that is longer than the host needs,
and then asks whether it was: if the start event had already passed when the last kernel was queued,
dispatch leaked into the sample, and the caller learns of it. Several spans are queued as one behind
one sleep: on an H200 a host that goes on queueing while the device works lengthens every span by
0.6 to 1.3 us.

A microsecond of Python in the wrong line is a microsecond in a figure, and no test on a virtual
card sees it. So all that is timed, or runs while something is timed, stands here alone, and every
edit of its syntax is an edit of the method (see `anatomy.record.provenance.method`).
"""

import time
from collections.abc import Callable, Sequence

import torch

from anatomy.measure.cache import FLUSH_FACTOR, last_level_cache_bytes

Call = Callable[[], object]

# A host call that takes this share of the sleep in front of it waited for it: it synchronizes.
SYNC_SHARE = 0.5
# Sleep in front of the call that is asked whether it synchronizes. Long against any launch.
SYNC_PROBE_S = 0.01
# A device still busy for so long after the stream's last event runs something on another stream.
SIDE_STREAM_S = 100e-6
# A host that is interrupted once looks the same, so the question is asked so many times.
SIDE_STREAM_ASKED = 3
# Sleeps whose length is measured before the first one is relied on, and the cycles of each.
SLEEPS, SLEEP_CYCLES = 20, 2_000_000


class Flush:
    """Evicts the last-level cache of one device, and leaves it clean rather than dirty. The buffer
    is first written, then another one of `FLUSH_FACTOR` caches is read. Writing alone would leave a
    cache full of dirty lines, whose write-back would then be charged to the timed call: on a 60 MB
    cache that is up to 60 MB of somebody else's traffic."""

    def __init__(self, device: torch.device) -> None:
        self.cache_bytes = last_level_cache_bytes(device)
        self.bytes = FLUSH_FACTOR * self.cache_bytes
        elements = max(self.cache_bytes // 4, 1)
        # Not inference tensors, though the first comparison of a process may run in that mode: the
        # next one may not, and writing to them would then be refused.
        with torch.inference_mode(False):
            self._written = torch.zeros(elements, dtype=torch.int32, device=device)
            self._read = torch.zeros(FLUSH_FACTOR * elements, dtype=torch.float32, device=device)
            self._sink = torch.empty((), dtype=torch.float32, device=device)

    def __call__(self) -> None:
        """Queue the flush on the current stream (CUDA), or do it (CPU)."""
        self._written.add_(1)
        torch.sum(self._read, dim=0, out=self._sink)


class Clock:
    """Times callables on one device; this one has the host's monotonic counter alone. Every
    duration is in seconds. What the clock itself adds to a span is still in it here: `calibration`
    says how much, and `sampling` takes it off."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.flush = Flush(device)

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
        """One span per call, each taken alone; and whether dispatch leaked into them. All are
        queued before the first one begins, so `hold_s` must be enough for all."""
        taken = []
        for call in calls:
            if cold:
                self.flush()
            start = self.now()
            call()
            taken.append(self.now() - start)
        return taken, False

    def batch(self, calls: Sequence[Call], *, hold_s: float) -> tuple[float, bool]:
        """One span around all calls, back to back; and whether dispatch leaked into it."""
        start = self.now()
        for call in calls:
            call()
        return self.now() - start, False

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

    def synchronizes(self, call: Call) -> bool:
        """Whether `call` makes the host wait for the device."""
        return False

    def leaves_work(self, call: Call) -> bool:
        """Whether work of `call` is still running when the current stream has finished with it."""
        return False


class CudaClock(Clock):
    """CUDA event pairs behind a device-side sleep that hides the host's dispatch."""

    def __init__(self, device: torch.device) -> None:
        torch.cuda.set_device(device)
        super().__init__(device)
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
        return all(self._still_busy(call) for _ in range(SIDE_STREAM_ASKED))

    def _still_busy(self, call: Call) -> bool:
        # Behind a call of tens of milliseconds the host's caches are cold, and on some hosts
        # waiting for an idle device then takes over `SIDE_STREAM_S`. So what counts is by how much
        # it is longer than behind a sleep of the same length, which leaves nothing.
        left_s, lasted_s = self._wait_behind(call)
        idle_s, _ = self._wait_behind(lambda: self.hold(lasted_s))
        return left_s - idle_s > SIDE_STREAM_S

    def _wait_behind(self, call: Call) -> tuple[float, float]:
        """Seconds of waiting for the device after the stream has finished with `call`; and those
        until then."""
        self.drain()
        end = _event()
        start = self.now()
        call()
        end.record()
        end.synchronize()
        done = self.now()
        self.drain()
        return self.now() - done, done - start

    def hold(self, seconds: float) -> None:
        if seconds > 0:
            torch.cuda._sleep(int(seconds * self._cycles_per_s))

    def surroundings(self) -> None:
        """Queue what stands around a cold call: a flush and two events."""
        self.flush()
        for _ in range(2):
            torch.cuda.Event(enable_timing=True).record()

    def _measure_sleep(self) -> float:
        """Cycles of `torch.cuda._sleep` per second, at the clock the device settles on."""
        rates = []
        for _ in range(SLEEPS):
            start, end = _event(), _event()
            start.record()
            torch.cuda._sleep(SLEEP_CYCLES)
            end.record()
            self.drain()
            rates.append(SLEEP_CYCLES / (start.elapsed_time(end) * 1e-3))
        # The highest rate seen makes every later sleep at least as long as it was asked to be.
        return max(rates)


def null() -> None:
    """A kernel that does nothing."""
    torch.cuda._sleep(1)


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)
