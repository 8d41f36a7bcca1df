"""The comparison of harnesses, with harnesses and workloads whose answer is known."""

import os
import subprocess
import sys
from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from anatomy.chapters.harnesses import harnesses
from anatomy.chapters.harnesses.contest import standings, targets
from anatomy.chapters.harnesses.contest.standings import Contest
from anatomy.chapters.harnesses.stopwatches import adapters, protocol, workloads
from anatomy.chapters.harnesses.stopwatches.adapters import Harness
from anatomy.chapters.harnesses.stopwatches.protocol import Process
from anatomy.table.errors import BadParameter
from tests.fakes.fake_stopwatch import Fake, FakeStopwatch

CPU = torch.device("cpu")
COST_S = 100e-6
BUDGET_S = 0.3


def biased(watch, name, quantity, bias=0.0, spread=0.0):
    """A harness that takes the budget and is wrong by a known share."""
    generator = np.random.default_rng([watch.seed, len(name)])

    def run(call):
        watch.time_s += BUDGET_S
        off = 1 + bias + spread * (generator.random() - 0.5)
        return [{"variant": name, "median_s": call.warm_s * off, "samples": 10}]

    return Harness(name, quantity, run)


def process(watch, number=0, harnesses=(), ops=3, replicates=2, load=None, more=()):
    plain, longer = Fake(watch, COST_S), Fake(watch, workloads.EFFECT * COST_S)
    return Process(
        watch,
        number,
        replicates,
        BUDGET_S,
        load or Fake(watch, 5e-3),
        harnesses,
        dict(more) | {f"W{op}": lambda: Fake(watch, COST_S) for op in range(ops)},
        {"E1": lambda: (plain, longer)},
    )


def ours(watch, *quantities):
    return [
        Harness(f"compare {q}", q, partial(adapters.ours, watch, BUDGET_S, q)) for q in quantities
    ]


def test_one_process_leaves_one_row_for_each_figure():
    watch = FakeStopwatch(noise=0.002)
    taking_part = [*ours(watch, "gpu_cold", "gpu_warm"), biased(watch, "inductor", "gpu_cold")]
    rows = process(watch, harnesses=taking_part).run()
    parts = Counter((row["part"], row["variant"]) for row in rows)
    assert parts["estimate", "compare"] == 3 * 2 * 2, "workloads, replicates, quantities"
    assert parts["estimate", "inductor"] == 3 * 2
    assert parts["pair", "compare"] == 3 * 2 + 2, "each replicate, and the effect's own call"
    assert parts["effect", "compare"] == 2 * 2 and parts["effect", "inductor"] == 1
    assert parts["overhead", "compare"] == 2
    assert parts["long", "compare"] == 3 * 2 * 6, "workloads, quantities, one after the other"
    assert all(value is not None for row in rows for value in row.values())
    times = {value for row in rows for name, value in row.items() if name.endswith("_s")}
    assert all(float(f"{time:.6g}") == time for time in times)


def test_a_long_run_has_no_pause_and_asks_each_estimate_about_the_others():
    watch = FakeStopwatch(noise=0.002)
    loads = Fake(watch, 5e-3)
    one = process(watch, load=loads)
    one._long_run("W0", "gpu_warm", Fake(watch, COST_S))
    assert loads.calls == round(0.03 / 5e-3), "the settle load ran once, before the first"
    assert [row["replicate"] for row in one.rows] == list(range(6))
    protocol.ask_about_the_others(one.rows)
    assert all(row["rest_s"] == pytest.approx(COST_S, rel=0.002) for row in one.rows)
    assert all(row["low_s"] <= row["median_s"] <= row["high_s"] for row in one.rows)

    def fail():
        raise RuntimeError("CUDA error: out of luck")

    one._long_run("W1", "gpu_cold", fail)
    assert one.rows[-1]["note"] == "RuntimeError: CUDA error: out of luck"


