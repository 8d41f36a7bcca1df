"""Measures one step of anything and says what holds it back: `diagnose`. Times come from the
stopwatch; what host and GPU did meanwhile, from a profile taken beside."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from torch.profiler import record_function

from anatomy.diagnosis import bottleneck, op_counts, profiles
from anatomy.diagnosis.bottleneck import Quantities, Verdict
from anatomy.judge import limits
from anatomy.machine import host
from anatomy.measure import census, stopwatch_for
from anatomy.measure.comparison import settle
from anatomy.measure.stopwatch import Stopwatch
from anatomy.record import recording
from anatomy.table import intervals, units
from anatomy.table.errors import BadParameter, MeasurementError

# Blocks of steps timed one after the other; their exact 95 % interval leaves two out on each side.
BLOCKS = 12
ENQUEUES = 9  # host times of single steps, each from an empty queue
# A block of steps lasts at least this long, so that the synchronize behind it is a small part.
BLOCK_S = 10e-3
TOP = 5


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found; it prints itself."""

    name: str  # of what was diagnosed
    device: str  # the GPU's name, or `cpu`
    verdict: Verdict
    quantities: Quantities
    period: intervals.Interval  # of a step, in seconds, with its 95 % interval
    # What the GPU ran longest (on a CPU, operators): name, share of its busy time, how many a step.
    kernels: tuple[tuple[str, float, float], ...] = ()
    waits: tuple[tuple[str, float], ...] = ()  # what made the host wait, and how often a step
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(_printed_lines(self))

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        period = self.period
        return {
            "name": self.name,
            "device": self.device,
            **self.verdict.as_dict(),
            "period_s": period.median,
            "period_low_s": period.low,
            "period_high_s": period.high,
            "quantities": dict(vars(self.quantities)),
            "shares": self.quantities.shares(),
            "kernels": [
                {"name": name, "share": share, "per_step": count}
                for name, share, count in self.kernels
            ],
            "waits": [{"name": name, "per_step": count} for name, count in self.waits],
            "warnings": list(self.warnings),
        }


def diagnose(
    step: Callable[..., object],
    *,
    inputs: Iterable[Any] | Callable[[], Iterator[Any]] | None = None,
    device: str = "cuda:0",
    name: str = "step",
    settle_cap_s: float = 2.0,
    block_s: float = BLOCK_S,
    watch: Stopwatch | None = None,
) -> Diagnosis:
    """Measure one step and name its bottleneck.

    The step is called some hundred times, or for some seconds, and does whatever it does each time:
    a training step trains.

    Args:
        step: One step: a callable without arguments, or of one batch where there are `inputs`. What
            it returns is ignored.
        inputs: Batches, such as a DataLoader, or a function that begins to yield them; getting one
            is timed as a part of the step. They begin anew when they end.
        device: `cuda:0`, or `cpu` in a reduced way: there only `input` can be told.
        name: What it is called in what is printed.
        settle_cap_s: Seconds after which the warm-up gives up.
        block_s: Least length of one block of steps, of which there are twelve.
        watch: Another clock; tests pass one.

    Raises:
        DeviceError: The device is not there.
        BadParameter: The inputs can't be iterated.
        MeasurementError: They have no batch, or ended and can't begin anew.
    """
    watch = watch or stopwatch_for(device)
    on_gpu = watch.device.type == "cuda"
    feed = _Feed(inputs, watch) if inputs is not None else None

    def full() -> None:
        if feed is None:
            step()
        else:
            step(feed.next())

    earlier = len(watch.warnings)
    settle(watch, {name: [full]}, settle_cap_s)
    period, input_s = _period(watch, full, feed, block_s)
    enqueue_s = _enqueue(watch, full, feed)
    seen = profiles.Profile()
    found: list[str] = []
    try:
        seen = profiles.take(watch, full, period.median, feed.mark if feed else lambda on: None)
    except RuntimeError as error:
        found.append(f"No profile could be taken: {str(error).splitlines()[0]}")
    if on_gpu and seen.steps and not seen.device:
        found.append("The profiler saw nothing run on the GPU.")
    synchronizes = watch.synchronizes(full) if on_gpu else None
    counted = op_counts.count(full, watch.device.type)  # last, for it may compile the step anew
    if counted.failed:
        found.append(f"Operations and bytes could not be counted. {counted.failed}")
    ceilings = recording.known_ceilings(host.describe(watch.device)["slug"]) if on_gpu else None
    least, unknown = _least_times(counted, ceilings) if on_gpu else ({}, "")
    found += [unknown] if unknown else []
    quantities = Quantities(
        period_s=period.median,
        enqueue_s=enqueue_s,
        input_s=input_s,
        synchronizes=synchronizes,
        flops=None if counted.failed else counted.total_flops,
        bytes=None if counted.failed else counted.bytes,
        device=watch.device.type,
        **_quantities_of_profile(seen, period.median),
        **least,
    )
    where = host.describe(watch.device)["gpu"] if on_gpu else "cpu"
    return Diagnosis(
        name=name,
        device=where or "cpu",
        verdict=bottleneck.judge(quantities),
        quantities=quantities,
        period=period,
        kernels=_top(seen.device or seen.operators, seen.steps),
        waits=tuple((what, n / seen.steps) for what, n in seen.waits.most_common(TOP)),
        warnings=(*watch.warnings[earlier:], *found),
    )


