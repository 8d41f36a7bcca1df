"""`compare`: named callables in, one honest table out. `measure.comparison` takes the times. Here
they are judged: ratios to a control, what may be said of them, the share of a limit, and whether a
figure can be true at all."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from numbers import Real

import pandas as pd
import torch

from anatomy import judge
from anatomy.judge import limits, printing
from anatomy.judge.comparisons import Circumstances
from anatomy.judge.limits import Ceilings
from anatomy.machine import host
from anatomy.measure import census, sampling
from anatomy.measure.comparison import PRECISION, Variants, compare_raw, known_control
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import formats
from anatomy.record import recording
from anatomy.record.processes import handover
from anatomy.table.errors import BadParameter, lookup, told_in_python

Each = float | str | Mapping[str, float | str] | None


@dataclass(frozen=True)
class Comparison:
    """What `compare` found. The `table` has one row per variant in the order given, the control's
    duplicate last. Times end in `_s` and are seconds; `blocks_s` holds the block medians, from
    which `median_s`, its exact 95 % interval `low_s` to `high_s`, and the paired `ratio` (time over
    the control's time) with `ratio_low` and `ratio_high` follow. `samples` are raw samples."""

    table: pd.DataFrame
    noise_floor: float  # how far the control strays from itself, as a share; no less is claimed
    errors: dict[str, float]  # of each variant against its reference, relative
    census: Mapping[str, census.Census]  # kernels of each variant; empty where none were listed
    warnings: tuple[str, ...] = ()  # what the reader of the table must know, one sentence each
    ceilings: Ceilings | None = None  # None on a CPU, and on a GPU that nobody knows

    def __str__(self) -> str:
        return printing.as_text(*self._printable())

    def _repr_html_(self) -> str:
        return printing.as_html(*self._printable())

    def _printable(self) -> tuple:
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
        iters: Least number of timed calls of each variant.
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
        BadParameter: No variants, a control that is none of them, an unknown quantity, or a count
            that is no number.
        UnknownName: No machine has such a limit.
        DisagreementError: A variant computes something else.
        MeasurementError: Another process uses the GPU, or blocks were disturbed throughout.
    """
    against = against or {}
    control = known_control(variants, control, [*against.values(), *against])
    _require_counts(flops=flops, bytes=bytes)
    for name in filter(None, _several(limit)):
        lookup("limit", name, dict.fromkeys(limits.known_names()))
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
    known = _circumstances(raw.watch)
    rows = []
    for measured in raw.rows:
        name = measured["variant"]
        origin = control if name == again else name
        work = {"flops": _of(flops, origin), "bytes": _of(bytes, origin)}
        row = measured | work | {"op": op, "note": None}
        row["control"] = None if name == control else against.get(name, control)
        row["limit"] = _of(limit, origin) or _limit(**work, dtype=raw.dtypes[origin])
        rows.append(row)
    table = pd.DataFrame(judge.judged(rows, known))
    floor = float(table.noise_floor.iloc[0])
    handover.hand_over(table, floor, raw.warnings)
    return Comparison(table, floor, raw.errors, raw.census, raw.warnings, known.ceilings())


@functools.wraps(compare)
def compare_in_python(*variants, **given) -> Comparison:
    """As `compare`, with errors as a reader's own session shows them."""
    with told_in_python():
        return compare(*variants, **given)


def _require_counts(**given: Each) -> None:
    for name, counts in given.items():
        for count in _several(counts):
            if not (count is None or (isinstance(count, Real) and 0 <= count < inf)):
                raise BadParameter(f"{name}={count!r}: it must be a number, 0 or more.")


def _several(value: Each) -> list[float | str | None]:
    return [*value.values()] if isinstance(value, Mapping) else [value]


def _of(value: Each, name: str):
    return value.get(name) if isinstance(value, Mapping) else value


def _limit(flops: float | None, bytes: float | None, dtype: torch.dtype) -> str | None:
    """The ceiling of a call of which only the counts are known."""
    if flops:
        kind = formats.number_format(dtype)
        return f"matmul {kind}" if kind else None
    return "copy" if bytes else None


def _circumstances(watch: Stopwatch) -> Circumstances:
    """What is known, beside the rows, of how they were measured."""
    method = {"cache_bytes": watch.flush.cache_bytes}
    if watch.device.type != "cuda":
        return Circumstances(method=method)
    gpu = host.describe(watch.device)
    ceilings = recording.known_ceilings(gpu["slug"])
    return Circumstances(machine=gpu, method=method, ceilings=lambda: ceilings)
