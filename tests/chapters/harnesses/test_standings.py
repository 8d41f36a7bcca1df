"""The rules of judging, on made-up processes whose spread, bias and error rates are known."""

import numpy as np
import pandas as pd
import pytest

from anatomy.chapters.harnesses.contest import standings, targets

OPS = [f"W{number}" for number in range(1, 11)]
TIME_S = 100e-6
SEED = 11


def figures(spreads: dict[str, float], ops=OPS):
    """Six processes of three replicates; `spreads` is each harness's, around TIME_S.

    The 18 figures of a cell are evenly spaced over its spread, in a drawn order.
    """
    generator = np.random.default_rng(SEED)
    quantity_of = {rival: q for q, rivals in standings.RIVALS.items() for rival in rivals}
    runs = [
        (process, replicate) for process in range(standings.PROCESSES) for replicate in range(3)
    ]
    rows = []
    for op in ops:
        for name, spread in spreads.items():
            for quantity in standings.RIVALS if name == "compare" else [quantity_of[name]]:
                steps = generator.permutation(np.linspace(-0.5, 0.5, len(runs)))
                for (process, replicate), step in zip(runs, steps, strict=True):
                    time = TIME_S * (1 + spread * step)
                    rows.append(
                        {
                            "part": "estimate", "process": process, "op": op,
                            "quantity": quantity, "variant": name, "replicate": replicate,
                            "median_s": time, "low_s": time * 0.99, "high_s": time * 1.01,
                            "rest_s": TIME_S, "cost_s": 0.31, "ratio": np.nan,
                        }
                    )  # fmt: skip
    return pd.DataFrame(rows)