def test_a_known_bias_and_effect_come_back_through_protocol_and_judging():
    tables = []
    for number in range(6):
        watch = FakeStopwatch(noise=0.003, seed=number)
        taking_part = [
            *ours(watch, "gpu_cold", "gpu_warm", "step_wall"),
            biased(watch, "do_bench mean", "gpu_cold", bias=0.05, spread=0.04),
            biased(watch, "do_bench median", "gpu_cold", bias=-0.02, spread=0.02),
        ]
        rows = process(watch, number, taking_part, ops=2, replicates=3).run()
        tables.append(pd.DataFrame(rows).assign(process=number))
    estimates = pd.concat(tables)
    truth = [
        {"process": 0, "op": op, "quantity": q, "median_s": COST_S}
        for op in ("W0", "W1")
        for q in standings.RIVALS
    ]
    reference = pd.DataFrame(truth)
    bias = Contest(estimates, reference).biases.set_index(["op", "quantity", "variant"]).bias
    assert bias["W0", "gpu_cold", "do_bench mean"] == pytest.approx(0.05, abs=0.01)
    assert bias["W0", "gpu_cold", "do_bench median"] == pytest.approx(-0.02, abs=0.01)
    assert abs(bias["W0", "gpu_warm", "compare"]) < 0.002
    found = targets.judged(Contest(estimates, reference))
    assert found["power"].found == 1.0
    assert found["false-positives"].found == found["false-positives-of-threes"].found == 0
    assert found["worst-cold"].found < 0.5, "ours spreads by far less than 2 %"
    assert found["coverage-blocks"].found > 0.85
    assert found["overhead"].met


def test_our_estimate_uses_its_budget_and_no_more():
    watch = FakeStopwatch(noise=0.002)
    begun = watch.now()
    (found,) = adapters.ours(watch, BUDGET_S, "gpu_warm", Fake(watch, COST_S))
    assert watch.now() - begun == pytest.approx(BUDGET_S, rel=0.1)
    assert found["median_s"] == pytest.approx(COST_S, rel=0.01)
    assert found["low_s"] <= found["median_s"] <= found["high_s"] and len(found["blocks"]) > 24


def test_every_harness_stands_in_each_place_and_behind_each_other_one_equally_often():
    watch = FakeStopwatch()
    names = ["gpu_cold", "gpu_warm", "step_wall", "inductor"]
    taking_part = [biased(watch, name, "gpu_cold") for name in names]
    seen = []
    for number in range(4):
        rows = process(watch, number, taking_part, ops=1, replicates=1).run()
        estimates = [row for row in rows if row["part"] == "estimate"]
        seen.append([r["variant"] for r in sorted(estimates, key=lambda row: row["place"])])
    assert all(sorted(place) == sorted(names) for place in zip(*seen, strict=True))
    follows = Counter(after for order in seen for after in pairwise(order))
    assert set(follows.values()) == {1} and len(follows) == 12


def test_a_process_can_be_run_again_as_it_was():
    def run(number):
        watch = FakeStopwatch(noise=0.01, seed=7)
        rows = process(watch, number, ours(watch, "gpu_cold"), ops=2).run()
        return [(row["op"], row["median_s"]) for row in rows]

    assert run(3) == run(3)


def test_over_three_replicates_every_workload_is_paired_in_every_quantity():
    for number in range(3):
        watch = FakeStopwatch()
        rows = process(watch, number, ops=3, replicates=3).run()
        pairs = [(r["op"], r["quantity"]) for r in rows if r["part"] == "pair" and r["op"] != "E1"]
        assert len(pairs) == len(set(pairs)) == 9


def test_what_an_estimate_is_asked_about_leaves_out_its_own_blocks():
    def rows(part, *blocks):
        row = {"part": part, "op": "W", "quantity": "gpu_cold"}
        return [row | {"blocks": each} for each in blocks]

    apart = [*rows("estimate", [1.0, 1.0], [5.0, 5.0, 7.0]), *rows("pair", [6.0])]
    together = rows("long", [2.0], [3.0])
    protocol.ask_about_the_others([*apart, *together, *rows("overhead")])
    assert [row.get("rest_s") for row in apart] == [5.5, 1.0, None]
    assert [row["rest_s"] for row in together] == [3.0, 2.0]


def test_the_settle_load_ends_though_the_clock_stands_still():
    one = process(FakeStopwatch(), load=lambda: None)
    one._add("estimate", "W0", "gpu_cold", lambda: [{"median_s": 1.0}])
    assert one.rows[0]["cost_s"] == 0.0


def test_every_run_begins_behind_the_settle_load_and_its_cost_leaves_that_out():
    watch = FakeStopwatch()
    load = Fake(watch, 5e-3)
    one = process(watch, harnesses=[biased(watch, "inductor", "gpu_cold")], ops=1, load=load)
    rows = [row for row in one.run() if row["variant"] == "inductor"]
    costs = {row["cost_s"] for row in rows if row["part"] == "estimate"}
    assert load.calls >= 6 * len(costs) and min(costs) == pytest.approx(BUDGET_S)


