"""The rules of judging, on made-up processes whose spread, bias and error rates are known."""

import numpy as np
import pandas as pd
import pytest

from anatomy.chapters.harnesses.contest import targets
from anatomy.chapters.harnesses.contest.standings import RIVALS, Contest, where
from tests.chapters.harnesses.contests import (
    ALL,
    ONE,
    TEN,
    TIME_S,
    figures,
    long_runs,
    others,
    pairs,
    truths,
)

OURS = {"compare": 0.0001}


def one(table, **wanted):
    (row,) = where(table, **wanted).to_dict("records")
    return row


def contest(*tables, reference=None):
    return Contest(pd.concat(tables), truths() if reference is None else reference)


def target(name, *tables, reference=None):
    return targets.target(contest(*tables, reference=reference), name)


def test_spreads_and_their_ratio_are_those_put_in():
    cell = where(contest(figures()).spreads, op="W1", quantity="gpu_cold")
    ours, theirs = one(cell, variant="compare"), one(cell, variant="do_bench mean")
    # Of evenly spaced figures, 95 % of the spread lies between the quantiles.
    assert ours["spread"] == pytest.approx(0.95 * 0.01) and np.isnan(ours["ratio"])
    assert theirs["spread"] == pytest.approx(0.95 * 0.04)
    assert theirs["ratio"] == pytest.approx(0.25)
    assert theirs["ratio_low"] < 0.25 < theirs["ratio_high"]


def test_the_target_asks_for_half_of_the_rivals_better_way():
    met = target("spread-cold", figures())
    assert met.met and (met.found, met.text) == (10, "10 workloads")
    # do_bench's median spreads as little as ours: the mean's spread does not count any more.
    better = figures(ALL | {"do_bench median": 0.01})
    lost, worst = target("spread-cold", better), target("worst-cold", better)
    assert lost.met is False and lost.found < targets.ENOUGH
    assert "do_bench median" in worst.detail and worst.found > 0.5
    assert target("spread-wall", better).met, "Timer has nothing to do with it"


@pytest.mark.parametrize(("halved", "met"), [(6, False), (7, True)])
def test_seven_workloads_of_ten_must_be_halved(halved, met):
    table = figures()
    rest = table.op.isin([*TEN][halved:]) & (table.variant == "compare")
    table.loc[rest, "median_s"] = TIME_S + 3 * (table.median_s[rest] - TIME_S)  # 3 % against 4 %
    found = target("spread-cold", table)
    assert found.found == halved and found.met is met


def test_one_workload_far_above_is_enough_to_lose():
    table = figures()
    noisy = (table.op == "W3") & (table.variant == "compare")
    table.loc[noisy, "median_s"] = TIME_S * np.linspace(0.9, 1.1, noisy.sum())
    half, worst = target("spread-cold", table), target("worst-cold", table)
    assert half.met and half.detail == "of 10; not on W3", "nine of ten are halved"
    assert worst.met is False and "W3" in worst.detail and worst.found > targets.WORST


def test_a_clock_that_adds_to_every_figure_gains_nothing_by_it():
    plain = figures({"compare": 0.04, "do_bench mean": 0.04}, ONE)
    longer = plain.copy()
    # Ten times the time, the same seconds of spread.
    longer.loc[longer.variant == "do_bench mean", "median_s"] += 9 * TIME_S
    for table in (plain, longer):
        row = one(contest(table).spreads, quantity="gpu_cold", variant="do_bench mean")
        assert row["spread"] == pytest.approx(0.95 * 0.04) and row["per_s"] == TIME_S
        assert row["ratio"] == pytest.approx(1.0)


def test_without_a_reference_all_spreads_are_shares_of_the_harnesses_median():
    table = figures(times=ONE)
    table.loc[table.variant == "inductor", "median_s"] *= 3
    cold = where(Contest(table).spreads, quantity="gpu_cold")
    assert list(cold.per_s) == pytest.approx([TIME_S] * 4, rel=1e-6)


def test_own_noise_is_the_spread_of_successive_figures():
    # Evenly spaced, so 95 % of the distance lies between the quantiles.
    table = pd.concat([figures({"compare": 0.04}, ONE), long_runs(np.linspace(0, 0.01, 6))])
    row = contest(table).own_noise.loc["W1", "gpu_cold"]
    assert row.own == pytest.approx(0.0095) and row.own_s == pytest.approx(0.0095 * TIME_S)
    assert 0.01 < row.across < 0.04
    assert contest(figures()).own_noise.empty
    alone = contest(table[table.process == 0]).own_noise
    assert alone.across.isna().all() and alone.own.notna().all()


