"""What several fresh processes may claim together: rates simulated where the truth is known."""

import re

import numpy as np
import pytest

from anatomy.judge import replication
from anatomy.judge.replication import Replicated, pooled, ratio, verdict
from anatomy.table import intervals
from anatomy.table.errors import MeasurementError
from anatomy.table.intervals import Interval

BLOCKS = 12
TABLES = 600


def rows(generator, *, effect, placement, noise, processes):
    """Control, duplicate and variant of one table: blocks of all processes, run after run.

    A process shifts all blocks of a variant alike (`placement`, a standard deviation); control and
    duplicate share their buffers and so their shift. A clock drifts by 1 % within a process, and
    all variants with it.
    """
    shape = (processes, BLOCKS)
    drift = 0.01 * np.linspace(0, 1, BLOCKS) * generator.standard_normal((processes, 1))
    shifts = placement * generator.standard_normal((2, processes, 1))
    found = []
    for shift, true in ((shifts[0], 1.0), (shifts[0], 1.0), (shifts[1], effect)):
        logs = np.log(true) + drift + shift + noise * generator.standard_normal(shape)
        blocks = (1e-4 * np.exp(logs)).ravel().tolist()
        found.append({"blocks_s": blocks, "run_blocks": [BLOCKS] * processes})
    return found


def split(row):
    return np.reshape(row["blocks_s"], (-1, BLOCKS))


def judged(control, again, variant):
    """The verdict on one table by the package's own rule."""
    floor = max(
        intervals.noise_floor(intervals.ratio_interval(a, c))
        for a, c in zip(split(again), split(control), strict=True)
    )
    return verdict(ratio(variant, control), floor)


def rate(claims=("faster", "slower"), *, rule=judged, **true):
    """How often one of the verdicts is given."""
    generator = np.random.default_rng(7)
    return sum(rule(*rows(generator, **true)) in claims for _ in range(TABLES)) / TABLES


@pytest.mark.parametrize("placement", [0.003, 0.005])
@pytest.mark.parametrize("noise", [0.002, 0.005])
def test_three_processes_find_two_percent_and_seldom_more_than_there_is(placement, noise):
    true = {"placement": placement, "noise": noise, "processes": 3}
    assert rate(effect=1.0, **true) <= 0.05
    assert rate(("slower",), effect=1.02, **true) >= 0.80
    assert rate(("faster",), effect=1.02, **true) == 0.0


def test_the_sides_are_judged_alike():
    true = {"placement": 0.004, "noise": 0.003, "processes": 3}
    assert rate(("faster",), effect=1 / 1.02, **true) >= 0.80


@pytest.mark.parametrize("placement", [0.005, 0.02])
def test_six_processes_hold_their_rate_however_large_placement_is(placement):
    true = {"placement": placement, "noise": 0.002, "processes": 6}
    assert rate(effect=1.0, **true) <= 0.05


def test_blocks_pooled_as_if_independent_claim_what_is_not_there():
    def pooled_blocks(control, again, variant):
        found = intervals.ratio_interval(variant["blocks_s"], control["blocks_s"])
        floor = intervals.ratio_interval(again["blocks_s"], control["blocks_s"])
        return intervals.verdict(found, intervals.noise_floor(floor), processes=3)

    def one_process(control, again, variant):
        first = [{"blocks_s": split(row)[0]} for row in (control, again, variant)]
        found = intervals.ratio_interval(first[2]["blocks_s"], first[0]["blocks_s"])
        return intervals.verdict(found, 0.0, processes=3)  # as if one could replace three

    true = {"effect": 1.0, "placement": 0.005, "noise": 0.002, "processes": 3}
    assert rate(rule=pooled_blocks, **true) > 0.10
    assert rate(rule=one_process, **true) > 0.30


def test_placement_hides_a_difference_as_it_makes_one():
    def one_process(control, again, variant):  # as if one could say what takes three
        first = intervals.ratio_interval(split(variant)[0], split(control)[0])
        return intervals.verdict(first, 0.0, processes=3)

    true = {"effect": 1.01, "placement": 0.005, "noise": 0.002, "processes": 3}
    assert rate(("same",), rule=one_process, **true) > 0.20
    assert rate(("same",), **true) <= 0.05
    assert rate(("same",), **true | {"processes": 1}) == 0.0


def test_two_processes_claim_no_difference_under_two_percent():
    true = {"placement": 0.0, "noise": 0.001, "processes": 2}
    assert rate(effect=1.015, **true) == 0.0
    assert rate(effect=1.03, **true) == 1.0


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "one fresh process"),
        (2, "2 fresh processes; intervals are the envelope .* at least 50"),
        (3, "3 fresh processes; intervals are the envelope .* at least 75"),
        (5, "5 fresh processes; intervals are the envelope .* at least 93"),
        (6, "6 fresh processes; intervals are those of the processes' medians"),
    ],
)
def test_what_the_intervals_of_so_many_processes_are_worth_is_said(count, words):
    assert re.match(words, replication.described(count))


