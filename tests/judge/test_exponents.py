"""Exponents of power laws: the slope, its interval, and what too few points do not prove."""

from math import inf, isinf

import numpy as np
import pytest

from anatomy.judge.exponents import power_fit, reaching, student
from anatomy.table.errors import MeasurementError

SIZES = [256, 512, 1024, 2048, 4096]
# Quantiles of Student's distribution as tables print them, two-sided 95 %.
PRINTED = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 11: 2.201, 30: 2.042}


@pytest.mark.parametrize(("freedom", "t"), PRINTED.items())
def test_students_quantile_is_the_printed_one(freedom, t):
    assert student(freedom) == pytest.approx(t, abs=6e-4)


def test_the_argument_of_a_rising_function_is_looked_for_between_0_and_1():
    assert reaching(lambda x: x**2, 0.25) == pytest.approx(0.5)
    assert reaching(lambda x: x, 7.0) == pytest.approx(1.0), "no further than that"
    assert reaching(lambda x: x, 7.0, 10.0) == pytest.approx(7.0)


def test_other_confidences_have_other_quantiles():
    assert student(10, 0.99) == pytest.approx(3.169, abs=6e-4)
    with pytest.raises(MeasurementError, match="0 degrees of freedom"):
        student(0)


def test_counts_on_a_power_law_give_its_exponent_and_factor_exactly():
    fit = power_fit(SIZES, [3 * size**2 for size in SIZES])
    assert (fit.median, fit.factor) == (pytest.approx(2), pytest.approx(3))
    assert fit.exact and fit.points == 5 and fit.strays < 1e-9
    assert fit.high - fit.low < 1e-9


def test_the_interval_is_that_of_the_textbook_formula():
    x, y = np.array([1.0, 2, 4, 8]), np.array([1.0, 2.2, 3.9, 8.3])
    fit = power_fit(x, y)
    slope, start = np.polyfit(np.log(x), np.log(y), 1)
    left = np.log(y) - start - slope * np.log(x)
    error = np.sqrt((left**2).sum() / 2 / ((np.log(x) - np.log(x).mean()) ** 2).sum())
    assert fit.median == pytest.approx(slope)
    assert fit.high - fit.median == pytest.approx(4.30265 * error, rel=1e-5)
    assert fit.median - fit.low == pytest.approx(fit.high - fit.median)


def test_the_interval_covers_the_true_exponent_as_often_as_it_says():
    noise, hits = np.random.default_rng(4), 0
    for _ in range(400):
        fit = power_fit(SIZES, np.array(SIZES) ** 1.5 * np.exp(0.05 * noise.standard_normal(5)))
        hits += fit.low <= 1.5 <= fit.high
    assert 0.91 <= hits / 400 <= 0.985


def test_points_that_happen_to_lie_on_a_line_prove_no_more_than_their_noise_allows():
    costs = [float(size) for size in SIZES]
    sharp = power_fit(SIZES, costs)
    low, high = [0.9 * cost for cost in costs], [1.1 * cost for cost in costs]
    noisy = power_fit(SIZES, costs, low, high)
    assert noisy.median == pytest.approx(sharp.median)
    assert noisy.high - noisy.low > 0.05 > sharp.high - sharp.low


def test_the_noise_of_the_costs_is_carried_into_the_exponent_as_half_widths():
    x, half = np.array([1.0, 2, 4, 8]), np.array([0.05, 0.1, 0.2, 0.1])
    fit = power_fit(x, x, x * np.exp(-half), x * np.exp(half))
    away = np.log(x) - np.log(x).mean()
    weights = away / (away**2).sum()  # of each cost in the slope
    assert fit.high - fit.median == pytest.approx(np.sqrt((weights * half) @ (weights * half)))


def test_of_two_points_there_is_an_exponent_and_no_interval():
    fit = power_fit([1, 4], [1, 2])
    assert fit.median == pytest.approx(0.5) and not fit.exact
    assert (fit.low, fit.high) == (-inf, inf), "a claim can conclude nothing from it"
    assert isinf(fit.high - fit.low) and fit.coverage == 0


def test_what_is_fixed_in_a_cost_is_left_out_by_beginning_beyond_it():
    costs = [1e6 + size**2 for size in SIZES]
    assert power_fit(SIZES, costs).median < 1.3
    bigger = [2**power for power in range(12, 16)]
    every = power_fit(bigger, [1e6 + s**2 for s in bigger])
    assert every.points == 4 and every.median == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([1, 2], [1, 0]), "positive, finite"),
        (([1, 2], [1, float("nan")]), "positive, finite"),
        (([1, 2], [1]), "equally many"),
        (([1, 2], [1, 2], [1, 2]), "equally many"),
        (([4, 4], [1, 2]), "two sizes or more; got 1"),
        (([3], [3]), "two sizes or more; got 1"),
    ],
)
def test_what_can_not_be_fitted_is_refused(arguments, says):
    with pytest.raises(MeasurementError, match=says):
        power_fit(*arguments)
