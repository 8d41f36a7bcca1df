"""Spread, bias, coverage and error rates on figures whose answer is known."""

import numpy as np
import pytest

from anatomy.chapters.harnesses.contest import scoring
from anatomy.table.errors import MeasurementError


def test_a_spread_runs_from_one_tail_to_the_other_in_the_unit_of_the_figures():
    # 41 figures from 0.8 to 1.2: their quantiles at 2.5 % and 97.5 % are the 2nd and the 40th.
    figures = np.linspace(0.8, 1.2, 41)
    assert scoring.spread(figures) == pytest.approx(0.38)
    assert scoring.spread(figures[::-1] * 7e-6) == pytest.approx(0.38 * 7e-6), "no matter the order"
    assert scoring.spread(figures + 100) == pytest.approx(0.38), "what is added to all is no spread"
    assert scoring.spread([3.0, 3.0, 3.0]) == 0.0


def test_a_spread_of_nothing_is_refused():
    with pytest.raises(MeasurementError, match="needs two figures or more; got 1"):
        scoring.spread([1.0])
    with pytest.raises(MeasurementError, match="positive, finite time; got"):
        scoring.spread([1.0, float("nan")])


def test_a_ratio_of_spreads_is_known_and_its_interval_holds_it():
    generator = np.random.default_rng(5)
    narrow = [1.0 + 0.01 * generator.standard_normal(3) for _ in range(200)]
    wide = [1.0 + 0.04 * generator.standard_normal(3) for _ in range(200)]
    ratio, low, high = scoring.spread_ratio(narrow, wide)
    assert ratio == pytest.approx(0.25, rel=0.15)
    assert low < 0.25 < high and high / low < 1.6


def test_processes_are_drawn_whole_so_few_of_them_leave_a_wide_interval():
    # All of the spread lies between processes: six of them say little, however many runs each has.
    shifts = [1.00, 1.01, 1.02, 1.03, 1.04, 1.05]
    many = [[shift] * 50 for shift in shifts]
    ratio, low, high = scoring.spread_ratio(many, [[2.0 * shift, 2.1] for shift in shifts])
    assert high - low > 0.3 * ratio


def test_a_process_that_lost_a_run_is_no_reason_to_leave_it_out():
    whole = [[1.0, 1.2], [1.0, 1.2]]
    ratio, low, high = scoring.spread_ratio([[1.0, 1.2], [1.0]], whole)
    assert ratio == pytest.approx(scoring.spread([1.0, 1.2, 1.0]) / scoring.spread([1, 1.2] * 2))
    assert low <= ratio <= high


def test_equal_spreads_of_zero_are_equal_and_over_zero_is_infinite():
    still, moving = [[1.0, 1.0]] * 3, [[1.0, 1.1]] * 3
    assert scoring.spread_ratio(still, still) == (1.0, 1.0, 1.0)
    assert scoring.spread_ratio(moving, still)[0] == float("inf")
    with pytest.raises(MeasurementError, match="process by process, but there are 3 and 2"):
        scoring.spread_ratio(still, still[:2])


def test_a_bias_is_that_of_the_median():
    assert scoring.bias([1.02, 1.03, 9.0], 1.0) == pytest.approx(0.03)
    assert scoring.bias([0.5], 1.0) == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [
        # Clopper-Pearson intervals as tables of them have it.
        (0, 10, 0.0, 0.3085),
        (10, 10, 0.6915, 1.0),
        (5, 10, 0.1871, 0.8129),
        (10, 200, 0.0242, 0.0900),
        (2000, 4000, 0.4844, 0.5156),
    ],
)
def test_a_share_has_the_exact_interval(hits, count, low, high):
    found = scoring.share([True] * hits + [False] * (count - hits))
    assert (found.hits, found.count, found.share) == (hits, count, hits / count)
    assert (found.low, found.high) == (
        pytest.approx(low, abs=1e-4),
        pytest.approx(high, abs=1e-4),
    )


def test_a_share_of_nothing_is_no_number():
    found = scoring.share([])
    assert found.count == 0 and found.share != found.share
