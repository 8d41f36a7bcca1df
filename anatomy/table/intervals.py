"""Medians, intervals, ratios and verdicts: the arithmetic of a comparison, and nothing else. Every
interval here is one of order statistics. It assumes that the blocks are independent draws from one
distribution, and nothing about the shape of that distribution: timings are skewed and have several
modes, so an interval from a mean and a standard deviation would be wrong."""

from dataclasses import dataclass
from math import comb, exp, inf, isfinite, isnan

import numpy as np
from numpy.typing import ArrayLike

from anatomy.table.errors import MeasurementError

# An effect this small is never claimed: on an idle GPU two copies of one callable differ by up to
# 0.04 % through placement alone, and by up to 0.6 % in the worst pair of processes we saw.
SMALLEST_EFFECT = 0.005
# Two variants are the same when the whole interval of their ratio is this close to 1.
SAME_WITHIN = 0.01
# Below this effect, one process proves nothing: figures move by 2 to 3 % from process to process.
ONE_PROCESS_EFFECT = 0.02
SEVERAL_PROCESSES = 3


@dataclass(frozen=True)
class Interval:
    """A median with its confidence interval, all in the unit of the values."""

    median: float
    low: float
    high: float
    # False where there were too few values for the confidence asked for: `low` and `high` are then
    # the smallest and the largest value, and prove nothing.
    exact: bool = True
    coverage: float = 0.95  # probability that `low` and `high` enclose the true median


def coverage(count: int, rank: int) -> float:
    """Probability that the `rank`-th smallest and largest of `count` values enclose the median. The
    median is that of the continuous distribution they were drawn from. It fails only if fewer than
    `rank` values lie on one side of it. How many do is binomial with p = 1/2 whatever the
    distribution (for a discrete one this is a lower bound). Source: David and Nagaraja, Order
    Statistics, 3rd ed. (2003), section 7.1."""
    outside = sum(comb(count, below) for below in range(rank))
    return 1.0 - 2.0 * outside / 2.0**count


def median_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Median of `values`, in any order, and its exact order-statistic interval. Of 12 values the
    interval runs from the 3rd to the 10th and covers the median with 96.1 %. Ranks are whole
    numbers, so the true coverage is at least `confidence`, mostly a little more. Values may be
    infinite; a NaN, or no value at all, raises a MeasurementError."""
    ordered = np.sort(np.asarray(values, dtype=np.float64).ravel())
    count = len(ordered)
    if count == 0:
        raise MeasurementError("There are no values to take a median of. Measure a block first.")
    if isnan(ordered[-1]):  # sort puts NaN last
        raise MeasurementError(
            f"{int(np.isnan(ordered).sum())} of {count} values are NaN, so they have no median. "
            "Find the block that measured nothing."
        )
    middle = count // 2
    median = float(ordered[middle])
    if count % 2 == 0 and ordered[middle - 1] != ordered[middle]:
        median = float((ordered[middle - 1] + ordered[middle]) / 2)
    rank = 0  # the widest choice of ranks that still covers, counted from 1
    while rank < count // 2 and coverage(count, rank + 1) >= confidence:
        rank += 1
    used = max(rank, 1)
    covered = coverage(count, used) if count > 1 else 0.0
    low, high = float(ordered[used - 1]), float(ordered[count - used])
    return Interval(median, low, high, exact=rank > 0, coverage=covered)


def ratio_interval(numerators: ArrayLike, denominators: ArrayLike) -> Interval:
    """Ratio of two variants measured in the same blocks, numerator over denominator. The ratio is
    taken block by block, so that a clock which drifts from block to block cancels; median and
    interval are those of the logarithms, so that swapping the two variants gives the reciprocals.
    Blocks that do not pair up, or a time that is not positive and finite, raise a
    MeasurementError."""
    above = np.asarray(numerators, dtype=np.float64).ravel()
    below = np.asarray(denominators, dtype=np.float64).ravel()
    if len(above) != len(below):
        raise MeasurementError(
            f"A ratio is paired block by block, but there are {len(above)} blocks over "
            f"{len(below)}. Measure both variants in the same blocks."
        )
    for times in (above, below):
        wrong = times[~(np.isfinite(times) & (times > 0))]
        if len(wrong):
            raise MeasurementError(
                f"A ratio needs positive, finite times in every block; got {float(wrong[0])!r}."
            )
    logs = median_interval(np.log(above) - np.log(below))
    return Interval(exp(logs.median), exp(logs.low), exp(logs.high), logs.exact, logs.coverage)


def noise_floor(ratio: Interval) -> float:
    """The A/A floor: how far from 1 the interval of a ratio of equals reaches, as a share of 1."""
    return max(abs(ratio.low - 1.0), abs(ratio.high - 1.0))


def size(ratio: float) -> float:
    """How far a ratio of times is from 1 as a factor, less 1: 0.02 of 1.02 and of its inverse."""
    return max(ratio, 1.0 / ratio) - 1.0


def verdict(ratio: Interval, floor: float | None, processes: int = 1) -> str:
    """What may be said about a ratio of times, variant over control, measured in `processes`.

    `faster` or `slower`: the interval excludes 1, and the effect exceeds both 0.5 % and the A/A
    `floor` of the same table, operation and quantity; an effect under 2 % also needs several fresh
    processes. `same` needs as many, for it says that the effect is under 1 %: the interval lies
    within 1 % of 1. `undecided`: everything else, and always where the interval is not exact or the
    floor is not known (None): what was not shown is not claimed. Effects are factors, so that the
    inverse of a ratio has the mirrored verdict."""
    if floor is None or isnan(floor) or not ratio.exact:
        return "undecided"
    effect = size(ratio.median)
    excludes_one = ratio.high < 1.0 or ratio.low > 1.0
    several = processes >= SEVERAL_PROCESSES
    replicated = several or effect >= ONE_PROCESS_EFFECT
    if excludes_one and effect > max(floor, SMALLEST_EFFECT) and replicated:
        return "faster" if ratio.high < 1.0 else "slower"
    if several and max(size(ratio.low), size(ratio.high)) <= SAME_WITHIN:
        return "same"
    return "undecided"


def break_even(cost: ArrayLike, before: ArrayLike, after: ArrayLike) -> Interval:
    """Uses after which a one-time cost has paid for itself; infinite where it never does. All in
    seconds: `cost` once or for each block, and of one use `before` having paid it and `after`, in
    the same blocks. Blocks that do not pair up, or a NaN, raise a MeasurementError."""
    slow, fast = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    paid = np.asarray(cost, dtype=np.float64)
    if slow.shape != fast.shape or paid.shape not in ((), slow.shape):
        raise MeasurementError(
            "A break-even point is paired block by block, but the blocks of cost, before and "
            f"after have shapes {paid.shape}, {slow.shape} and {fast.shape}."
        )
    saving = slow - fast
    never = np.where(np.isnan(saving), np.nan, inf)
    uses = np.divide(np.broadcast_to(paid, slow.shape), saving, out=never, where=saving > 0)
    return median_interval(uses)


def half_width(interval: Interval) -> float:
    """Half the interval's width as a share of its median; infinite where that has no meaning."""
    if interval.median == 0 or not isfinite(interval.high - interval.low):
        return inf
    return abs((interval.high - interval.low) / 2 / interval.median)