@pytest.mark.parametrize(
    ("reference", "bias", "within"),
    [
        (100e-6, 0.02, False),  # 2 % of a long kernel
        (100e-6, 0.005, True),
        (100e-6, -0.02, False),
        (5e-6, 0.05, True),  # 0.25 us of a short one
        (5e-6, 0.2, False),
        (100e-6, 0.015, False),  # more than 1 %
        (9e-6, 0.05, True),  # 0.45 us: short are kernels under 10 us
        (11e-6, 0.04, False),  # 0.44 us
        (5e-6, 0.11, False),  # 0.55 us
    ],
)
def test_a_bias_is_judged_by_the_references_length(reference, bias, within):
    found = contest(
        figures(OURS, {"W1": reference}, {"compare": bias}), reference=truths(reference)
    )
    cell = one(found.biases, quantity="gpu_cold")
    assert cell["bias"] == pytest.approx(bias, abs=1e-3)
    assert cell["off_s"] == pytest.approx(bias * reference, rel=0.05)
    assert cell["within"] is within
    counted = targets.target(found, "bias")
    assert counted.met is within and counted.found == (2 if within else 0), "cold and warm count"


def test_a_reference_shows_its_lowest_and_highest_round():
    reference = truths().assign(low_s=0.9 * truths().median_s, high_s=1.1 * truths().median_s)
    row = one(contest(figures(OURS, ONE), reference=reference).biases, quantity="gpu_cold")
    ends = row["reference_s"], row["reference_low"], row["reference_high"]
    assert ends == pytest.approx((TIME_S, 0.45 * TIME_S, 2.2 * TIME_S))


def test_minutes_apart_stand_beside_the_target_of_coverage():
    table = figures(OURS, ONE).assign(rest_s=2 * TIME_S)  # minutes apart, nothing is held
    found = contest(table, long_runs([0.0] * 6)).coverages
    assert one(found, kind="long run", quantity="all")["hits"] == 72
    assert one(found, kind="minutes apart", quantity="gpu_cold")["hits"] == 0
    assert one(found, kind="minutes apart", quantity="all")["count"] == 36, "no wall times"


@pytest.mark.parametrize(
    ("runs", "found", "met"),
    [
        ([[0.0] * 6], "72 of 72", True),  # 99 % of 72 is not told from all of them
        ([[0.0] * 6] * 2, "144 of 144", False),  # intervals can be too wide as well
        ([[0.02] + [0.0] * 5], "60 of 72", False),
        ([[0.02] + [0.0] * 11], "132 of 144", True),
    ],
)
def test_the_target_of_coverage_has_two_ends(runs, found, met):
    tables = [long_runs(steps, f"W{number}") for number, steps in enumerate(runs)]
    counted = target("coverage-blocks", figures(OURS, ONE), *tables)
    assert (counted.detail, counted.met) == (found, met)


def test_process_intervals_are_asked_about_the_reference():
    def held(table, reference=None):
        return where(contest(table, reference=reference).coverages, kind="processes")

    table = figures({"compare": 0.02})
    every = one(held(table), quantity="all")
    assert every["count"] == 20 and every["share"] > 0.8
    assert one(held(table, truths(1.5 * TIME_S)), quantity="all")["share"] == 0.0
    assert held(table[table.process < 5]).empty, "five processes give no 95 % interval"


@pytest.mark.parametrize("word", ["slower", "faster"])
def test_equals_that_get_a_verdict_are_false_positives(word):
    same = pairs("pair", [1.0] * 9 + [1.03], verdict="undecided")
    assert target("false-positives", same).met
    same.loc[same.ratio > 1.02, "verdict"] = word
    row = one(contest(same).errors, variant="compare", kind="same", by="verdict")
    assert (row["hits"], row["count"]) == (6, 60)
    assert one(contest(same).errors, variant="compare", by="interval")["hits"] == 6
    assert target("false-positives", same).met is False


