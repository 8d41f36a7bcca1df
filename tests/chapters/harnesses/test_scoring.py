"""Spreads and shares on figures whose answer is known."""

import numpy as np
import pytest

from anatomy.chapters.harnesses.contest import scoring

# 41 figures from 0.8 to 1.2: their quantiles at 2.5 % and 97.5 % are the 2nd and the 40th.
EVEN = np.linspace(0.8, 1.2, 41)


@pytest.mark.parametrize(
    ("figures", "spread"),
    [
        (EVEN, 0.38),
        (EVEN[::-1] * 7e-6, 0.38 * 7e-6),  # in their unit, no matter the order
        (EVEN + 100, 0.38),  # what is added to all is no spread
        ([3.0, 3.0, 3.0], 0.0),
        ([1.0], np.nan),
    ],
)
def test_a_spread_runs_from_one_tail_to_the_other(figures, spread):
    assert scoring.spread(figures) == pytest.approx(spread, nan_ok=True)


def test_a_ratio_of_spreads_is_known_and_its_interval_holds_it():
    generator = np.random.default_rng(5)
    narrow, wide = (
        [1.0 + spread * generator.standard_normal(3) for _ in range(200)] for spread in (0.01, 0.04)
    )
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
    ratio, low, high = scoring.spread_ratio([[1.0, 1.2], [1.0]], [[1.0, 1.2]] * 2)
    assert ratio == pytest.approx(scoring.spread([1.0, 1.2, 1.0]) / scoring.spread([1, 1.2] * 2))
    assert low <= ratio <= high


def test_equal_spreads_of_zero_are_equal_and_over_zero_is_infinite():
    still, moving = [[1.0, 1.0]] * 3, [[1.0, 1.1]] * 3
    assert scoring.spread_ratio(still, still) == (1.0, 1.0, 1.0)
    assert scoring.spread_ratio(moving, still)[0] == float("inf")


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [
        # Clopper-Pearson intervals as tables of them have it.
        (0, 10, 0.0, 0.3085),
        (10, 10, 0.6915, 1.0),
        (5, 10, 0.1871, 0.8129),
        (10, 200, 0.0242, 0.0900),
        (2000, 4000, 0.4844, 0.5156),
        (0, 0, 0.0, 1.0),
    ],
)
def test_a_share_has_the_exact_interval(hits, count, low, high):
    share = hits / count if count else np.nan
    wanted = pytest.approx((hits, count, share, low, high), abs=1e-4, nan_ok=True)
    assert scoring.share(hits, count) == wanted
