"""How one sample of a callable is taken: alone, or in a batch. The event pair around a short kernel
costs more than the kernel. Back to back, many calls share one pair. A cold call cannot be repeated
without a flush in between, so it is timed alone, and what the pair itself takes (see `calibration`)
is taken off. The way is chosen once per variant before the blocks begin, by the quantity and how
long the call takes, and is in the row as `method`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from statistics import median
from typing import Literal

from anatomy.measure.clock import Call
from anatomy.measure.stopwatch import QUEUE_LIMIT, Stopwatch
from anatomy.table.errors import MeasurementError

Quantity = Literal["gpu_cold", "gpu_warm", "host_enqueue", "step_wall"]
QUANTITIES: tuple[Quantity, ...] = ("gpu_cold", "gpu_warm", "host_enqueue", "step_wall")
# Those that are the host's, read off its clock and not off events.
OF_HOST = ("host_enqueue", "step_wall")

# A batch lasts at least this long, so that an event pair of about 1.3 us is 0.3 % of it or less.
# A longer call is a sample by itself: with four in a sample the parts of a block grew to 30 ms and
# more, over which the power cap moves the clock, and the A/A floor of a product of 8192 rose from
# 0.2 to 3.6 %.
BATCH_S = 400e-6
# A wall-clock batch begins with an idle device and ends with one synchronize, about 15 us of it;
# they must be a small part of the whole. And its first call finds nothing queued that a host ahead
# of its device would have left in a steady loop, so it is one of so many calls, until the batch
# lasts twice as long.
WALL_BATCH_S, WALL_CALLS = 4e-3, 8
# The sleep in front of queued calls: this long, and this many times what the host needs to queue
# them.
HOLD_MARGIN_S, HOLD_FACTOR = 20e-6, 1.5
# What the clock adds jumps by less than 1 us, which is a tenth of a percent of this.
CLOCK_MATTERS_S = 500e-6
# Cold calls that are queued behind one sleep; the sleep is lost time.
CHUNK = 16
# A call longer than this is called no more often than its samples need.
SLOW_S = 0.02
# And of one longer than this a single call says how long it takes, on the wall: how many calls make
# a sample depends on it, and no figure does.
LONG_S = 2e-3
# How often a leaking sample is retaken with twice the sleep before it is called launch-inclusive.
RETAKES = 4
# A host that needs this share of a step to ask for it sets the pace, now and then at least.
HOST_PACED = 0.8
# No kernel is shorter than this.
LEAST_S = 0.2e-6
# Least time a kernel launch takes the host; bounds how many launches a batch of calls can hold.
LAUNCH_S = 2e-6


@dataclass
class Sampler:
    """Takes samples of one callable, all in the same way."""

    watch: Stopwatch
    ring: Sequence[Call]  # the same callable over one or more sets of buffers
    quantity: Quantity
    enqueue_s: float  # what the host needs for one call
    period_s: float  # a first estimate of the call itself
    way: Literal["alone", "batch", "rotated", "enqueue", "wall"]
    calls: int  # that make one sample
    launch_inclusive: bool
    hold_s: float = 0.0  # sleep in front of queued work, for each call of it
    clock_s: float = 0.0  # what the clock adds to a span: taken off, brought up to date in a block

    def __post_init__(self) -> None:
        self._next = cycle(self.ring)
        if not self.launch_inclusive and self.way not in ("enqueue", "wall"):
            own_s = self.watch.calibration.queue_s if self.way == "alone" else 0.0
            self.hold_s = HOLD_FACTOR * (self.enqueue_s + own_s)

    @property
    def method(self) -> str:
        """How a sample is taken, in words for the row."""
        sets = len(self.ring)
        words = {
            "alone": "event pair around each call, cache flushed before it",
            "batch": f"event pair around {self.calls} calls back to back",
            "rotated": f"event pair around {self.calls} calls over {sets} sets of buffers",
            "enqueue": "host clock around one call, queue empty",
            "wall": f"host clock around {self.calls} calls and a synchronize",
        }[self.way]
        if self.watch.device.type == "cpu":
            words = words.replace("event pair", "host clock")
        elif self.way in ("alone", "batch", "rotated"):
            words += ", less the clock's own time"
            words += " in each block" if self.asks_the_clock else ""
        return words + (", launch included" if self.launch_inclusive else "")

    @property
    def asks_the_clock(self) -> bool:
        """Whether a jump of what the clock adds would show, so that every block asks for it."""
        return self.way == "alone" and self.period_s < CLOCK_MATTERS_S

    @property
    def of_host(self) -> bool:
        """Whether the host takes about as long to ask for the work as the work takes."""
        on_host = self.watch.device.type == "cpu" or self.way == "enqueue" or self.launch_inclusive
        return on_host or (self.way == "wall" and self.enqueue_s >= HOST_PACED * self.period_s)

    @property
    def sample_s(self) -> float:
        """About how long one sample takes, everything around it included."""
        flush = self.watch.calibration.flush_s
        if self.way == "alone":
            return self.period_s + flush + self.hold_s
        return self.calls * (self.period_s + self.hold_s)

    @property
    def resolution_s(self) -> float:
        """The step in which samples come, in seconds; 0 where the clock's is not known."""
        step = self.watch.calibration.resolution_s
        return step / self.calls if self.way in ("alone", "batch", "rotated") else 0.0

    def take(self, samples: int) -> list[float]:
        """Take `samples` samples, in seconds per call."""
        if self.way == "alone":
            return self._alone(samples)
        if self.way == "enqueue":
            return [self.watch.enqueue(call) for call in islice(self._next, samples)]
        take_one = self._wall if self.way == "wall" else self._batch
        return [take_one() for _ in range(samples)]

    def _alone(self, samples: int) -> list[float]:
        taken: list[float] = []
        # Fewer than the queue holds at a time: a full queue makes the host wait inside a call.
        launches = 6 + math.ceil(self.enqueue_s / LAUNCH_S)
        chunk = max(1, min(CHUNK, QUEUE_LIMIT // launches))
        while len(taken) < samples:
            calls = list(islice(self._next, min(chunk, samples - len(taken))))
            taken += self._hidden(
                lambda hold_s, calls=calls: self.watch.spans(calls, cold=True, hold_s=hold_s),
                len(calls),
            )
        return self._net(taken)

    def _batch(self) -> float:
        calls = list(islice(self._next, self.calls))
        total = self._hidden(lambda hold_s: self.watch.batch(calls, hold_s=hold_s), self.calls)
        return self._net([total])[0] / self.calls

    def _net(self, spans: list[float]) -> list[float]:
        """Spans without the clock's own time; MeasurementError where nothing is left of them."""
        _work(self.watch, median(spans), self.clock_s)
        return [span - self.clock_s for span in spans]

    def _wall(self) -> float:
        return self.watch.wall(list(islice(self._next, self.calls))) / self.calls

    def _hidden(self, take, queued: int):
        """Take samples whose dispatch stays hidden; sleep longer before them if it does not."""
        for _ in range(RETAKES):
            sample, leaked = take(HOLD_MARGIN_S * (self.hold_s > 0) + queued * self.hold_s)
            if not leaked or self.launch_inclusive:
                return sample
            self.hold_s *= 2
        self.launch_inclusive, self.hold_s = True, 0.0
        return sample


def prepare(
    watch: Stopwatch,
    ring: Sequence[Call],
    quantity: Quantity,
) -> Sampler:
    """Decide how samples of a callable are taken, from a few calls of it. A `ring` of several is
    the same callable over several sets of buffers, which for `gpu_cold` must together be larger
    than twice the L2 cache; used in turn, they need no flush. The sampler is `launch_inclusive` if
    the callable synchronizes."""
    call = ring[0]
    once_s = watch.wall(ring[:1])
    repeats = 1 if once_s > SLOW_S else 3
    enqueue_s = median(watch.enqueue(call) for _ in range(2 * repeats - 1))
    # A sleep that hides dispatch would be waited for by a call that synchronizes. A clock on the
    # host hides nothing, and what it says has launches in it whatever the call does.
    synchronizes = quantity not in OF_HOST and watch.synchronizes(call)
    # Beside a call of milliseconds, what a clock on the wall adds is next to nothing.
    rounds = repeats if once_s < LONG_S else 1
    walls = (watch.wall(ring[:1] * rounds) / rounds for _ in range(rounds))
    period_s = max(once_s if repeats == 1 else median(walls), 1e-9)
    way, calls = _way(watch, ring, quantity, period_s)
    clock_s = watch.calibration.clock_s
    if way in ("batch", "rotated") and repeats > 1:
        # The wall period of a short call is the host's; the device's own decides the batch.
        hold_s = 0.0 if synchronizes else HOLD_MARGIN_S + HOLD_FACTOR * calls * enqueue_s
        total, _ = watch.batch(list(islice(cycle(ring), calls)), hold_s=hold_s)
        period_s = _work(watch, total, clock_s) / calls
        calls = _calls(BATCH_S, period_s, enqueue_s)
    elif way == "alone" and repeats > 1:
        queued_s = enqueue_s + watch.calibration.queue_s
        hold_s = 0.0 if synchronizes else HOLD_MARGIN_S + HOLD_FACTOR * queued_s
        spans, _ = watch.spans([call] * 3, cold=True, hold_s=3 * hold_s)
        clock_s = watch.clock_now()
        period_s = _work(watch, median(spans), clock_s)
    return Sampler(
        watch, ring, quantity, enqueue_s, period_s, way, calls, synchronizes, clock_s=clock_s
    )


def _work(watch: Stopwatch, span_s: float, clock_s: float) -> float:
    """What is left of a span without the clock's own time; MeasurementError if no kernel ran."""
    left = span_s - clock_s
    # A kernel that does nothing takes 0.6 us; what is well below it is the clock's own jitter.
    if watch.device.type == "cuda" and left < LEAST_S:
        raise MeasurementError(
            f"Nothing ran on {watch.device}'s current stream that an event pair can see. Time it "
            "with quantity='host_enqueue' or 'step_wall', or check what the callable does."
        )
    return max(left, 1e-9)


def _way(
    watch: Stopwatch, ring: Sequence[Call], quantity: Quantity, period_s: float
) -> tuple[str, int]:
    if quantity == "host_enqueue":
        return "enqueue", 1
    if quantity == "step_wall":
        least = max(WALL_BATCH_S, 100 * watch.calibration.synchronize_s) / period_s
        return "wall", max(_power_of_two(least), min(WALL_CALLS, _power_of_two(2 * least)))
    if quantity == "gpu_warm":
        return "batch", _calls(BATCH_S, period_s, 0.0)
    return ("rotated", len(ring)) if len(ring) > 1 else ("alone", 1)


def _calls(least_s: float, period_s: float, enqueue_s: float) -> int:
    """Calls in a batch of at least `least_s` seconds that the launch queue can hold. A power of
    two: what a batch costs beside its calls is divided by their number, so figures of one callable
    would differ if each chose a number of its own."""
    wanted = _power_of_two(least_s / period_s)
    fits = QUEUE_LIMIT // max(1, math.ceil(enqueue_s / LAUNCH_S))
    return max(1, min(wanted, 2 ** int(math.log2(max(1, fits)))))


def _power_of_two(least: float) -> int:
    return 2 ** math.ceil(math.log2(max(1.0, least)))
