"""The arithmetic of a comparison: coverage is exact, and nothing is claimed that was not shown."""

from fractions import Fraction
from itertools import product
from math import inf, isclose, nan

import numpy as np
import pytest

from anatomy.table.errors import MeasurementError
from anatomy.table.intervals import (
    Interval,
    break_even,
    coverage,
    half_width,
    median_interval,
    noise_floor,
    ratio_interval,
    verdict,
)

# Blocks at the fixed looks, and the ranks that a printed table of binomial intervals gives.
RANKS = {6: 1, 7: 1, 8: 1, 9: 2, 12: 3, 15: 4, 20: 6, 24: 7, 30: 10, 48: 17}


@pytest.mark.parametrize(("count", "rank"), RANKS.items())
def test_the_interval_runs_between_the_tabled_ranks(count, rank):
    found = median_interval(np.random.default_rng(0).permutation(count) + 1)
    assert (found.low, found.high) == (rank, count + 1 - rank)
    assert found.exact
    assert found.coverage >= 0.95 > coverage(count, rank + 1)


@pytest.mark.parametrize("count", [6, 9, 12])
def test_coverage_is_what_counting_every_case_gives(count):
    # Each value lies below or above the true median with equal chance: count the cases.
    rank = RANKS[count]
    inside = sum(rank <= sum(case) <= count - rank for case in product((0, 1), repeat=count))
    assert coverage(count, rank) == float(Fraction(inside, 2**count))


def test_twelve_blocks_cover_with_96_percent():
    assert round(100 * median_interval(range(12)).coverage, 1) == 96.1


@pytest.mark.parametrize("name", ["normal", "lognormal", "exponential", "two modes"])
def test_coverage_holds_in_simulation_whatever_the_distribution(name):
    rng, runs, count = np.random.default_rng(7), 4000, 12
    draws = {
        "normal": (lambda: rng.normal(size=(runs, count)), 0.0),
        "lognormal": (lambda: rng.lognormal(size=(runs, count)), 1.0),
        "exponential": (lambda: rng.exponential(size=(runs, count)), np.log(2)),
        "two modes": (
            # Between two modes of equal weight the median is the border of the lower one.
            lambda: rng.uniform(size=(runs, count)) + (rng.random((runs, count)) < 0.4),
            0.5 / 0.6,
        ),
    }
    draw, median = draws[name]
    intervals = [median_interval(row) for row in draw()]
    held = np.mean([each.low <= median <= each.high for each in intervals])
    three_sigma = 3 * np.sqrt(0.961 * 0.039 / runs)
    assert abs(held - coverage(count, 3)) < three_sigma


@pytest.mark.parametrize("count", range(1, 6))
def test_under_six_values_the_interval_is_all_of_them_and_not_exact(count):
    found = median_interval(range(count))
    assert (found.low, found.high, found.exact) == (0, count - 1, False)
    assert found.coverage < 0.95


@pytest.mark.parametrize(
    ("values", "median"), [([3, 1, 2], 2), ([4, 1, 2, 3], 2.5), ([1, inf, inf], inf), ([5], 5)]
)
def test_the_median_is_the_middle(values, median):
    assert median_interval(values).median == median


def test_confidence_widens_the_interval():
    narrow, wide = (median_interval(range(48), confidence) for confidence in (0.5, 0.999))
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("values", "match"), [([], "no values"), ([1, nan], "1 of 2 values are NaN")]
)
def test_no_values_and_nan_have_no_median(values, match):
    with pytest.raises(MeasurementError, match=match):
        median_interval(values)


def test_a_ratio_is_paired_so_that_drift_cancels():
    drift = np.linspace(1, 3, 24)  # the clock falls to a third while we measure
    found = ratio_interval(2.0 * drift, drift)
    assert all(isclose(each, 2.0) for each in (found.median, found.low, found.high))


def test_swapping_the_variants_gives_the_reciprocals():
    rng = np.random.default_rng(1)
    slow, fast = rng.lognormal(0.3, 0.1, 24), rng.lognormal(0, 0.1, 24)
    there, back = ratio_interval(slow, fast), ratio_interval(fast, slow)
    assert isclose(there.median * back.median, 1)
    assert isclose(there.low * back.high, 1)


@pytest.mark.parametrize(
    ("above", "below", "match"),
    [
        ([1, 2], [1], "2 blocks over 1"),
        ([1, 0], [1, 1], "positive, finite times in every block; got 0.0"),
        ([1, 1], [1, -2], "got -2.0"),
        ([1, inf], [1, 1], "got inf"),
        ([1, nan], [1, 1], "got nan"),
    ],
)
def test_a_ratio_of_impossible_times_is_refused(above, below, match):
    with pytest.raises(MeasurementError, match=match):
        ratio_interval(above, below)


@pytest.mark.parametrize(("low", "high", "floor"), [(0.99, 1.004, 0.01), (1.002, 1.005, 0.005)])
def test_the_noise_floor_is_the_far_end_of_the_control_pair(low, high, floor):
    assert isclose(noise_floor(Interval(1.0, low, high)), floor)


