"""Why a target is missed, on made-up processes in which the reason is known."""

import numpy as np
import pandas as pd
import pytest

from anatomy.chapters.harnesses.contest import shortfalls, standings, targets
from tests.chapters.harnesses.test_standings import ALL, TIME_S, figures, long_runs, pairs, truths


def explained(table, reference=None, *, target):
    """The shortfalls of one target, which is missed."""
    reference = truths() if reference is None else reference
    judged = targets.judged(table, reference).set_index("target")
    assert judged.loc[target].met is False
    return [
        row
        for row in shortfalls.explained(table, reference)
        if row.target.replace("worst-", "spread-") == target.replace("worst-", "spread-")
    ]


def tight(reference=TIME_S):
    """A reference whose rounds lie within a thousandth."""
    table = truths(reference)
    table["median_s"] = reference
    return table.assign(low_s=0.999 * reference, high_s=1.001 * reference)


def test_a_lost_spread_that_moves_between_processes_is_not_the_stopwatchs():
    table = pd.concat([figures(ALL | {"compare": 0.04}), long_runs(np.linspace(0, 0.001, 6))])
    rows = explained(table, target="spread-cold")
    assert [row.where for row in rows].count("W1, gpu_cold") == 1 and len(rows) == 10
    first = next(row for row in rows if row.where == "W1, gpu_cold")
    assert "Six successive estimates spread by 0.09%" in first.why
    assert "what moves is the card or the process, not the stopwatch." in first.why
    assert first.why.endswith("The target asks for 1.90%.")
    assert first.found.endswith("do_bench mean's") or first.found.endswith("do_bench median's")


def test_a_lost_spread_that_is_there_in_succession_is_the_stopwatchs():
    table = pd.concat([figures(ALL | {"compare": 0.04}), long_runs(np.linspace(0, 0.04, 6))])
    first = next(row for row in explained(table, target="spread-cold") if "W1," in row.where)
    assert "the stopwatch itself moves so much at this budget." in first.why


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (0.001, "what moves lies between the runs: card, host or process."),
        (0.05, "the stopwatch itself moves so much at this budget."),
        (None, "No interval was recorded that could tell"),
    ],
)
def test_without_a_long_run_the_intervals_of_the_estimates_tell(width, told):
    table = figures(ALL | {"compare": 0.04})
    ends = (np.nan, np.nan) if width is None else (1 - width, 1 + width)
    table["low_s"], table["high_s"] = (table.median_s * end for end in ends)
    rows = explained(table, target="spread-wall")
    assert len(rows) == 10 and all(told in row.why for row in rows)
    assert all("Six successive" not in row.why for row in rows)


def test_the_worst_place_alone_is_explained_once():
    table = figures(ALL)
    noisy = (table.op == "W3") & (table.variant == "compare")
    table.loc[noisy, "median_s"] = TIME_S * np.linspace(0.9, 1.1, noisy.sum())
    assert [row.where for row in explained(table, target="worst-cold")] == ["W3, gpu_cold"]


@pytest.mark.parametrize(
    ("off", "told"),
    [
        (1.05, "18 of 18 of our figures lie above all rounds of the reference"),
        (0.95, "18 of 18 of our figures lie below all rounds of the reference"),
    ],
)
def test_a_bias_outside_of_every_round_is_a_difference(off, told):
    table = figures(ALL, ops=["W1"])
    table.loc[table.variant == "compare", "median_s"] *= off
    rows = explained(table, tight(), target="bias")
    assert [row.where for row in rows] == ["W1, gpu_cold", "W1, gpu_warm"]
    assert told in rows[0].why and "differ in the same way every time." in rows[0].why
    assert "Theirs: " in rows[0].why and "inductor " in rows[0].why


def test_a_bias_among_the_rounds_is_the_cards():
    table = figures(ALL, ops=["W1"])
    table.loc[table.variant == "compare", "median_s"] *= 1.05
    reference = tight().assign(high_s=1.2 * TIME_S)
    (first, _) = explained(table, reference, target="bias")
    assert "with our figure among them: the card was not in one state." in first.why
    half = tight().assign(high_s=1.049 * TIME_S)
    (first, _) = explained(table, half, target="bias")
    assert "reach from" in first.why and first.why.count("both move.") == 1


def test_intervals_that_miss_say_how_far_and_where():
    table = pd.concat([figures(ALL), long_runs([0.02, 0.02, 0.0, 0.0, 0.0, 0.0])])
    cold, warm = explained(table, target="coverage-blocks")
    assert (cold.where, cold.found) == ("gpu_cold", "24 of 36")
    assert "Half an interval is typically 1.00% wide" in cold.why
    assert "is 2.00% away from what it should hold. Most on W1 (12)." in cold.why
    assert warm.where == "gpu_warm"