def test_a_figure_counts_each_process_once():
    found = [Interval(1.0, 0.9, 1.1), Interval(2.0, 1.9, 2.2), Interval(2.1, 2.0, 2.3)]
    over = pooled(found)
    assert over.runs == [1.0, 2.0, 2.1] and over.label == "envelope"
    assert over.interval == Interval(2.0, 0.9, 2.3, True, 0.75)


def test_six_processes_have_an_interval_of_their_own():
    found = [Interval(float(x), x - 5.0, x + 5.0, False) for x in (3, 1, 2, 6, 5, 4)]
    over = pooled(found)
    assert over.label == "exact"
    assert (over.interval.median, over.interval.low, over.interval.high) == (3.5, 1.0, 6.0)
    assert over.interval.exact and over.interval.coverage >= 0.95


def test_ratios_are_pooled_by_their_logarithms():
    over = pooled([Interval(0.5, 0.4, 0.6), Interval(2.0, 1.9, 2.1)], logarithmic=True)
    assert over.interval.median == pytest.approx(1.0)
    assert (over.interval.low, over.interval.high) == (0.4, 2.1)


def test_one_process_stays_what_it_was():
    only = Interval(1.3, 1.2, 1.4)
    assert pooled([only]).interval == only
    assert verdict(pooled([only]), 0.001) == "slower"
    assert verdict(pooled([Interval(1.015, 1.014, 1.016)]), 0.001) == "undecided"


@pytest.mark.parametrize(
    ("runs", "width", "floor", "expected"),
    [
        ((1.012, 1.011, 1.013), 0.001, 0.004, "slower"),
        ((0.988, 0.989, 0.987), 0.001, 0.004, "faster"),
        ((1.012, 1.004, 1.013), 0.001, 0.002, "undecided"),  # one is not beyond 0.5 %
        ((1.030, 1.004, 1.040), 0.001, 0.002, "undecided"),  # nor is it above 2 %
        ((0.970, 0.998, 0.960), 0.001, 0.002, "undecided"),  # nor on the other side
        ((1.012, 1.011, 1.013), 0.012, 0.004, "undecided"),  # an interval reaches 1
        ((1.012, 1.011, 1.013), 0.001, 0.020, "undecided"),  # below the floor
        ((1.012, 1.011, 1.013), 0.001, None, "undecided"),  # no floor
        ((1.012, 1.011), 0.001, 0.004, "undecided"),  # two are not several
        ((1.030, 1.031), 0.001, 0.004, "slower"),
        ((1.001, 0.999, 1.002), 0.001, 0.004, "same"),
        ((1.001, 0.999, 1.012), 0.001, 0.004, "undecided"),  # one leaves 1 %
        ((1.012, 1.004, 1.013, 1.012, 1.011, 1.012), 0.1, 0.002, "slower"),  # of six, an interval
        ((1.012, 0.999, 1.013, 1.012, 1.011, 1.012), 0.0, 0.002, "undecided"),
    ],
)
def test_a_claim_needs_every_process_or_an_exact_interval(runs, width, floor, expected):
    found = pooled([Interval(r, r - width, r + width) for r in runs], logarithmic=True)
    assert verdict(found, floor) == expected


def test_an_interval_of_too_few_blocks_claims_nothing():
    found = pooled([Interval(1.5, 1.4, 1.6), Interval(1.5, 1.5, 1.5, exact=False)])
    assert verdict(found, 0.001) == "undecided"


def test_a_ratio_pairs_blocks_within_each_process():
    below = {"variant": "a", "blocks_s": [1.0] * 6 + [2.0] * 7, "run_blocks": [6, 7]}
    above = {"variant": "b", "blocks_s": [1.1] * 6 + [2.4] * 7, "run_blocks": [6, 7]}
    found = ratio(above, below)
    assert found.runs == pytest.approx([1.1, 1.2])
    assert found.interval.median == pytest.approx((1.1 * 1.2) ** 0.5)
    with pytest.raises(MeasurementError, match=r"processes of b have \[7, 6\] blocks and those of"):
        ratio(above | {"run_blocks": [7, 6]}, below)


def test_rows_of_one_process_pair_as_ever():
    found = ratio({"blocks_s": [2.0] * 6}, {"blocks_s": [1.0] * 6})
    assert isinstance(found, Replicated) and found.runs == pytest.approx([2.0])
    with pytest.raises(MeasurementError, match="blocks"):
        ratio({"blocks_s": [2.0] * 6}, {"blocks_s": [1.0] * 5})


def test_fewer_values_than_that_have_no_interval():
    exact = [intervals.median_interval(range(n)).exact for n in range(1, 9)]
    assert exact.index(True) + 1 == replication.EXACT_FROM