def test_two_percent_is_found_by_three_processes_and_not_claimed_by_one():
    # 1.95 %: just under what a single process may claim, whatever its interval.
    table = pairs("effect", [1.0195] * 3, verdict="undecided")
    found = where(contest(table).errors, variant="compare", kind="effect")
    alone, three = one(found, by="verdict"), one(found, by="verdict of 3 processes")
    assert (alone["hits"], alone["count"]) == (0, 18)
    assert (three["hits"], three["count"]) == (6, 6), "two threes in each of three replicates"
    assert target("power", table).met


def test_a_floor_above_the_effect_finds_nothing():
    found = target("power", pairs("effect", [1.0195] * 3, verdict="same", floor=0.03))
    assert found.found == 0.0 and found.met is False


def test_the_floor_of_three_processes_is_the_largest_of_theirs():
    table = pairs("effect", [1.0195], verdict="undecided")
    table.loc[table.process == 1, "noise_floor"] = 0.03
    assert list(contest(table).threes("effect").noise_floor) == [0.03, 0.002]


def test_three_processes_are_three_draws_of_placement_and_not_one_of_many_blocks():
    table = pairs("effect", [1.0195], verdict="undecided")
    one_less = table.process == 1  # by less than what placement alone may do
    table.loc[one_less, "block_ratios"] = table[one_less].block_ratios.map(
        lambda ratios: [1 + (ratio - 1) / 8 for ratio in ratios]
    )
    assert list(contest(table).threes("effect").verdict) == ["undecided", "slower"]


@pytest.mark.parametrize(("ratio", "found"), [(1.0, "0 of 2"), (1.01, "2 of 2")])
def test_threes_of_equals_make_no_claim_and_are_counted(ratio, found):
    table = pairs("pair", [ratio], verdict="undecided")
    three = target("false-positives-of-threes", table)
    assert three.detail == found and three.met is (found == "0 of 2")


@pytest.mark.parametrize(("apart", "hits"), [(1.02, 12), (1.009, 0)])
def test_rivals_without_verdicts_are_counted_by_how_far_their_figures_lie_apart(apart, hits):
    table = figures(OURS | {"inductor": 0.0001}, ONE)
    table.loc[(table.variant == "inductor") & (table.replicate == 1), "median_s"] *= apart
    rival = {"variant": "inductor"}
    effects = others("effect", rival | {"ratio": 1.02}, rival | {"ratio": 1.005})
    found = where(contest(table, effects).errors, variant="inductor")
    same, effect = one(found, kind="same"), one(found, kind="effect")
    assert (same["hits"], same["count"]) == (hits, 12), "first to second and second to third"
    assert (effect["hits"], effect["count"]) == (1, 2)


@pytest.mark.parametrize(
    ("cost", "wide", "met"), [(0.5, False, True), (1.2, False, False), (0.5, True, False)]
)
def test_an_overhead_is_met_by_the_slowest_and_only_if_it_is_narrow(cost, wide, met):
    runs = others("overhead", {"cost_s": 0.4, "wide": False}, {"cost_s": cost, "wide": wide})
    found = target("overhead", runs)
    assert found.met is met and found.found == cost


def test_without_recordings_every_target_is_open():
    found = targets.judged(Contest.of([])).values()
    assert len(found) == 11
    assert {(each.found, each.met, each.verdict) for each in found} == {(None, None, "open")}


def test_a_harness_that_failed_leaves_its_targets_open_and_the_rest_decided():
    table = figures()
    failed = others("estimate", {"variant": "do_bench", "note": "no triton"})
    tables = table[~table.variant.str.startswith("do_bench")], failed
    assert target("spread-cold", *tables).met is None, "no rival ran"
    assert target("coverage-blocks", *tables).met is None, "there was no long run"
    assert target("spread-wall", *tables).met


def test_costs_are_the_typical_and_the_largest():
    table = figures(OURS, ONE)
    table.loc[table.index[0], "cost_s"] = 0.9
    row = one(contest(table).costs, quantity="gpu_cold")
    assert (row["cost_s"], row["largest_s"]) == (0.31, 0.9)


def test_every_rival_of_one_quantity_has_a_colour_and_a_shape_of_its_own():
    from anatomy.figures.charts import grammar

    most = max(len(rivals) for rivals in RIVALS.values()) + 1
    assert most <= len(grammar.SERIES) == len(set(grammar.SERIES)) == len(grammar.SHAPES)
