"""Blocks: every variant once, in balanced order, again and again, and looks at fixed counts. A
clock that drifts by a percent during a measurement makes whichever variant comes later look
different. In a block all variants are measured within milliseconds of each other, and over the
blocks each comes equally often before and after each other. What a block disturbed by a recorded
cause says is thrown away, counted, and measured again; an outlier without a cause is kept."""

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, median_grouped

from anatomy.measure import turns
from anatomy.measure.sampling import Sampler
from anatomy.table.errors import MeasurementError

# When to look whether the figures are narrow enough. Looking after every block would stop at a
# lucky moment, and the intervals would then cover less often than they say. An interval narrows
# with the root of the number of blocks: one that even the last look could not make narrow enough
# is not waited for. How wide it is, a dozen blocks tell to within a half.
LOOKS = (12, 24, 48)
OUT_OF_REACH = 1.5
# A spent budget ends the blocks once the samples asked for are taken. It ends them earlier only if
# single samples up to the first look would take so many budgets; this many blocks are taken anyway,
# and a figure from fewer than 6 of them says `wide`.
PATIENCE, LEAST_BLOCKS = 4, 3
# A variant's part of one block lasts about this long, unless more samples are asked for.
PART_S = 4e-3
# Counters which, if they rise during a block, make its figures somebody else's.
INVALIDATING = ("software_thermal", "hardware_thermal", "power_brake", "sync_boost")


@dataclass
class Measured:
    """What the blocks gave. Times in seconds per call, one list per variant, in order."""

    medians: list[list[float]]  # [i][b] is that of variant i's samples in block b
    raw: list[list[float]]  # all samples
    discarded: Counter = field(default_factory=Counter)  # thrown-away blocks by cause
    # Whether the power cap held a variant back; None where no counter tells.
    power_limited: list[bool | None] = field(default_factory=list)
    conditions: list[dict[str, float | None]] = field(default_factory=list)  # readings beside it

    @property
    def blocks(self) -> int:
        """How many blocks were kept."""
        return len(self.medians[0])


def balanced_orders(count: int, seed: int) -> list[list[int]]:
    """Orders of `count` variants in which each follows each other equally often, shuffled. `count`
    orders if that is even, twice as many if it is odd. Source: E. J. Williams 1949, Australian
    Journal of Scientific Research A 2, 149-168."""
    first = [0]
    for step in range(1, count):
        first.append((first[-1] + (step if step % 2 else -step)) % count)
    orders = [[(place + shift) % count for place in first] for shift in range(count)]
    if count % 2:
        orders += [order[::-1] for order in orders]
    random.Random(seed).shuffle(orders)
    return orders


