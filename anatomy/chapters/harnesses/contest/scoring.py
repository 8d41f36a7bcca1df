"""Spreads, and shares with their intervals: arithmetic on figures of several processes."""

from collections.abc import Sequence
from functools import cache
from itertools import zip_longest
from math import exp, inf, lgamma, log, log1p, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from anatomy.judge.exponents import reaching

TAILS = LOW, HIGH = 0.025, 0.975  # the part of the figures that a spread spans
RESAMPLES = 2000


class Share(NamedTuple):
    """How often something happened, with the 95 % interval of its probability."""

    hits: int
    count: int  # times it could have happened
    share: float  # NaN where it never could have
    low: float
    high: float


def spread(figures: ArrayLike) -> float:
    """Distance from the 2.5 % to the 97.5 % quantile of a harness's figures, in their unit: as a
    share of their median, a clock that adds the same to every figure would look steadier for it.
    NaN of fewer than two."""
    return float(np.diff(np.quantile(figures, TAILS))[0]) if len(figures) > 1 else nan


def spread_ratio(ours: Sequence[ArrayLike], theirs: Sequence[ArrayLike]) -> tuple[float, ...]:
    """Our spread over theirs and the ends of its 95 % interval, from each process's figures. Runs
    of one process resemble each other, so processes are resampled as a whole, for both harnesses
    alike. The ratio is infinite where only their spread is 0, and 1 where both are."""
    draws = np.random.default_rng(0).integers(0, len(ours), size=(RESAMPLES, len(ours)))
    draws[0] = range(len(ours))  # what was seen, ahead of what might have been
    above, below = _resampled(ours, draws), _resampled(theirs, draws)
    ratios = np.divide(above, below, out=np.where(above > 0, inf, 1.0), where=below > 0)
    ends = np.sort(ratios[1:])[[round(tail * (RESAMPLES - 2)) for tail in TAILS]]
    return float(ratios[0]), float(ends[0]), float(ends[1])


def _resampled(groups: Sequence[ArrayLike], draws: np.ndarray) -> np.ndarray:
    """The spread of the figures of the processes drawn, one per draw."""
    padded = np.array([*zip_longest(*groups, fillvalue=nan)]).T  # one may have lost a run
    quantile = np.nanquantile if np.isnan(padded).any() else np.quantile
    return np.diff(quantile(padded[draws].reshape(len(draws), -1), TAILS, axis=1), axis=0)[0]


@cache
def share(hits: int, count: int) -> Share:
    """So many of `count`, with the exact interval of their probability (95 % or more if they are
    independent). Source: Clopper and Pearson 1934, Biometrika 26, 404-413."""
    if not count:
        return Share(0, 0, nan, 0.0, 1.0)
    low = reaching(lambda p: 1 - _at_most(hits - 1, count, p), LOW) if hits else 0.0
    high = reaching(lambda p: 1 - _at_most(hits, count, p), HIGH) if hits < count else 1.0
    return Share(hits, count, hits / count, low, high)


def _at_most(hits: int, count: int, probability: float) -> float:
    """Chance of at most `hits` in `count` independent trials; `probability` is neither 0 nor 1."""
    # In logarithms: the binomial coefficients of a thousand trials are no floating-point numbers.
    each = (
        lgamma(count + 1) - lgamma(k + 1) - lgamma(count - k + 1)
        + k * log(probability) + (count - k) * log1p(-probability)
        for k in range(hits + 1)
    )  # fmt: skip
    return min(sum(map(exp, each)), 1.0)