class _Feed:
    """Batches without end, and the time that getting them took."""

    def __init__(self, source: Any, watch: Stopwatch) -> None:
        if not callable(source) and not hasattr(source, "__iter__"):
            raise BadParameter(
                f"inputs is a {type(source).__name__}; give batches that can be iterated, or a "
                "function that yields them."
            )
        self.begin = source if callable(source) else lambda: iter(source)
        self.watch, self.spent_s, self.marked = watch, 0.0, False
        self.batches: Iterator[Any] | None = None

    def mark(self, on: bool) -> None:
        """Whether getting a batch is marked in a profile that is being taken."""
        self.marked = on

    def next(self) -> Any:
        """The next batch."""
        began = self.watch.now()
        if self.marked:
            with record_function(profiles.INPUT):
                batch = self._next()
        else:
            batch = self._next()
        self.spent_s += self.watch.now() - began
        return batch

    def _next(self) -> Any:
        for _ in range(2):
            if self.batches is None:
                self.batches = iter(self.begin())
            try:
                return next(self.batches)
            except StopIteration:
                self.batches = None
        raise MeasurementError(
            "The batches ended, and beginning anew gave none. Give a DataLoader, a list, or a "
            "function that yields batches, instead of an iterator that is used up."
        )


def _period(
    watch: Stopwatch, full: Callable[[], None], feed: _Feed | None, block_s: float
) -> tuple[intervals.Interval, float]:
    """The steady period of a step, and the host time of its input, seconds."""
    first = watch.wall([full])
    steps = max(1, min(10_000, int(block_s / max(first, 1e-9))))
    spent = feed.spent_s if feed else 0.0
    blocks = [watch.wall([full] * steps) / steps for _ in range(BLOCKS)]
    input_s = (feed.spent_s - spent) / (steps * BLOCKS) if feed else 0.0
    return intervals.median_interval(blocks), input_s


def _enqueue(watch: Stopwatch, full: Callable[[], None], feed: _Feed | None) -> float:
    """Host time of a step from an empty queue, its input apart, seconds."""
    taken = []
    for _ in range(ENQUEUES):
        before = feed.spent_s if feed else 0.0
        whole = watch.enqueue(full)
        taken.append(max(whole - ((feed.spent_s - before) if feed else 0.0), 0.0))
    return median(taken)