def test_intervals_that_never_miss_are_wider_than_need_be():
    runs = [long_runs([0.001] * 6, op=op) for op in ("W1", "W2")]
    cold, _ = explained(pd.concat([figures(ALL), *runs]), target="coverage-blocks")
    assert cold.found == "72 of 72" and "its middle 0.10% away" in cold.why


def test_equals_told_apart_and_effects_not_found_are_listed_by_place():
    same = pairs("pair", [1.03], verdict="slower", op="W4")
    effect = pairs("effect", [1.0195], verdict="undecided", floor=0.03)
    table = pd.concat([figures(ALL), same, effect])
    (alone,) = explained(table, target="false-positives")
    assert (alone.where, alone.found) == ("W4, gpu_cold", "6 of 6")
    assert "1.030×" in alone.why or "1.03×" in alone.why
    (three,) = explained(table, target="false-positives-of-threes")
    assert three.found == "2 of 2"
    (power,) = explained(table, target="power")
    assert power.found == "0 of 2"
    assert power.why.endswith("What is below its floor is never claimed.")


def test_a_late_or_wide_comparison_is_named():
    row = {"part": "overhead", "op": "E2", "quantity": "gpu_cold", "variant": "compare"}
    late = row | {"process": 1, "cost_s": 1.4, "wide": False}
    wide = row | {"process": 2, "cost_s": 0.4, "wide": True}
    table = pd.concat([figures(ALL), pd.DataFrame([late, wide])])
    told = {each.where[-1]: each.why for each in explained(table, target="overhead")}
    assert told["1"].endswith("narrow, but late.") and "did not agree" in told["2"]


def test_what_is_met_or_open_needs_no_reason():
    assert shortfalls.explained(figures(ALL), tight()) == []
    nothing = pd.DataFrame(columns=figures(ALL, ops=["W1"]).columns)
    assert shortfalls.explained(nothing, pd.DataFrame()) == []
    assert shortfalls.explained(figures(ALL), pd.DataFrame()) == []


def test_every_target_has_somebody_who_explains_it():
    for name in targets.judged(figures(ALL), truths()).target:
        assert any(name.startswith(kind) for kind in shortfalls.EXPLAINED)
    assert set(targets.COVERAGES.values()) < set(standings.COVERED)


@pytest.mark.parametrize(
    ("profiled", "told"),
    [(1.02, "it lengthens what it records."), (1.0, "while the profiler runs. ")],
)
def test_a_bias_that_the_profiler_makes_is_laid_at_its_door(profiled, told):
    table = figures(ALL, ops=["W1"])
    table.loc[table.variant == "compare", "median_s"] *= 0.98
    witness = {"events_s": 0.98 * TIME_S, "events_profiled_s": 0.98 * TIME_S * profiled}
    (first, _) = explained(table, tight().assign(**witness), target="bias")
    assert told in first.why


def test_another_clock_behind_the_record_is_said():
    table = figures(ALL, ops=["W1"]).assign(sm_clock_mhz=1980)
    table.loc[table.variant == "compare", "median_s"] *= 0.9
    (first, _) = explained(table, tight().assign(sm_clock_mhz=1605), target="bias")
    assert "ran at 1980 MHz for our figures and at 1605 MHz for the record." in first.why
    (first, _) = explained(table, tight().assign(sm_clock_mhz=1980), target="bias")
    assert "MHz" not in first.why


def test_a_record_made_at_a_lower_clock_than_the_others_says_so():
    slow = tight().assign(sm_clock_mhz=1785)
    other = slow.assign(op="W9", sm_clock_mhz=1980)
    table = figures(ALL, ops=["W1"])
    table.loc[table.variant == "compare", "median_s"] *= 0.9
    told = explained(table, pd.concat([slow, other]), target="bias")[0].why
    assert "made at 1785 MHz, those of other workloads at up to 1980 MHz" in told
    same = pd.concat([slow.assign(sm_clock_mhz=1980), other])
    assert "MHz" not in explained(table, same, target="bias")[0].why


def test_a_spread_below_what_the_card_moves_by_is_out_of_reach():
    table = figures(ALL | {"compare": 0.04})
    moving = tight().assign(low_s=0.9 * TIME_S, high_s=1.1 * TIME_S)
    for reference, told in ((tight(), False), (moving, True)):
        rows = explained(table, reference, target="spread-wall")
        assert rows and all(("less than card and host move" in row.why) is told for row in rows)