def test_a_harness_that_fails_costs_its_own_row():
    watch = FakeStopwatch()

    def fail(call):
        raise RuntimeError("CUDA error: operation not permitted\nCompile with ...")

    broken = Harness("do_bench_cudagraph", "gpu_warm", fail)
    rows = process(watch, harnesses=[broken, biased(watch, "inductor", "gpu_cold")], ops=1).run()
    failed = [row for row in rows if row["variant"] == "do_bench_cudagraph"]
    assert {row["part"] for row in failed} == {"estimate", "effect"}
    notes = {row["note"] for row in failed}
    assert notes == {"RuntimeError: CUDA error: operation not permitted"}
    assert sum(r["variant"] == "inductor" and "median_s" in r for r in rows) == 3


def test_a_workload_that_does_not_fit_is_a_row_and_the_others_go_on():
    watch = FakeStopwatch()

    def too_large():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")

    taking_part = [biased(watch, "inductor", "gpu_cold")]
    rows = process(watch, 0, taking_part, ops=1, more={"W4": too_large}).run()
    assert [r["note"][:26] for r in rows if r["op"] == "W4"] == ["OutOfMemoryError: CUDA out"]
    assert any(row["op"] == "W0" and row.get("median_s") for row in rows)


def test_without_cuda_the_gpus_harnesses_say_why_they_are_left_out():
    watch = FakeStopwatch()
    found = {each.name: each.missing for each in adapters.harnesses(watch, BUDGET_S)}
    assert {name for name, why in found.items() if why} == {
        "do_bench",
        "inductor",
        "do_bench_cudagraph",
    }
    assert found["do_bench"] == "needs CUDA; this is cpu"
    rows = process(watch, harnesses=adapters.harnesses(watch, BUDGET_S)[3:6], ops=0).run()
    assert [row["note"] for row in rows if row["op"] == "all"] == ["needs CUDA; this is cpu"] * 3


def test_every_harness_is_judged_and_every_rival_is_run():
    named = {each.name for each in adapters.harnesses(FakeStopwatch(), BUDGET_S)}
    rivals = {rival for names in standings.RIVALS.values() for rival in names}
    assert {name.split()[0] for name in rivals} | {
        f"compare {quantity}" for quantity in standings.RIVALS
    } == named


def test_timers_two_ways_give_seconds_a_call():
    x = torch.rand(200, 200)
    for harness in adapters.harnesses(FakeStopwatch(), 0.02)[-2:]:
        (figure,) = harness.run(lambda: x @ x)
        assert figure["variant"] == harness.name
        assert 1e-6 < figure["median_s"] < 10 and figure["samples"] >= 1


@pytest.mark.parametrize("name", workloads.workloads(CPU, 1.0))
def test_a_workload_gives_the_same_answer_again(name):
    call = workloads.workloads(CPU, 0.01)[name]()
    first = call().clone()
    assert torch.equal(first, call()) and first.isfinite().all()


def test_the_effect_is_two_percent_more_of_the_same(monkeypatch):
    filled = []
    monkeypatch.setattr(workloads, "seen_of", lambda y, act: filled.append(act()) or act)
    workloads.effects(CPU, 0.01)["E1 copy 250 MiB"]()
    plain, more = filled
    assert more.numel() * 50 == plain.numel() * 51
    assert torch.equal(plain, more[: plain.numel()]) and plain.any(), "the copies are there"


def test_the_effects_sizes_are_what_its_name_says_and_whole_pages():
    small, large = (parts * workloads.EFFECT_PART * 4 for parts in workloads.EFFECT_PARTS)
    assert small == 250 * 2**20 and large / small == workloads.EFFECT
    assert small % 2**20 == large % 2**20 == 0


def test_the_script_that_the_page_shows_runs_as_it_stands():
    script = Path(__file__).parents[3] / "snippets" / "compare_your_code.py"
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(script.parent.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert "by hand" in done.stdout and "noise floor" in done.stdout


@pytest.mark.parametrize(
    "wrong", [{"process": -1}, {"replicates": 0}, {"budget_s": 0.0}, {"scale": 0.0}]
)
def test_a_process_that_can_not_be_is_refused(wrong):
    with pytest.raises(BadParameter, match=rf"harnesses\.estimates: {next(iter(wrong))}="):
        harnesses.estimates(device="cpu", **wrong)