def run(
    samplers: Mapping[str, Sampler],
    *,
    widest: Callable[[list[list[float]]], float],
    precision: float,
    least_calls: int,
    budget_s: float,
    seed: int,
    looks: Sequence[int] = LOOKS,
    company: int | None = None,
) -> Measured:
    """Measure all variants in interleaved blocks until they are narrow enough, or time is up. The
    control stands twice among the `samplers`. After as many blocks as `looks` says, `widest` is
    asked, with one list of block medians per variant, for the widest relative half-width; one up to
    `precision` ends the blocks, as does one that is out of its reach. Each variant is called
    `least_calls` times. After `budget_s` seconds no block is begun; but see `PATIENCE`. `company`
    counts other processes on the device that were there before and are allowed. MeasurementError
    where more blocks are thrown away than kept."""
    names, samplers = list(samplers), list(samplers.values())
    watch = samplers[0].watch
    count = len(samplers)
    orders = balanced_orders(count, seed)
    # Many short parts rather than few long ones: what is compared is then closer in time.
    least = [-(-least_calls // s.calls) for s in samplers]
    per_block = [
        max(-(-samples // looks[-1]), round(PART_S / s.sample_s), 1)
        for samples, s in zip(least, samplers, strict=True)
    ]
    patient = looks[0] * sum(s.sample_s for s in samplers) <= PATIENCE * budget_s
    measured = Measured([[] for _ in samplers], [[] for _ in samplers])
    seen: list[list[dict]] = [[] for _ in samplers]
    caps: list[list[float]] = [[] for _ in samplers]
    started, waited_s = watch.now(), turns.waited_s
    attempts = 0

    def spent_s() -> float:
        """Seconds since it began, without those in which another process had its turn."""
        return watch.now() - started - (turns.waited_s - waited_s)

    while measured.blocks < looks[-1]:
        order = orders[attempts % len(orders)]
        with turns.turn(alone=any(sampler.of_host for sampler in samplers)):
            parts, causes = _block(names, samplers, order, per_block, company)
        attempts += 1
        if causes:
            measured.discarded.update(causes)
            late = spent_s() > PATIENCE * budget_s
            _refuse_if_hopeless(measured, attempts, looks[0], late=late)
            continue
        for index, (samples, after, capped) in parts.items():
            measured.medians[index].append(_middle(samples, samplers[index]))
            measured.raw[index] += samples
            if after:
                seen[index].append(after)
                caps[index].append(capped)
        enough = measured.blocks >= looks[0] and all(
            len(samples) >= wanted for samples, wanted in zip(measured.raw, least, strict=True)
        )
        if enough and measured.blocks in looks:
            half_width = widest(measured.medians)
            within_reach = OUT_OF_REACH * precision * math.sqrt(looks[-1] / measured.blocks)
            if half_width <= precision or 0 < within_reach < half_width:
                break
        spent = spent_s() > budget_s
        if spent and (enough or (not patient and measured.blocks >= min(LEAST_BLOCKS, looks[0]))):
            break
    measured.power_limited = [any(c) if c and None not in c else None for c in caps]
    measured.conditions = [_typical(readings) for readings in seen]
    return measured


def _middle(samples: list[float], sampler: Sampler) -> float:
    """The median of one part's samples, between the steps of the clock where it counts in steps.
    Most samples of a short kernel fall on one or two steps, and their plain median jumps between
    them; how many lie on either side says where in the step the median is."""
    step = sampler.resolution_s if sampler.way == "alone" else 0.0
    return median_grouped(samples, interval=step) if step else median(samples)


def _block(names, samplers, order, per_block, company):
    """Every variant's part of one block, and the causes (if any) for throwing it away."""
    watch = samplers[0].watch
    causes: set[str] = set()
    parts = {}
    if asking := [sampler for sampler in samplers if sampler.asks_the_clock]:
        clock_s = watch.clock_now()
        for sampler in asking:
            sampler.clock_s = clock_s
    counts = watch.disturbances()
    if company is not None:  # who came before this block, and stayed, disturbs it as well
        counts["foreign processes"] = company
    before = watch.conditions()
    for index in order:
        try:
            samples = samplers[index].take(per_block[index])
        except Exception as error:
            error.add_note(f"This was raised while {names[index]!r} was being measured.")
            raise
        # Reading takes about half a millisecond, in which the GPU rests: a product that the power
        # cap would slow down in steady use runs at a higher clock here, and a steadier one.
        after = watch.conditions()
        causes |= {name for name in INVALIDATING if _moved(before, after, name)}
        parts[index] = (samples, after, _moved(before, after, "power_cap"))
        before = after
    for name, value in watch.disturbances().items():
        if value is not None and counts[name] is not None and value > counts[name]:
            causes.add(name)
    return parts, sorted(causes)


def _moved(before: dict | None, after: dict | None, counter: str) -> bool | None:
    """Whether a throttle counter rose between two readings; None where there is no counter."""
    old = ((before or {}).get("throttle") or {}).get(counter)
    new = ((after or {}).get("throttle") or {}).get(counter)
    return None if old is None or new is None else new > old


def _refuse_if_hopeless(measured: Measured, attempts: int, least: int, *, late: bool) -> None:
    thrown = attempts - measured.blocks
    if thrown > max(least, measured.blocks) or (
        # A single disturbed block is no reason to give up, however little time there was.
        late and thrown > max(LEAST_BLOCKS, measured.blocks)
    ):
        causes = ", ".join(f"{cause} ({n})" for cause, n in measured.discarded.most_common())
        raise MeasurementError(
            f"{thrown} of {attempts} blocks were disturbed: {causes}. No figure can be given; "
            "remove the cause (cool the GPU, stop the other process, fix shapes) and try again."
        )


def _typical(readings: list[dict]) -> dict[str, float | None]:
    names = ("sm_clock_mhz", "power_w", "temperature_c")
    values = {n: [r[n] for r in readings if r.get(n) is not None] for n in names}
    return {name: median(found) if found else None for name, found in values.items()}
