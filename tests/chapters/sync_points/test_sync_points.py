"""Sync points: the experiments' branches without a GPU."""

import math
import warnings

import pandas as pd
import pytest
import torch

from anatomy.chapters.sync_points import (
    judged,
    lines,
    requirements,
    sync_points,
    synchronizations,
    training_loop,
)
from anatomy.chapters.sync_points.lines import ITEM
from anatomy.measure import sampling
from anatomy.table.errors import BadParameter
from tests.chapters.sync_points.sync_points_rows import LINES

CPU = torch.device("cpu")


def test_every_line_of_the_issue_is_there_and_runs_on_a_cpu(tmp_path):
    few = torch.randn(lines.FEW)
    with (tmp_path / "sink").open("w") as sink:
        acts = lines.about(few, sink)
        for act in acts.values():
            act()
    assert set(acts) == set(LINES), "the made-up rows have the lines of the experiment"
    assert (tmp_path / "sink").read_text().startswith("tensor(")


def test_numpy_reads_what_was_there_in_every_format():
    for kind in (torch.float32, torch.float16, torch.bfloat16):
        assert len(lines.as_numpy(torch.ones(4, dtype=kind))) == 4


def test_a_call_does_its_acts_in_order_and_returns_the_result():
    seen, x = [], torch.ones(1)
    both = lines.then(x, lambda: seen.append(1), lambda: seen.append(2))
    assert both() is x and seen == [1, 2]
    assert lines.then(x, lambda: seen.append(3))() is x and seen[-1] == 3


def test_iterations_are_counted_and_long_products_take_a_quarter():
    assert sync_points.least_turns(50, 4e-3) == 50
    assert sync_points.least_turns(50, 25e-3) == 13 == math.ceil(50 / 4)


def test_the_share_of_a_wait_is_of_the_same_blocks_as_its_ratio():
    table = pd.DataFrame(
        {"ratio": [None, 2.0], "ratio_low": [None, 1.9], "ratio_high": [None, 2.1]}
    )
    table = table.assign(role=["control", "variant"])
    table = table.assign(median_s=[1.0, 2.0], low_s=[0.9, 1.9], high_s=[1.1, 2.1])
    kernel = pd.Series({"median_s": 0.5, "low_s": 0.4, "high_s": 0.6})
    found = sync_points.with_shares(table, kernel)
    assert found.wait_share[0] is None and found.wait_share[1] == 0.5
    assert found.wait_share_low[1] < 0.5 < found.wait_share_high[1]
    gaps = [found[name][1] for name in ("gap_low_s", "gap_s", "gap_high_s")]
    assert gaps == pytest.approx([1.3, 1.5, 1.7])


def test_long_products_are_timed_in_rounds_and_told_by_the_iteration():
    x, taken = torch.ones(1), []
    one = lines.then(x, lambda: taken.append(1))
    assert sync_points.repeated(one, 1) is one
    assert sync_points.repeated(one, 3)() is x and len(taken) == 3
    table = pd.DataFrame({name: [4.0, None] for name in sync_points.TIMES})
    table = table.assign(blocks_s=[[4.0, 8.0], [2.0]], method="a clock")
    assert sync_points.per_iteration(table, 1) is table
    found = sync_points.per_iteration(table, 4)
    assert found.median_s[0] == found.enqueue_s[0] == 1.0 and math.isnan(found.high_s[1])
    assert found.blocks_s.tolist() == [[1.0, 2.0], [0.5]] and "4 iterations" in found.method[0]


def test_only_long_products_are_timed_in_rounds_and_given_time_for_it():
    assert sync_points.rounds_of(1.4e-3) == 1 and sync_points.seconds_of(1, 9.0) == 0
    rounds = sync_points.rounds_of(25e-3)
    assert rounds * 25e-3 > sampling.SLOW_S, "the stopwatch calls it seldom beforehand"
    assert sync_points.seconds_of(rounds, 1.0) == pytest.approx(16 * rounds)


@pytest.mark.parametrize(("enqueue", "word"), [(5e-6, "host"), (1e-6, "GPU")])
def test_the_host_sets_the_pace_where_queueing_takes_the_period(enqueue, word):
    table = pd.DataFrame({"role": ["control"], "enqueue_s": [enqueue], "median_s": [5e-6]})
    assert training_loop.bound_by(table, torch.device("cuda")) == word
    assert training_loop.bound_by(table, CPU) is None


