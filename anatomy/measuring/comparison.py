"""`compare`: named callables in, one honest table out."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import quantiles

import pandas as pd
import torch

from anatomy import agreement, handover, intervals, machine, tensors, units
from anatomy.errors import BadParameter, MeasurementError
from anatomy.measuring import blocks, census, gates, sampling
from anatomy.measuring.result import Comparison
from anatomy.measuring.stopwatch import Call, Stopwatch, stopwatch_for

Variants = Mapping[str, Call | Sequence[Call]]
Each = float | str | Mapping[str, float | str] | None

# A figure is narrow enough when half its 95 % interval is at most this share of it.
PRECISION = 0.01
# No interval of a time is narrower than this on either side: six comparisons of one callable in a
# row, each of which sets up its buffers anew, differ by more than the blocks of each would say.
LEAST_HALF_WIDTH = 0.002
# Bytes that may stay allocated after the blocks; caches of libraries are smaller than this.
LEAK_BYTES = 2**20
# Settling ends when two rounds of all variants differ by less than this, or after the cap; a round
# lasts so long, or so many calls of each.
SETTLED, SETTLE_ROUND_S, SETTLE_CAP_S = 0.02, 0.1, 5.0
MOST_REPEATS = 1000


def compare(
    variants: Variants,
    *,
    control: str | None = None,
    against: Mapping[str, str] | None = None,
    reference: Callable | Mapping[str, Callable] | None = None,
    allowed: float | Mapping[str, float] | None = None,
    quantity: sampling.Quantity = "gpu_cold",
    op: str = "",
    flops: Each = None,
    bytes: Each = None,
    limit: Each = None,
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
) -> Comparison:
    """Measure variants of one computation against a control, interleaved, with intervals.

    Nothing is timed until every variant agrees with its reference. All variants are then called
    until compilation, allocation and clocks have settled, and measured in the same blocks, the
    control twice: what the control differs from itself is the noise floor.

    Args:
        variants: Names and callables without arguments that return what they compute. A sequence
            of callables is the same computation over several sets of buffers, used in turn: for
            `gpu_cold` that replaces the cache flush, and short kernels need it.
        control: What the others are compared with; by default the first.
        against: For single variants another control, such as one that does the same work.
        reference: One callable, or one for each variant, giving the result in higher precision.
            Without it the control's output is the reference.
        allowed: Relative error allowed against the reference; see `agreement.ALLOWED`.
        quantity: `gpu_cold`, `gpu_warm`, `host_enqueue` or `step_wall`.
        op: The operation's name, kept in the table.
        flops: Floating-point operations of one call, for all variants or for each.
        bytes: Least bytes that one call must move, likewise.
        limit: The ceiling its share is of: `matmul fp16`, `copy`, `read`, `write`; likewise. By
            default that of products in the result's number format where there are `flops`, and
            `copy` where there are `bytes` alone.
        device: `cuda:0` or `cpu`.
        iters: Least number of samples of each variant.
        budget_s: Seconds, settling apart, after which no block is begun; a figure that is not
            narrow by then is marked `wide`.
        precision: Half width of an interval, as a share of its median, that suffices at a look; 0
            measures until the budget is spent.
        settle_cap_s: Seconds after which settling gives up, by default 5; 0 leaves it out, for
            callables that have just run.
        seed: Of the order of variants in a block.
        profile: Whether to list the kernels of each variant, outside the timed blocks; or the
            `census` of an earlier comparison of the same callables, whose names are not repeated.
        keep_samples: Whether rows keep their raw samples, as `samples_s`, in seconds: equally many
            of each block, in its order. Recordings grow by them.
        allow_foreign: Measure although another process computes on the GPU; by default only where
            the environment variable ANATOMY_ALLOW_FOREIGN is 1.
        watch: Another clock; tests pass one.

    Returns:
        The comparison; its `table` is what recordings keep.

    Raises:
        BadParameter: No variants, a control that is none of them, or an unknown quantity.
        DisagreementError: A variant computes something else.
        MeasurementError: Another process uses the GPU, or blocks were disturbed throughout.
    """
    control = _control(variants, control, against)
    if quantity not in sampling.QUANTITIES:
        known = ", ".join(sampling.QUANTITIES)
        raise BadParameter(f"quantity={quantity!r} is none of {known}.")
    watch = watch or stopwatch_for(device)
    began = watch.now()
    company = _require_alone(watch, allow_foreign)
    rings = {n: [v] if callable(v) else list(v) for n, v in variants.items()}
    first = {name: ring[0] for name, ring in rings.items()}
    references = (
        agreement.against_control(first, control)
        if reference is None
        else reference
        if isinstance(reference, Mapping)
        else dict.fromkeys(first, reference)
    )
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
        narrow_enough=lambda medians: all(
            intervals.half_width(intervals.median_interval(m)) <= precision for m in medians
        ),
        least_samples=iters,
        budget_s=budget_s - (watch.now() - began - settled_s),
        seed=seed,
        company=company,
    )
    agreement.unchanged(first, answers)
    _warn_of_leaks(watch, op, allocated, samplers)
    _warn_of_company(watch, op, quantity, preempted)
    medians = dict(zip(names, measured.medians, strict=True))
    floor = intervals.noise_floor(intervals.ratio_interval(medians[again], medians[control]))
    gpu = machine.describe(watch.device) if watch.device.type == "cuda" else None
    ceilings = gates.known_ceilings(gpu["slug"]) if gpu else None
    rows = []
    for index, name in enumerate(names):
        origin = control if name == again else name
        facing = (against or {}).get(name, control)
        row = _row(measured, index, samplers[name])
        if keep_samples:
            row["samples_s"] = [float(f"{sample:.6g}") for sample in measured.raw[index]]
        row |= {
            "op": op,
            "variant": name,
            "role": "again" if name == again else "control" if name == control else "variant",
            "control": None if name == control else facing,
            "quantity": quantity,
            "device": watch.device.type,
            "noise_floor": floor,
            "flops": _of(flops, origin),
            "bytes": _of(bytes, origin),
            "limit": _of(limit, origin)
            or _limit(_of(flops, origin), _of(bytes, origin), answers[origin].dtype),
            "error": errors[origin],
        }
        row |= _kernels(seen.get(origin), named=profile is True and name != again)
        row |= _judged(name, row, medians, facing, floor)
        row["regime"] = _regime(watch, samplers[name], row, seen.get(origin))
        row["note"] = gates.impossible(
            median_s=row["median_s"],
            flops=row["flops"],
            bytes_=row["bytes"],
            cold=quantity == "gpu_cold",
            cache_bytes=watch.flush.cache_bytes,
            limit=row["limit"],
            gpu=gpu["gpu"] if gpu else None,
            max_clock_mhz=gpu["max_sm_clock_mhz"] if gpu else None,
            measured=ceilings,
        )
        if row["note"]:
            row["verdict"] = "impossible"
        rows.append(row)
    table, warnings = pd.DataFrame(rows), tuple(watch.warnings[warned:])
    handover.hand_over(table, floor, warnings)
    return Comparison(table, floor, errors, seen, warnings, ceilings)


def settle(
    watch: Stopwatch, rings: Mapping[str, Sequence[Call]], cap_s: float | None = None
) -> float:
    """Call all variants until two rounds take equally long; returns the seconds it took.

    The first calls compile, tune, allocate and wake the clocks; none of that belongs in a steady
    figure. Gives up after `cap_s` seconds, by default `SETTLE_CAP_S`, with a warning; 0 means that
    the caller has seen to it.
    """
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


def _control(variants: Variants, control: str | None, against: Mapping[str, str] | None) -> str:
    if not variants:
        raise BadParameter("compare() needs at least one variant, as {'name': callable}.")
    control = control or next(iter(variants))
    for name in (control, *(against or {}).values(), *(against or {})):
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
    if watch.leaves_work(ring[0]):
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
    on_host = watch.device.type == "cpu" or quantity in ("host_enqueue", "step_wall")
    now = watch.preemptions()
    if on_host and before is not None and now > before:
        watch.warnings.append(
            f"{op or quantity}: the host's core was taken away {now - before} times during the "
            "blocks. Something else runs there; a quiet host would show less spread."
        )


def _of(value: Each, name: str):
    return value.get(name) if isinstance(value, Mapping) else value


def _limit(flops: float | None, bytes_: float | None, dtype: torch.dtype) -> str | None:
    """The ceiling of a call of which only the counts are known."""
    if flops:
        kind = tensors.number_format(dtype)
        return f"matmul {kind}" if kind else None
    return "copy" if bytes_ else None


def _row(measured: blocks.Measured, index: int, sampler: sampling.Sampler) -> dict:
    """The figures of one variant, without any comparison."""
    medians, raw = measured.medians[index], measured.raw[index]
    middle = intervals.median_interval(medians)
    percentiles = quantiles(raw, n=20, method="inclusive") if len(raw) > 1 else raw * 19
    limited = measured.power_limited[index]
    # Where noise is smaller than the clock's step, a median between steps can be half of one off.
    half_step_s, least_s = sampler.resolution_s / 2, LEAST_HALF_WIDTH * middle.median
    low_s = min(middle.low - half_step_s, middle.median - least_s)
    middle = replace(
        middle, low=low_s, high=max(middle.high + half_step_s, middle.median + least_s)
    )
    on_host = sampler.way in ("enqueue", "wall")
    return {
        "median_s": middle.median,
        "low_s": middle.low,
        "high_s": middle.high,
        "p5_s": percentiles[0],
        "p95_s": percentiles[-1],
        # A host that is interrupted once in a hundred calls is what people ask about.
        "p99_s": sorted(raw)[int(0.99 * len(raw))] if on_host and len(raw) >= 100 else None,
        "samples": len(raw),
        "blocks_s": [float(f"{value:.6g}") for value in medians],
        "method": sampler.method,
        "launch_inclusive": sampler.launch_inclusive,
        "wide": not middle.exact or intervals.half_width(middle) > PRECISION,
        "throttle": "unknown" if limited is None else "power-limited" if limited else "none",
        "discarded": sum(measured.discarded.values()),
        "discarded_why": ", ".join(sorted(measured.discarded)) or None,
        "enqueue_s": sampler.enqueue_s,
        **measured.conditions[index],
    }


def _judged(name, row, medians, facing, floor) -> dict:
    """Ratio to the control, and what may be said of it."""
    if row["role"] == "control":
        return {"ratio": None, "ratio_low": None, "ratio_high": None, "verdict": "control"}
    ratio = intervals.ratio_interval(medians[name], medians[facing])
    verdict = intervals.verdict(ratio, floor) if ratio.exact else "undecided"
    return {
        "ratio": ratio.median,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
        "verdict": "again" if row["role"] == "again" else verdict,
    }


def _kernels(seen: census.Census | None, *, named: bool) -> dict:
    """What the census says; the names only once, for they are long."""
    if seen is None:
        return {"kernels": None, "kernels_per_call": None, "busy_s": None}
    return {
        "kernels": list(seen.kernels) if named else None,
        "kernels_per_call": len(seen.kernels),
        "busy_s": seen.busy_s,
    }


def _regime(watch, sampler: sampling.Sampler, row: dict, seen: census.Census | None) -> str | None:
    if watch.device.type != "cuda" or row["quantity"] in ("host_enqueue", "step_wall"):
        return None
    calls = max(3, min(200, int(2e-3 / sampler.period_s)))
    period_s = watch.wall(list(sampler.ring[:1]) * calls) / calls
    return gates.regime(
        enqueue_s=sampler.enqueue_s, period_s=period_s, gap_share=seen.gap_share if seen else None
    )
