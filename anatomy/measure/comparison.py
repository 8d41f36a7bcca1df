"""Variants of one computation, measured side by side: what clocks, counters and checks said."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import quantiles

import torch

from anatomy.measure import blocks, census, sampling
from anatomy.measure.clock import Call
from anatomy.measure.stopwatch import Stopwatch, stopwatch_for
from anatomy.numerics import agreement
from anatomy.table import intervals, units
from anatomy.table.errors import BadParameter, MeasurementError

Variants = Mapping[str, Call | Sequence[Call]]

# A figure is narrow enough when half its 95 % interval is at most this share of it.
PRECISION = 0.01
# Bytes that may stay allocated after the blocks; caches of libraries are smaller than this.
LEAK_BYTES = 2**20
# Settling ends when two rounds of all variants differ by less than this, or after the cap; a round
# lasts so long, or so many calls of each.
SETTLED, SETTLE_ROUND_S, SETTLE_CAP_S = 0.02, 0.05, 5.0
MOST_REPEATS = 1000
# The 99th percentile of fewer samples than this is their largest.
LEAST_SAMPLES_P99 = 100
# The steady period is that of so many seconds of calls, but of so few calls at least, or so many.
PERIOD_S, LEAST_CALLS, MOST_CALLS = 2e-3, 3, 200


@dataclass(frozen=True)
class RawComparison:
    """What was measured, with nothing concluded from it. `rows` has one per variant in the order
    given, the control's duplicate last. Times end in `_s` and are seconds; `blocks_s` are the
    medians of the blocks, of which every statistic is made on reading. All else is by variant."""

    rows: list[dict]
    medians: dict[str, list[float]]  # of the blocks, not rounded
    dtypes: dict[str, torch.dtype]  # of the answer
    errors: dict[str, float]  # relative, against its reference
    census: Mapping[str, census.Census]  # empty where no kernels were listed
    warnings: tuple[str, ...]  # what the reader of the rows must know, one sentence each
    watch: Stopwatch  # the clock that took them


def compare_raw(
    variants: Variants,
    *,
    control: str | None = None,
    reference: Callable | Mapping[str, Callable] | None = None,
    allowed: float | Mapping[str, float] | None = None,
    quantity: sampling.Quantity = "gpu_cold",
    op: str = "",
    device: str | torch.device = "cuda:0",
    iters: int = 12,
    budget_s: float = 30.0,
    precision: float = PRECISION,
    settle_cap_s: float | None = None,
    seed: int = 0,
    profile: bool | Mapping[str, census.Census] = True,
    keep_samples: bool = False,
    allow_foreign: bool | None = None,
    watch: Stopwatch | None = None,
) -> RawComparison:
    """Measure as `anatomy.comparison.compare` does, with its arguments, and conclude nothing."""
    control = known_control(variants, control)
    if quantity not in sampling.QUANTITIES:
        known = ", ".join(sampling.QUANTITIES)
        raise BadParameter(f"quantity={quantity!r} is none of {known}.")
    watch = watch or stopwatch_for(device)
    began = watch.now()
    company = _require_alone(watch, allow_foreign)
    rings = {n: [v] if callable(v) else list(v) for n, v in variants.items()}
    first = {name: ring[0] for name, ring in rings.items()}
    if reference is None:
        references = agreement.against_control(first, control)
    elif isinstance(reference, Mapping):
        references = reference
    else:
        references = dict.fromkeys(first, reference)
    errors = agreement.check(first, references, allowed)
    answers = {name: agreement.fingerprint(call, name) for name, call in first.items()}
    warned = len(watch.warnings)
    settled_s = settle(watch, rings, settle_cap_s)
    seen = profile if isinstance(profile, Mapping) else {}
    if profile is True:
        seen = census.take(first, watch, 1 if settled_s > SETTLE_CAP_S else census.CALLS) or {}

    again = f"{control} (again)"
    names = [*rings, again]
    samplers = {name: _prepared(watch, name, ring, quantity) for name, ring in rings.items()}
    # The duplicate is sampled exactly as the control is, or it would measure the method instead.
    samplers[again] = replace(samplers[control])
    allocated, preempted = watch.allocated(), watch.preemptions()
    measured = blocks.run(
        samplers,
        widest=lambda medians: max(
            intervals.half_width(intervals.median_interval(m)) for m in medians
        ),
        precision=precision,
        least_calls=iters,
        budget_s=budget_s - (watch.now() - began - settled_s),
        seed=seed,
        company=company,
    )
    agreement.unchanged(first, answers)
    _warn_of_leaks(watch, op, allocated, samplers)
    _warn_of_company(watch, op, quantity, preempted)
    rows = []
    for index, name in enumerate(names):
        origin = control if name == again else name
        row = {
            "variant": name,
            "role": "again" if name == again else "control" if name == control else "variant",
            "quantity": quantity,
            "device": watch.device.type,
            "error": errors[origin],
            **_figures(measured, index, samplers[name]),
            **_kernels(seen.get(origin), named=profile is True and name != again),
            "period_s": _period_s(watch, samplers[name]),
        }
        if keep_samples:
            row["samples_s"] = [float(f"{sample:.6g}") for sample in measured.raw[index]]
        rows.append(row)
    return RawComparison(
        rows,
        medians=dict(zip(names, measured.medians, strict=True)),
        dtypes={name: answer.dtype for name, answer in answers.items()},
        errors=errors,
        census=seen,
        warnings=tuple(watch.warnings[warned:]),
        watch=watch,
    )


def settle(
    watch: Stopwatch, rings: Mapping[str, Sequence[Call]], cap_s: float | None = None
) -> float:
    """Call all variants until two rounds take equally long; returns the seconds it took. The first
    calls compile, tune, allocate and wake the clocks; none of that belongs in a steady figure.
    Gives up after `cap_s` seconds, by default `SETTLE_CAP_S`, with a warning; 0 means that the
    caller has seen to it."""
    cap_s = SETTLE_CAP_S if cap_s is None else cap_s
    if not cap_s:
        return 0.0
    started = watch.now()
    calls = [call for ring in rings.values() for call in ring]
    last = None
    repeats = 1
    while watch.now() - started < cap_s:
        took = watch.wall(calls * repeats) / repeats
        if took * repeats < SETTLE_ROUND_S and repeats < MOST_REPEATS:
            wanted = int(repeats * SETTLE_ROUND_S / max(took * repeats, 1e-9))
            # Step by step: a callable that is fast at first may be slow later.
            repeats = min(MOST_REPEATS, 10 * repeats, max(repeats + 1, wanted))
            continue
        if last and abs(took - last) <= SETTLED * last:
            return watch.now() - started
        last = took
    watch.warnings.append(
        f"{', '.join(rings)}: not steady after {cap_s:g} s; two rounds still differ by "
        f"more than {SETTLED:.0%}"
    )
    return watch.now() - started


def known_control(variants: Variants, control: str | None, others: Sequence[str] = ()) -> str:
    """The name of the control, by default the first variant's; BadParameter where there are no
    variants, or it or one of `others` is none of theirs."""
    if not variants:
        raise BadParameter("compare() needs at least one variant, as {'name': callable}.")
    control = control or next(iter(variants))
    for name in (control, *others):
        if name not in variants:
            raise BadParameter(f"control {name!r} is not among the variants {', '.join(variants)}.")
    return control


def _require_alone(watch: Stopwatch, allowed: bool | None) -> int | None:
    """How many other processes compute on the device; None where nobody can tell."""
    if allowed is None:
        allowed = os.environ.get("ANATOMY_ALLOW_FOREIGN") == "1"
    others = watch.disturbances().get("foreign processes")
    if others and not allowed:
        raise MeasurementError(
            f"{others} other process{'es' if others > 1 else ''} computing on {watch.device} would "
            "be measured too: stop them, or allow them with allow_foreign=True."
        )
    return others


def _prepared(watch: Stopwatch, name: str, ring, quantity) -> sampling.Sampler:
    # An event sees one stream. The host's clock waits for all of the device, at a sample's end or
    # before it begins.
    if quantity not in sampling.OF_HOST and watch.leaves_work(ring[0]):
        raise MeasurementError(
            f"{name} leaves work on another stream, which no event on this one can time. Let the "
            "current stream wait for it: torch.cuda.current_stream().wait_stream(other)."
        )
    return sampling.prepare(watch, ring, quantity)


def _warn_of_leaks(watch: Stopwatch, op: str, before: int | None, samplers: Mapping) -> None:
    after = watch.allocated()
    if before is not None and after - before > LEAK_BYTES:
        watch.warnings.append(
            f"{op or ', '.join(samplers)}: {units.byte_count(after - before)} more were allocated "
            "after the blocks than before. Something keeps its outputs; the allocator's work for "
            "them is in the figures."
        )


def _warn_of_company(watch: Stopwatch, op: str, quantity: str, before: int | None) -> None:
    on_host = watch.device.type == "cpu" or quantity in sampling.OF_HOST
    now = watch.preemptions()
    if on_host and before is not None and now > before:
        watch.warnings.append(
            f"{op or quantity}: the host's core was taken away {now - before} times during the "
            "blocks. Something else runs there; a quiet host would show less spread."
        )


def _figures(measured: blocks.Measured, index: int, sampler: sampling.Sampler) -> dict:
    raw = measured.raw[index]
    percentiles = quantiles(raw, n=20, method="inclusive") if len(raw) > 1 else raw * 19
    limited = measured.power_limited[index]
    # A host that is interrupted once in a hundred calls is what people ask about.
    tail = sampler.way in ("enqueue", "wall") and len(raw) >= LEAST_SAMPLES_P99
    return {
        "blocks_s": [float(f"{value:.6g}") for value in measured.medians[index]],
        "resolution_s": sampler.resolution_s,
        "p5_s": percentiles[0],
        "p95_s": percentiles[-1],
        "p99_s": sorted(raw)[int(0.99 * len(raw))] if tail else None,
        "samples": len(raw),
        "method": sampler.method,
        "launch_inclusive": sampler.launch_inclusive,
        "throttle": "unknown" if limited is None else "power-limited" if limited else "none",
        "discarded": sum(measured.discarded.values()),
        "discarded_why": ", ".join(sorted(measured.discarded)) or None,
        "enqueue_s": sampler.enqueue_s,
        **measured.conditions[index],
    }


def _kernels(seen: census.Census | None, *, named: bool) -> dict:
    """What the census says; the names only once, for they are long."""
    if seen is None:
        return dict.fromkeys(("kernels", "kernels_per_call", "busy_s", "gap_share"))
    return {
        "kernels": list(seen.kernels) if named else None,
        "kernels_per_call": len(seen.kernels),
        "busy_s": seen.busy_s,
        "gap_share": seen.gap_share,
    }


def _period_s(watch: Stopwatch, sampler: sampling.Sampler) -> float | None:
    """Seconds from call to call as the host sees it, back to back, which is longer than a call
    takes the GPU where the host sets the pace; None where that is no question."""
    if watch.device.type != "cuda" or sampler.quantity in sampling.OF_HOST:
        return None
    calls = max(LEAST_CALLS, min(MOST_CALLS, int(PERIOD_S / sampler.period_s)))
    return watch.wall(list(sampler.ring[:1]) * calls) / calls