def pairs(part: str, ratios, *, verdict, width=0.001, block_noise=0.002, op="E1", floor=0.002):
    """One comparison for each process and ratio, with its blocks around that ratio."""
    generator = np.random.default_rng(SEED)
    rows = []
    for process in range(standings.PROCESSES):
        for replicate, ratio in enumerate(ratios):
            blocks = ratio * np.exp(block_noise * generator.standard_normal(24))
            rows.append(
                {
                    "part": part, "process": process, "op": op, "quantity": "gpu_cold",
                    "variant": "compare", "replicate": replicate, "median_s": TIME_S,
                    "ratio": ratio, "ratio_low": ratio - width, "ratio_high": ratio + width,
                    "noise_floor": floor, "verdict": verdict, "block_ratios": list(blocks),
                    "cost_s": 0.3,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def truths(seconds: float = TIME_S, ops=OPS) -> pd.DataFrame:
    rows = [
        {"process": p, "op": op, "quantity": q, "variant": "CUPTI", "median_s": seconds * off}
        for p, off in enumerate((0.5, 1.0, 2.0))  # their median is `seconds`
        for op in ops
        for q in standings.RIVALS
    ]
    return pd.DataFrame(rows)


def one(table: pd.DataFrame, **where):
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1, table
    return table.iloc[0]


ALL = {"compare": 0.01, **{name: 0.04 for rivals in standings.RIVALS.values() for name in rivals}}


def test_spreads_and_their_ratio_are_those_put_in():
    table = standings.spreads(figures(ALL, ops=["W1", "W2"]), truths())
    ours = one(table, op="W1", quantity="gpu_cold", variant="compare")
    theirs = one(table, op="W1", quantity="gpu_cold", variant="do_bench mean")
    assert ours.runs == theirs.runs == 18
    # Of evenly spaced figures, 95 % of the spread lies between the quantiles.
    assert ours.spread == pytest.approx(0.95 * 0.01)
    assert theirs.spread == pytest.approx(0.95 * 0.04)
    assert theirs.ratio == pytest.approx(0.25)
    assert theirs.ratio_low < 0.25 < theirs.ratio_high
    assert np.isnan(ours.ratio)


def test_the_target_asks_for_half_of_the_rivals_better_way():
    met = targets.judged(figures(ALL), truths())
    assert one(met, target="spread-cold").met and one(met, target="spread-cold").found == 10
    # do_bench's median spreads as little as ours: the mean's spread does not count any more.
    better = figures(ALL | {"do_bench median": 0.01})
    lost = targets.judged(better, truths())
    assert not one(lost, target="spread-cold").met
    assert one(lost, target="spread-cold").found < standings.ENOUGH
    assert one(lost, target="spread-wall").met, "Timer has nothing to do with it"
    worst = one(lost, target="worst-cold")
    assert "do_bench median" in worst.detail and worst.found > 0.5


@pytest.mark.parametrize(("halved", "met"), [(6, False), (7, True)])
def test_seven_workloads_of_ten_must_be_halved(halved, met):
    table = figures(ALL)
    rest = table.op.isin(OPS[halved:]) & (table.variant == "compare")
    table.loc[rest, "median_s"] = TIME_S + 3 * (table.median_s[rest] - TIME_S)  # 3 % against 4 %
    target = one(targets.judged(table, truths()), target="spread-cold")
    assert target.found == halved and bool(target.met) is met


def test_one_workload_far_above_is_enough_to_lose():
    table = figures(ALL)
    noisy = (table.op == "W3") & (table.variant == "compare")
    table.loc[noisy, "median_s"] = TIME_S * np.linspace(0.9, 1.1, noisy.sum())
    found = targets.judged(table, truths())
    assert one(found, target="spread-cold").met, "nine of ten are halved"
    assert "W3" in one(found, target="spread-cold").detail
    worst = one(found, target="worst-cold")
    assert not worst.met and "W3" in worst.detail and worst.found > standings.WORST


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
    table = figures({"compare": 0.0001}, ops=["W1"])
    table["median_s"] *= (1 + bias) * reference / TIME_S
    cell = one(standings.biases(table, truths(reference)), quantity="gpu_cold")
    assert cell.bias == pytest.approx(bias, abs=1e-3)
    assert cell.off_s == pytest.approx(bias * reference, rel=0.05)
    assert bool(cell.within) is within
    target = one(targets.judged(table, truths(reference)), target="bias")
    assert target.met is within and target.found == (2 if within else 0), "cold and warm count"


def long_runs(steps, *, op="W1", quantities=("gpu_cold", "gpu_warm"), width=0.01):
    """In each process six successive figures, `steps` away from TIME_S, as shares of it."""
    rows = [
        {
            "part": "long", "process": process, "op": op, "quantity": quantity,
            "variant": "compare", "replicate": index, "median_s": TIME_S * (1 + step),
            "low_s": TIME_S * (1 + step - width), "high_s": TIME_S * (1 + step + width),
            "rest_s": TIME_S,
        }
        for process in range(standings.PROCESSES)
        for quantity in quantities
        for index, step in enumerate(steps)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_target_of_coverage_is_about_long_runs_and_minutes_apart_stand_beside_it():
    table = figures({"compare": 0.0001}, ops=["W1"])
    table["rest_s"] = 2 * TIME_S  # minutes apart, nothing is held
    both = pd.concat([table, long_runs([0.0] * 6)])
    found = standings.coverages(both, truths())
    whole = one(found, kind="long run", quantity="all")
    assert (whole.hits, whole["count"]) == (72, 72)
    assert one(found, kind="minutes apart", quantity="gpu_cold").hits == 0
    assert one(found, kind="minutes apart", quantity="all")["count"] == 36, "no wall times"
    target = one(targets.judged(both, truths()), target="coverage-blocks")
    assert (target.found, target.met) == (1.0, True), "99 % of 72 is not told from all of them"
    many = pd.concat([both, long_runs([0.0] * 6, op="W2")])
    target = one(targets.judged(many, truths()), target="coverage-blocks")
    assert (target.found, target.met) == (1.0, False), "intervals can be too wide as well"
    missed = one(
        targets.judged(pd.concat([table, long_runs([0.02] + [0.0] * 5)]), truths()),
        target="coverage-blocks",
    )
    assert missed.detail == "60 of 72" and not missed.met
    some = long_runs([0.0] * 6)
    some.loc[some.index[:4], "low_s"] = 1.001 * TIME_S
    met = one(targets.judged(pd.concat([table, some]), truths()), target="coverage-blocks")
    assert met.detail == "68 of 72" and met.met


def test_without_long_runs_the_target_of_coverage_is_open():
    found = targets.judged(figures({"compare": 0.0001}), truths())
    assert one(found, target="coverage-blocks").met is None
    assert one(found, target="spread-cold").met is None, "no rival ran"


def test_a_clock_that_adds_to_every_figure_gains_nothing_by_it():
    plain = figures({"compare": 0.04, "do_bench mean": 0.04, "do_bench median": 0.04}, ops=["W1"])
    longer = plain.copy()
    rival = longer.variant == "do_bench mean"
    longer.loc[rival, "median_s"] += 9 * TIME_S  # ten times the time, the same seconds of spread
    for table in (plain, longer):
        row = one(standings.spreads(table, truths()), quantity="gpu_cold", variant="do_bench mean")
        assert row.spread == pytest.approx(0.95 * 0.04) and row.per_s == TIME_S
        assert row.ratio == pytest.approx(1.0)


def test_without_a_reference_all_spreads_are_shares_of_the_harnesses_median():
    table = figures(ALL, ops=["W1"])
    table.loc[table.variant == "inductor", "median_s"] *= 3
    found = standings.spreads(table, pd.DataFrame())
    cold = found[found.quantity == "gpu_cold"]
    assert cold.per_s.nunique() == 1
    assert cold.per_s.iloc[0] == pytest.approx(TIME_S, rel=1e-6)
    assert not targets.judged(table, pd.DataFrame()).met.isna().all()


def test_own_noise_is_the_spread_of_successive_figures():
    # Evenly spaced, so 95 % of the distance lies between the quantiles.
    table = pd.concat([figures({"compare": 0.04}, ops=["W1"]), long_runs(np.linspace(0, 0.01, 6))])
    row = one(standings.own_noise(table, truths()), quantity="gpu_cold")
    assert row.own == pytest.approx(0.0095) and row.own_s == pytest.approx(0.0095 * TIME_S)
    assert 0.01 < row.across < 0.04
    assert standings.own_noise(figures(ALL), truths()).empty
    alone = standings.own_noise(table[table.process == 0], truths())
    assert alone.across.isna().all() and alone.own.notna().all()


def test_a_reference_shows_its_lowest_and_highest_round():
    reference = truths()
    reference["low_s"], reference["high_s"] = 0.9 * reference.median_s, 1.1 * reference.median_s
    row = one(
        standings.biases(figures({"compare": 0.01}, ops=["W1"]), reference), quantity="gpu_cold"
    )
    assert (row.reference_s, row.reference_low, row.reference_high) == pytest.approx(
        (TIME_S, 0.45 * TIME_S, 2.2 * TIME_S)
    )
    bare = one(standings.biases(figures(ALL, ops=["W1"]), truths()), variant="inductor")
    assert bare.reference_low == 0.5 * TIME_S, "a reference without rounds is its own round"


def test_process_intervals_are_asked_about_the_reference():
    table = figures({"compare": 0.02})
    found = standings.coverages(table, truths())
    assert one(found, kind="processes", quantity="all")["count"] == 20
    assert one(found, kind="processes", quantity="all").share > 0.8
    away = standings.coverages(table, truths(1.5 * TIME_S))
    assert one(away, kind="processes", quantity="all").share == 0.0
    few = standings.coverages(table[table.process < 5], truths())
    assert few[few.kind == "processes"].empty, "five processes give no 95 % interval"


@pytest.mark.parametrize("word", ["slower", "faster"])
def test_equals_that_get_a_verdict_are_false_positives(word):
    same = pairs("pair", [1.0] * 9 + [1.03], verdict="undecided", op="W1")
    same.loc[same.ratio > 1.02, "verdict"] = word
    table = pd.concat([figures(ALL), same])
    found = standings.errors(table)
    row = one(found, variant="compare", kind="same", by="verdict")
    assert (row.hits, row["count"]) == (6, 60)
    assert one(found, variant="compare", kind="same", by="interval").hits == 6
    assert not one(targets.judged(table, truths()), target="false-positives").met
    right = table.assign(verdict=table.verdict.replace(word, "undecided"))
    assert one(targets.judged(right, truths()), target="false-positives").met


def test_two_percent_is_found_by_three_processes_and_not_claimed_by_one():
    # 1.95 %: just under what a single process may claim, whatever its interval.
    table = pd.concat([figures(ALL), pairs("effect", [1.0195] * 3, verdict="undecided")])
    found = standings.errors(table)
    alone = one(found, variant="compare", kind="effect", by="verdict")
    three = one(found, variant="compare", kind="effect", by="verdict of 3 processes")
    assert (alone.hits, alone["count"]) == (0, 18)
    assert (three.hits, three["count"]) == (6, 6), "two threes in each of three replicates"
    assert one(targets.judged(table, truths()), target="power").met


def test_a_floor_above_the_effect_finds_nothing():
    table = pd.concat([figures(ALL), pairs("effect", [1.0195] * 3, verdict="same", floor=0.03)])
    target = one(targets.judged(table, truths()), target="power")
    assert target.found == 0.0 and not target.met


def test_the_floor_of_three_processes_is_the_largest_of_theirs():
    table = pairs("effect", [1.0195], verdict="undecided")
    table.loc[table.process == 1, "noise_floor"] = 0.03
    assert list(standings.threes(table).noise_floor) == [0.03, 0.002]


def test_three_processes_are_three_draws_of_placement_and_not_one_of_many_blocks():
    table = pairs("effect", [1.0195], verdict="undecided")
    one_less = table.process == 1  # by less than what placement alone may do
    table.loc[one_less, "block_ratios"] = table[one_less].block_ratios.map(
        lambda ratios: [1 + (ratio - 1) / 8 for ratio in ratios]
    )
    assert list(standings.threes(table).verdict) == ["undecided", "slower"]


def test_threes_of_equals_make_no_claim_and_are_counted():
    same = pairs("pair", [1.0], verdict="undecided", op="W1")
    target = one(
        targets.judged(pd.concat([figures(ALL), same]), truths()),
        target="false-positives-of-threes",
    )
    assert target.met and target.detail == "0 of 2"
    drifted = pairs("pair", [1.01], verdict="undecided", op="W1")
    target = one(
        targets.judged(pd.concat([figures(ALL), drifted]), truths()),
        target="false-positives-of-threes",
    )
    assert not target.met and target.detail == "2 of 2"


def test_rivals_without_verdicts_are_counted_by_how_far_their_figures_lie_apart():
    table = figures({"compare": 0.0001, "inductor": 0.0001}, ops=["W1"])
    second = (table.variant == "inductor") & (table.replicate == 1)
    table.loc[second, "median_s"] *= 1.02
    point = {"part": "effect", "variant": "inductor", "op": "E1", "quantity": "gpu_cold"}
    effects = [point | {"process": p, "ratio": ratio} for p, ratio in enumerate((1.02, 1.005))]
    found = standings.errors(pd.concat([table, pd.DataFrame(effects)]))
    same = one(found, variant="inductor", kind="same")
    assert (same.hits, same["count"]) == (12, 12), "first to second and second to third"
    table.loc[second, "median_s"] *= 1.009 / 1.02
    close = one(standings.errors(table), variant="inductor", kind="same")
    assert (close.hits, close["count"]) == (0, 12), "0.9 % apart, up and down"
    effect = one(found, variant="inductor", kind="effect")
    assert (effect.hits, effect["count"]) == (1, 2)


@pytest.mark.parametrize(
    ("cost", "wide", "met"), [(0.5, False, True), (1.2, False, False), (0.5, True, False)]
)
def test_an_overhead_is_met_by_the_slowest_and_only_if_it_is_narrow(cost, wide, met):
    row = {"part": "overhead", "op": "E2", "quantity": "gpu_cold", "variant": "compare"}
    runs = [row | {"process": 0, "cost_s": 0.4, "wide": False}]
    runs.append(row | {"process": 1, "cost_s": cost, "wide": wide})
    table = pd.concat([figures(ALL), pd.DataFrame(runs)])
    target = one(targets.judged(table, truths()), target="overhead")
    assert target.met is met and target.found == max(cost, 0.4)


def test_without_recordings_every_target_is_open():
    empty = pd.DataFrame(columns=figures(ALL, ops=["W1"]).columns)
    found = targets.judged(empty, pd.DataFrame())
    assert len(found) == 11 and found.met.isna().all() and found.found.isna().all()


def test_a_harness_that_failed_leaves_its_targets_open_and_the_rest_decided():
    table = figures(ALL)
    table = table[~table.variant.str.startswith("do_bench")]
    failed = {"part": "estimate", "op": "W1", "quantity": "gpu_cold", "variant": "do_bench"}
    table = pd.concat([table, pd.DataFrame([failed | {"process": 0, "note": "no triton"}])])
    found = targets.judged(table, truths())
    assert one(found, target="spread-cold").met is None
    assert one(found, target="spread-wall").met


def test_costs_are_the_typical_and_the_largest():
    table = figures({"compare": 0.01}, ops=["W1"])
    table.loc[table.index[0], "cost_s"] = 0.9
    row = one(standings.costs(table), quantity="gpu_cold")
    assert (row.cost_s, row.largest_s, row.runs) == (0.31, 0.9, 18)