def test_a_line_that_waits_adds_up_and_one_that_queues_overlaps():
    alone = {ITEM: 14e-6, "to(device), non_blocking": 7e-6}
    assert sync_points.predicted("no wait", 2e-6, 5e-6, alone) == 5e-6
    assert sync_points.predicted("no wait", 9e-6, 5e-6, alone) == 9e-6
    assert sync_points.predicted(ITEM, 2e-6, 5e-6, alone) == pytest.approx(21e-6)
    assert sync_points.predicted("to(device), non_blocking", 30e-6, 5e-6, alone) == 30e-6
    assert sync_points.predicted("no wait (again)", 2e-6, 5e-6, alone) is None
    assert set(judged.QUEUES) < set(LINES)


def test_the_sizes_hold_the_seeds_and_rise():
    assert {512, 8192} <= set(requirements.SIDES)
    assert list(requirements.SIDES) == sorted(requirements.SIDES)
    assert set(requirements.SIDES) <= set(requirements.FULL_SIDES)


def test_numpy_of_a_tensor_elsewhere_is_a_row_with_its_message(monkeypatch):
    def refuses(self):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")

    assert "raised" not in lines.direct(CPU, torch.float32)
    monkeypatch.setattr(torch.Tensor, "numpy", refuses)
    row = lines.direct(CPU, torch.float32)
    assert row["raised"] == "TypeError" and "can't convert" in row["note"]
    assert "median_s" not in row


def test_a_training_step_moves_no_weight_and_each_way_runs_as_many_steps():
    size = training_loop.Size("tiny", 64, 1, 8, 1)
    taken = []
    step = training_loop.step_of(size, CPU, torch.float32)
    first = step()

    def counted():
        taken.append(1)
        return step()

    losses = {name: way() for name, way in training_loop.ways(counted, CPU, 3).items()}
    assert len(taken) == 9 and list(losses)[2] == "mean each 3 steps"
    assert all(torch.equal(loss, first) for loss in losses.values())


def test_a_piece_of_no_steps_is_refused():
    with pytest.raises(BadParameter, match="every=0"):
        sync_points.training_loop(device="cpu", every=0)


@pytest.mark.parametrize("steps", [0, 6])
def test_a_trace_of_more_steps_than_a_recording_keeps_is_refused(steps):
    with pytest.raises(BadParameter, match="whole number from 1 to 5"):
        sync_points.timeline(device="cpu", steps=steps)


def test_lines_that_were_warned_of_are_told_with_their_code():
    source = synchronizations.SCRIPT.read_text(encoding="utf-8").splitlines()
    line = next(n for n, text in enumerate(source, start=1) if "loss.item()" in text)

    def warning(filename: str, lineno: int):
        text = "called a synchronizing CUDA operation (Triggered internally at x.cpp:1)"
        return warnings.WarningMessage(UserWarning(text), UserWarning, filename, lineno)

    here, torch_own = str(synchronizations.SCRIPT), "torch/optim/sgd.py"
    found = [warning(here, line)] * 3 + [warning(torch_own, 7)]
    mine, other = synchronizations.told("careless", found, source, 8)
    assert (mine["line"], mine["warned"]) == (line, 3) and "loss.item()" in mine["code"]
    assert mine["message"] == "called a synchronizing CUDA operation"
    assert other["code"] == "in PyTorch" and other["warned"] == 1
    (none,) = synchronizations.told("careful", [], source, 8)
    assert none["warned"] == 0 and "no line" in none["code"]


@pytest.mark.parametrize("count", [8, 6], ids=["whole windows", "a rest"])
def test_both_loops_of_the_snippet_return_the_same_and_on_a_cpu_too(count):
    from snippets import waits_in_a_loop as script

    returned = []
    for loop in (script.careless, script.careful):
        torch.manual_seed(0)
        model, batches = script.prepared("cpu")
        returned.append(loop(model, batches[:count], "cpu"))
    (loss, wrong), careful = returned
    assert 2.0 < loss < 2.7 and 0 < wrong < 32 * count, "of ten classes, at random"
    assert careful == pytest.approx((loss, wrong), rel=1e-5)


def test_the_careful_loop_stops_at_a_nan_too_and_says_so():
    from snippets import waits_in_a_loop as script

    model, batches = script.prepared("cpu")
    batches[1] = batches[1][0] * math.nan, batches[1][1]
    asked = []
    model.register_forward_hook(lambda *_: asked.append(1))
    loss, _ = script.careful(model, batches, "cpu")
    assert math.isnan(loss) and len(asked) == 4, "it looks after each fourth step"
