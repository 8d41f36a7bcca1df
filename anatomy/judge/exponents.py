"""Exponents of power laws, fitted to a few measured points, with what the points prove of them.

A cost that grows as a power of a size is a straight line in logarithms, and the exponent is its
slope. With x' = ln x and y' = ln y of n points the slope of least squares is

    b = sum((x' - mean x') * y') / sum((x' - mean x')**2)

and with s**2 = sum of squared residuals / (n - 2) its interval is b -+ t * s / sqrt(sum((x' -
mean x')**2)), t being the quantile of Student's distribution with n - 2 degrees of freedom. The
residuals hold both the noise of the figures and whatever is no power law, so that a curve which
bends has a wide interval however little noise it has.

Source: Draper and Smith, Applied Regression Analysis, 3rd ed. (1998), chapter 1; Student's
distribution from Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import cos, exp, inf, isfinite, pi, sin, sqrt, tan

import numpy as np

from anatomy.table.errors import MeasurementError
from anatomy.table.intervals import Interval

# The normal quantile that turns the half-width of a 95 % interval into a standard error.
NORMAL = 1.959964
LEAST_POINTS = 3  # of two points the line through them is the fit, and nothing is left to judge it


@dataclass(frozen=True, kw_only=True)
class PowerFit(Interval):
    """y = factor * x ** median: the exponent, with an infinite interval where nothing is proved."""

    factor: float  # y at x = 1, as the fitted line has it
    points: int
    strays: float  # largest distance of a point from the fitted line, as a share of the line


def power_fit(
    x: Sequence[float],
    y: Sequence[float],
    low: Sequence[float] | None = None,
    high: Sequence[float] | None = None,
) -> PowerFit:
    """The exponent of `y` as a power of `x`, by least squares of the logarithms.

    The standard error is the larger of two: the one that the residuals give, and the one that the
    95 % intervals of `y`, from `low` to `high`, alone would give. By the second, few points that
    happen to lie on a line prove no more than their noise allows. Counts are exact and have no such
    intervals. Of two points there is an exponent and no interval: `exact` is False, its ends are
    infinite. Fewer, lists of different lengths and values that are not positive and finite raise a
    MeasurementError.
    """
    columns = [np.asarray(each, dtype=np.float64) for each in (x, y, low, high) if each is not None]
    if (low is None) != (high is None) or len({len(each) for each in columns}) > 1:
        raise MeasurementError("A fit needs equally many sizes, costs and ends of intervals.")
    for values in columns:
        if not (np.isfinite(values) & (values > 0)).all():
            raise MeasurementError("A power law is fitted to positive, finite values only.")
    count = len(columns[0])
    if len(set(columns[0])) < 2:
        raise MeasurementError(f"A power law needs two sizes or more; got {len(set(columns[0]))}.")
    sizes, costs = np.log(columns[0]), np.log(columns[1])
    away = sizes - sizes.mean()
    spread = float((away**2).sum())
    slope = float((away * costs).sum()) / spread
    start = float(costs.mean() - slope * sizes.mean())
    residuals = costs - (start + slope * sizes)
    strays = float(np.max(np.abs(np.expm1(residuals))))
    line = {"factor": exp(start), "points": count, "strays": strays}
    if count < LEAST_POINTS:
        return PowerFit(slope, -inf, inf, False, 0.0, **line)
    error = student(count - 2) * sqrt(float((residuals**2).sum()) / (count - 2) / spread)
    if len(columns) == 4:
        # Each cost's own error, carried through the weights that it has in the slope.
        errors = (np.log(columns[3]) - np.log(columns[2])) / (2 * NORMAL)
        error = max(error, NORMAL * sqrt(float(((away / spread * errors) ** 2).sum())))
    return PowerFit(slope, slope - error, slope + error, **line)


def student(freedom: int, confidence: float = 0.95) -> float:
    """The t that encloses `confidence` of Student's distribution between -t and t."""
    if freedom < 1 or not isfinite(freedom):
        raise MeasurementError(f"Student's distribution has no {freedom} degrees of freedom.")
    angle = reaching(lambda angle: _within(angle, freedom), confidence, pi / 2)
    return sqrt(freedom) * tan(angle)


def reaching(rising: Callable[[float], float], target: float, most: float = 1.0) -> float:
    """The argument from 0 to `most` at which a rising function reaches `target`, by bisection."""
    below, above = 0.0, most
    while below < (middle := (below + above) / 2) < above:  # to the last bit
        below, above = (middle, above) if rising(middle) < target else (below, middle)
    return below


def _within(angle: float, freedom: int) -> float:
    """Probability of |t| < sqrt(freedom) * tan(angle), by the finite series for whole degrees."""
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for step in range(2 + odd, freedom - 1, 2):
        term *= cos(angle) ** 2 * (step - 1) / step
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
