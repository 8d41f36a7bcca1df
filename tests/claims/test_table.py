"""What a claim reads from the rows of a table: only what can be trusted, with all of its doubt."""

import pytest

from anatomy.claims import Measured, Unmeasured
from anatomy.claims.table import Table, over_control, quotient, rate_of, speed_up, time_of

ROW = {"variant": "a", "median_s": 2.0, "low_s": 1.9, "high_s": 2.2, "noise_floor": 0.01}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"verdict": "impossible", "note": "faster than the memory"}, "faster than the memory"),
        ({"median_s": None, "note": "no room"}, "no room"),
        ({"median_s": float("nan")}, "it could not be measured"),
    ],
)
def test_no_claim_reads_a_time_that_is_impossible_or_missing(row, why):
    with pytest.raises(Unmeasured, match=why):
        Table([ROW | row], {}).measured("a")


def test_a_quotient_of_two_times_has_the_doubt_of_both():
    above, below = Measured(6.0, 5.0, 8.0, floor=0.01), Measured(2.0, 1.0, 4.0, floor=0.02)
    found = quotient(above, below)
    assert (found.value, found.low, found.high) == (3.0, 5.0 / 4.0, 8.0 / 1.0)
    assert found.floor == pytest.approx(0.03), "noise of either may be in it"


def test_a_speed_up_is_the_inverse_of_the_ratio_with_its_ends_exchanged():
    row = ROW | {"ratio": 0.5, "ratio_low": 0.4, "ratio_high": 0.8, "verdict": "faster"}
    found = speed_up(row)
    assert (found.value, found.low, found.high) == (2.0, 1 / 0.8, 1 / 0.4)


def test_the_highest_rate_belongs_to_the_shortest_time():
    found = rate_of(ROW | {"flops": 38.0}, "flops", "FLOP/s")
    assert (found.value, found.low, found.high) == (19.0, 38.0 / 2.2, 38.0 / 1.9)
    assert found.unit == "FLOP/s" and found.floor == 0.01


@pytest.mark.parametrize(("blocks", "exact"), [(3, False), (5, False), (6, True), (12, True)])
def test_an_interval_of_fewer_than_six_blocks_proves_nothing(blocks, exact):
    row = ROW | {"blocks_s": [2.0] * blocks, "ratio": 1.5, "verdict": "slower"}
    assert time_of(row).exact is exact and over_control(row).exact is exact
    assert time_of(row | {"runs": 3}).exact, "of several processes the envelope counts"
