"""Spread, bias, and shares with their intervals: arithmetic on figures of several processes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from math import exp, lgamma, log, log1p

import numpy as np
from numpy.typing import ArrayLike

from anatomy.judge.exponents import reaching
from anatomy.table.errors import MeasurementError

LOW_TAIL, HIGH_TAIL = 0.025, 0.975  # the part of the figures that a spread spans
RESAMPLES = 2000


@dataclass(frozen=True)
class Share:
    """How often something happened, with the 95 % interval of its probability."""

    hits: int
    count: int  # times it could have happened
    share: float  # NaN where it never could have
    low: float
    high: float


def spread(figures: ArrayLike) -> float:
    """Distance from the 2.5 % to the 97.5 % quantile of a harness's figures, in their unit: as a
    share of their median, a clock that adds the same to every figure would look steadier for it."""
    found = _positive(figures)
    if len(found) < 2:
        raise MeasurementError(f"A spread needs two figures or more; got {len(found)}.")
    low, high = np.quantile(found, [LOW_TAIL, HIGH_TAIL])
    return float(high - low)


def spread_ratio(ours: Sequence[ArrayLike], theirs: Sequence[ArrayLike]) -> tuple[float, ...]:
    """Our spread over theirs and the ends of its 95 % interval, from each process's figures. Runs
    of one process resemble each other, so processes are resampled as a whole, for both harnesses
    alike. The ratio is infinite where only their spread is 0, and 1 where both are."""
    if not ours or len(ours) != len(theirs):
        raise MeasurementError(
            f"Spreads are compared process by process, but there are {len(ours)} and {len(theirs)}."
        )
    generator = np.random.default_rng(0)
    draws = generator.integers(0, len(ours), size=(RESAMPLES, len(ours)))
    draws[0] = range(len(ours))  # what was seen, ahead of what might have been
    above, below = _resampled(ours, draws), _resampled(theirs, draws)
    ratios = np.where(above > 0.0, np.inf, 1.0)
    np.divide(above, below, out=ratios, where=below > 0.0)
    ends = np.sort(ratios[1:])[[round(t * (RESAMPLES - 2)) for t in (LOW_TAIL, HIGH_TAIL)]]
    return float(ratios[0]), float(ends[0]), float(ends[1])


def bias(figures: ArrayLike, reference: float) -> float:
    """How far the median of `figures` lies above `reference`, as a share of `reference`."""
    return float(np.median(_positive(figures)) / _positive(reference)[0] - 1.0)


def share(outcomes: Sequence[bool]) -> Share:
    """How many of `outcomes` are true, with the exact interval of their probability (95 % or more
    if they are independent). Source: Clopper and Pearson 1934, Biometrika 26, 404-413."""
    return _exact(sum(bool(outcome) for outcome in outcomes), len(outcomes))


@cache
def _exact(hits: int, count: int) -> Share:
    if not count:
        return Share(0, 0, float("nan"), 0.0, 1.0)
    low = reaching(lambda p: 1.0 - _at_most(hits - 1, count, p), LOW_TAIL) if hits else 0.0
    high = reaching(lambda p: 1.0 - _at_most(hits, count, p), HIGH_TAIL) if hits < count else 1.0
    return Share(hits, count, hits / count, low, high)


def _resampled(groups: Sequence[ArrayLike], draws: np.ndarray) -> np.ndarray:
    """The spread of the figures of the processes drawn, one per draw."""
    padded = np.array([*zip_longest(*map(_positive, groups), fillvalue=np.nan)]).T
    drawn = padded[draws].reshape(len(draws), -1)
    quantile = np.nanquantile if np.isnan(padded).any() else np.quantile
    low, high = quantile(drawn, [LOW_TAIL, HIGH_TAIL], axis=1)
    return high - low


def _at_most(hits: int, count: int, probability: float) -> float:
    """Chance of at most `hits` in `count` independent trials; `probability` is neither 0 nor 1."""
    # In logarithms: the binomial coefficients of a thousand trials are no floating-point numbers.
    each = (
        lgamma(count + 1) - lgamma(k + 1) - lgamma(count - k + 1)
        + k * log(probability) + (count - k) * log1p(-probability)
        for k in range(hits + 1)
    )  # fmt: skip
    return min(sum(map(exp, each)), 1.0)


def _positive(figures: ArrayLike) -> np.ndarray:
    """Figures as one row of float64; MeasurementError unless each is a positive, finite time."""
    found = np.asarray(figures, dtype=np.float64).ravel()
    wrong = found[~(np.isfinite(found) & (found > 0.0))]
    if wrong.size:
        raise MeasurementError(f"A figure is a positive, finite time; got {wrong[0]!r}.")
    return found
