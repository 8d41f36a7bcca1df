"""`compare`: named callables in, one honest table out.

`measuring.comparison` takes the times. Here they are judged: ratios to a control, what may be said
of them, the share of a limit, and whether a figure can be true at all.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pandas as pd
import torch

from anatomy import gates, handover, intervals, machine, printing, tensors
from anatomy.limits import Ceilings
from anatomy.measuring import census, sampling
from anatomy.measuring.comparison import (
    PRECISION,
    RawComparison,
    Variants,
    compare_raw,
    known_control,
)
from anatomy.measuring.patient import patient_stopwatch
from anatomy.measuring.stopwatch import Stopwatch

Each = float | str | Mapping[str, float | str] | None

# No interval of a time is narrower than this on either side: six comparisons of one callable in a
# row, each of which sets up its buffers anew, differ by more than the blocks of each would say.
LEAST_HALF_WIDTH = 0.002


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Attributes:
        table: One row per variant in the order given, the control's duplicate last. Times end in
            `_s` and are seconds; `blocks_s` holds the block medians, from which `median_s`, its
            exact 95 % interval `low_s` to `high_s`, and the paired `ratio` (time over the
            control's time) with `ratio_low` and `ratio_high` follow. `samples` are raw samples.
        noise_floor: How far the control strays from itself, as a relative number. No difference
            below it is claimed.
        errors: Relative error of each variant against its reference.
        census: The kernels of each variant, by name; empty where none were listed.
        warnings: What the reader of the table must know, one sentence each.
        ceilings: The machine's limits, measured where there is a recording of them; None on a
            CPU and on a GPU that nobody knows.
    """

    table: pd.DataFrame
    noise_floor: float
    errors: dict[str, float]
    census: Mapping[str, census.Census]
    warnings: tuple[str, ...] = ()
    ceilings: Ceilings | None = None

    def __str__(self) -> str:
        return printing.as_text(*self._told())

    def _repr_html_(self) -> str:
        return printing.as_html(*self._told())

    def _told(self) -> tuple:
        rows = self.table.astype(object).where(self.table.notna(), None).to_dict("records")
        return rows, self.noise_floor, self.warnings, self.ceilings


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
    against = against or {}
    control = known_control(variants, control, [*against.values(), *against])
    raw = compare_raw(
        variants,
        control=control,
        reference=reference,
        allowed=allowed,
        quantity=quantity,
        op=op,
        device=device,
        iters=iters,
        budget_s=budget_s,
        precision=precision,
        settle_cap_s=settle_cap_s,
        seed=seed,
        profile=profile,
        keep_samples=keep_samples,
        allow_foreign=allow_foreign,
        watch=watch,
    )
    again = raw.rows[-1]["variant"]
    gpu = machine.describe(raw.watch.device) if raw.watch.device.type == "cuda" else None
    ceilings = gates.known_ceilings(gpu["slug"]) if gpu else None
    floor = intervals.noise_floor(
        intervals.ratio_interval(raw.medians[again], raw.medians[control])
    )
    rows = []
    for measured in raw.rows:
        name = measured["variant"]
        origin = control if name == again else name
        work = {"flops": _of(flops, origin), "bytes": _of(bytes, origin)}
        row = measured | work
        row["op"], row["noise_floor"] = op, floor
        row["control"] = None if name == control else against.get(name, control)
        row["limit"] = _of(limit, origin) or _limit(**work, dtype=raw.dtypes[origin])
        rows.append(row | _judged(row, raw, gpu, ceilings))
    table = pd.DataFrame(rows)
    handover.hand_over(table, floor, raw.warnings)
    return Comparison(table, floor, raw.errors, raw.census, raw.warnings, ceilings)


@functools.wraps(compare)
def compare_patiently(variants, *, device="cuda:0", watch=None, **given) -> Comparison:
    """As `compare`, for a reader's own code: how long its calls take nobody knows."""
    watch = watch or patient_stopwatch(device)
    return compare(variants, device=device, watch=watch, **given)


def _of(value: Each, name: str):
    return value.get(name) if isinstance(value, Mapping) else value


def _limit(flops: float | None, bytes: float | None, dtype: torch.dtype) -> str | None:
    """The ceiling of a call of which only the counts are known."""
    if flops:
        kind = tensors.number_format(dtype)
        return f"matmul {kind}" if kind else None
    return "copy" if bytes else None


def _judged(row: dict, raw: RawComparison, gpu: dict | None, ceilings: Ceilings | None) -> dict:
    """What follows from what was measured, and from nothing else."""
    judged = _interval(raw.medians[row["variant"]], row["resolution_s"])
    judged |= _ratio(row, raw.medians)
    judged["regime"] = None
    if row["period_s"] is not None:
        known = {name: row[name] for name in ("enqueue_s", "period_s", "gap_share")}
        judged["regime"] = gates.regime(**known)
    judged["note"] = gates.impossible(
        median_s=judged["median_s"],
        flops=row["flops"],
        bytes_=row["bytes"],
        cold=row["quantity"] == "gpu_cold",
        cache_bytes=raw.watch.flush.cache_bytes,
        limit=row["limit"],
        gpu=gpu["gpu"] if gpu else None,
        max_clock_mhz=gpu["max_sm_clock_mhz"] if gpu else None,
        measured=ceilings,
    )
    if judged["note"]:
        judged["verdict"] = "impossible"
    return judged


def _interval(medians: list[float], resolution_s: float) -> dict:
    """The median of the blocks with its interval, and whether that is wide."""
    middle = intervals.median_interval(medians)
    # Where noise is smaller than the clock's step, a median between steps can be half of one off.
    half_step_s, least_s = resolution_s / 2, LEAST_HALF_WIDTH * middle.median
    low_s = min(middle.low - half_step_s, middle.median - least_s)
    middle = replace(
        middle, low=low_s, high=max(middle.high + half_step_s, middle.median + least_s)
    )
    return {
        "median_s": middle.median,
        "low_s": middle.low,
        "high_s": middle.high,
        "wide": not middle.exact or intervals.half_width(middle) > PRECISION,
    }


def _ratio(row: dict, medians: Mapping[str, list[float]]) -> dict:
    """Ratio to the control, and what may be said of it."""
    if row["role"] == "control":
        return {"ratio": None, "ratio_low": None, "ratio_high": None, "verdict": "control"}
    ratio = intervals.ratio_interval(medians[row["variant"]], medians[row["control"]])
    verdict = intervals.verdict(ratio, row["noise_floor"]) if ratio.exact else "undecided"
    return {
        "ratio": ratio.median,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
        "verdict": "again" if row["role"] == "again" else verdict,
    }