def _quantities_of_profile(seen: profiles.Profile, period_s: float) -> dict[str, float | None]:
    if not seen.steps or not seen.device:
        return {}
    # A profiler slows the host, so its waits are taken as shares of the profiled time.
    slowed = period_s / seen.window_s if seen.window_s else 0.0
    busy = census.busy(seen.device)
    copies = [span for span in seen.device if _is_copy(span[2])]
    talks = [span for span in seen.device if "nccl" in span[2].lower()]
    return {
        "profiled_s": seen.window_s / seen.steps,
        "busy_s": busy / seen.steps,
        "copy_s": _time_alone(seen.device, copies, busy) / seen.steps,
        "communication_s": _time_alone(seen.device, talks, busy) / seen.steps,
        "kernels": len(seen.device) / seen.steps,
        "wait_s": seen.wait_s * slowed,
        "transfer_wait_s": seen.transfer_s * slowed,
    }


def _is_copy(name: str) -> bool:
    return name.startswith(("Memcpy HtoD", "Memcpy DtoH"))


def _time_alone(device: list[profiles.Event], some: list[profiles.Event], busy: float) -> float:
    """Time in which nothing but `some` of what the device does runs."""
    if not some:
        return 0.0
    chosen = set(some)
    return busy - census.busy([span for span in device if span not in chosen])


def _least_times(
    counted: op_counts.Counted, ceilings: limits.Ceilings | None
) -> tuple[dict[str, float], str]:
    """Least times of what was counted at the machine's ceilings, and what is not known."""
    if counted.failed:
        return {}, ""
    if not counted.bytes:
        return {}, "No operator was seen to be dispatched (a CUDA graph?), so none was counted."
    copy = ceilings.get("copy") if ceilings else None
    if copy is None:
        return {}, (
            "The ceilings of this machine are not known, so compute and memory can't be told "
            "apart. Measure them: pytorch-gpu-anatomy limits --save recordings"
        )
    found, missing = {"memory_s": counted.bytes / copy.value}, []
    compute_s = 0.0
    for kind, work in counted.flops.items():
        peak = ceilings.get(f"matmul {kind}")
        if peak is None:
            missing.append(kind)
        else:
            compute_s += work / peak.value
    if missing:
        return found, f"No ceiling of products in {', '.join(missing)} is known."
    return found | {"compute_s": compute_s}, ""


def _top(events: list[profiles.Event], steps: int) -> tuple[tuple[str, float, float], ...]:
    """The names that took longest: share of all time, and how many a step."""
    times: Counter = Counter()
    counts: Counter = Counter()
    for begin, end, name in events:
        times[name] += end - begin
        counts[name] += 1
    whole = sum(times.values())
    return tuple(
        (name, time / whole if whole else 0.0, counts[name] / steps)
        for name, time in times.most_common(TOP)
    )


def _printed_lines(found: Diagnosis) -> list[str]:
    verdict, period = found.verdict, found.period
    took = units.seconds_range(period.median, period.low, period.high)
    first = f"bottleneck: {verdict.cause}"
    if verdict.second:
        first += f"; second most likely: {verdict.second}"
    if not verdict.certain and verdict.cause != bottleneck.UNKNOWN:
        first += " (in doubt)"
    lines = [f"{found.name} on {found.device}: {took} a step", first]
    lines += [f"  {sentence}" for sentence in verdict.evidence]
    lines.append(f"try next: {verdict.advice}")
    if found.kernels:
        what = "operators, by their own time" if found.device == "cpu" else "kernels and copies"
        lines.append(f"longest {what}:")
        for name, share, count in found.kernels:
            short = name if len(name) <= 90 else f"{name[:87]}..."
            lines.append(f"  {units.percent(share):>6}  {units.significant(count):>5} ×  {short}")
    if found.waits:
        each = ", ".join(f"{name} {units.significant(count)} ×" for name, count in found.waits)
        lines.append(f"waits a step: {each}")
    return lines + [f"warning: {warning}" for warning in found.warnings]