@pytest.mark.parametrize(
    ("ratio", "floor", "processes", "expected"),
    [
        # The interval excludes 1 and the effect is above floor, 0.5 % and 2 %.
        ((1.50, 1.48, 1.52), 0.004, 1, "slower"),
        ((0.50, 0.48, 0.52), 0.004, 1, "faster"),
        # The interval reaches 1, or touches it.
        ((1.03, 0.99, 1.07), 0.004, 1, "undecided"),
        ((1.03, 1.00, 1.07), 0.004, 1, "undecided"),
        ((0.97, 0.93, 1.00), 0.004, 1, "undecided"),
        # The effect is no larger than the A/A floor of the table.
        ((1.05, 1.04, 1.06), 0.06, 1, "undecided"),
        ((0.95, 0.94, 0.96), 0.06, 5, "undecided"),
        ((1.05, 1.04, 1.06), 0.049, 1, "slower"),
        # Under 2 % several processes are needed; at 2 % one will do.
        ((1.015, 1.012, 1.018), 0.002, 1, "undecided"),
        ((1.015, 1.012, 1.018), 0.002, 2, "undecided"),
        ((1.015, 1.012, 1.018), 0.002, 3, "slower"),
        ((0.985, 0.982, 0.988), 0.002, 3, "faster"),
        ((1.0201, 1.015, 1.025), 0.002, 1, "slower"),
        # Under 0.5 % nothing is claimed; it may be shown to be the same.
        ((1.004, 1.003, 1.005), 0.001, 9, "same"),
        ((1.000, 0.995, 1.005), 0.004, 3, "same"),
        ((1.000, 0.991, 1.009), 0.004, 3, "same"),
        ((1.000, 0.989, 1.005), 0.004, 3, "undecided"),
        ((1.000, 0.995, 1.011), 0.004, 3, "undecided"),
        # It takes as many processes as a difference of that size.
        ((1.000, 0.995, 1.005), 0.004, 1, "undecided"),
        ((1.000, 0.995, 1.005), 0.004, 2, "undecided"),
        ((1.000, 0.9999, 1.0001), 0.0, 1, "undecided"),
        # Within 1 % and shown to be different: one process says neither, several say how.
        ((1.008, 1.006, 1.0095), 0.001, 1, "undecided"),
        ((1.008, 1.006, 1.0095), 0.001, 3, "slower"),
        # No floor, no claim.
        ((1.50, 1.48, 1.52), None, 1, "undecided"),
        ((1.50, 1.48, 1.52), nan, 1, "undecided"),
        ((1.00, 0.999, 1.001), None, 1, "undecided"),
    ],
)
def test_what_may_be_said(ratio, floor, processes, expected):
    assert verdict(Interval(*ratio), floor, processes) == expected


def test_exchanging_a_variant_and_its_control_mirrors_the_verdict():
    seed = 20261122
    print(f"seed {seed}")
    generator = np.random.default_rng(seed)
    mirrored = {"faster": "slower", "slower": "faster"}
    seen = set()
    for processes in (1, 3, 6):
        for _ in range(2000):
            low, middle, high = sorted(np.exp(generator.normal(0, 0.012, 3)))
            found, inverse = Interval(middle, low, high), Interval(1 / middle, 1 / high, 1 / low)
            floor = generator.choice([0.0, 0.004, 0.015])
            word = verdict(found, floor, processes)
            assert verdict(inverse, floor, processes) == mirrored.get(word, word)
            seen.add(word)
    assert seen == {"faster", "slower", "same", "undecided"}
    assert verdict(Interval(1.0201, 1.015, 1.025), 0.002) == "slower"
    assert verdict(Interval(1 / 1.0201, 1 / 1.025, 1 / 1.015), 0.002) == "faster"


def test_too_few_blocks_prove_neither_a_difference_nor_its_absence():
    assert verdict(Interval(2.0, 1.9, 2.1, exact=False), 0.001) == "undecided"
    assert verdict(Interval(1.0, 1.0, 1.0, exact=False), 0.001) == "undecided"


def test_equals_are_seldom_told_apart():
    rng, floor, wrong = np.random.default_rng(3), 0.0, 0
    for _ in range(300):
        first, second = rng.normal(1, 0.02, (2, 24))
        wrong += verdict(ratio_interval(first, second), floor) in ("faster", "slower")
    assert wrong <= 15  # 5 % by the interval alone; the 2 % rule takes nearly all of them


def test_a_cost_pays_for_itself_after_cost_over_saving():
    found = break_even(cost=6.0, before=np.full(12, 3.0), after=np.full(12, 1.0))
    assert (found.median, found.low, found.high) == (3.0, 3.0, 3.0)


def test_a_cost_that_saves_nothing_never_pays():
    before, after = np.full(12, 1.0), np.r_[np.full(6, 0.5), np.full(6, 1.5)]
    found = break_even(np.full(12, 2.0), before, after)
    assert (found.low, found.median, found.high) == (4.0, inf, inf)
    assert break_even(1.0, before, before).median == inf


def test_break_even_refuses_blocks_that_do_not_pair():
    with pytest.raises(MeasurementError, match="paired block by block"):
        break_even(1.0, [1, 2], [1])
    with pytest.raises(MeasurementError, match="NaN"):
        break_even(1.0, [nan, 2], [1, 1])


def test_half_width_is_relative_and_infinite_where_it_means_nothing():
    assert isclose(half_width(Interval(200.0, 190.0, 214.0)), 0.06)
    assert half_width(Interval(0.0, -1.0, 1.0)) == inf
    assert half_width(Interval(1.0, 1.0, inf)) == inf
    assert half_width(Interval(inf, inf, inf)) == inf
