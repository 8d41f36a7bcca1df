"""Single calls on the CPU: slopes, keys, what is recorded of each way; and the claims."""

import runpy

import pytest
import torch

from anatomy.chapters.dispatch import calculations, calls, figures, keys
from anatomy.parts import memory
from anatomy.record.requirements import Capacity
from anatomy.record.showing import using
from tests.chapters.dispatch import dispatch_rows
from tests.fakes import synthetic
from tests.fakes.fake_stopwatch import made_up_time
from tests.fakes.sites import CHECKOUT
from tests.fakes.verdicts import words

CPU = torch.device("cpu")


def test_every_way_has_a_time_its_right_result_and_its_keys():
    with made_up_time():
        table = calls.calls("cpu", iters=2)
    assert table.error.lt(1e-2).all()
    assert table.blocks_s.map(min).gt(0).all() and set(table.quantity) == {"host_enqueue"}
    one = table[table.op == "one call"].set_index("variant")
    assert set(one.index) == {"torch.add", "torch.add (again)", *dispatch_rows.SLOWER}
    assert list(one.role)[-1] == "again" and one.role["torch.add"] == "control"
    assert one["keys"]["no_grad"] == "AutogradCPU, (ADInplaceOrView), (BackendSelect), CPU"
    assert one["keys"]["inference_mode"] == "(ADInplaceOrView), (BackendSelect), CPU"
    assert "ADInplaceOrView, " in one["keys"]["x.view(1)"]
    assert "FuncTorchBatched" in one["keys"]["vmap"] and "Python," in one["keys"]["dispatch mode"]
    assert one["keys"]["autocast"].startswith("(AutocastCPU), AutogradCPU")
    matmul = table[table.op == "one matmul"].set_index("variant")
    assert matmul["keys"]["matmul, autocast"].startswith("AutocastCPU, AutogradCPU")


def test_without_room_every_way_that_the_page_names_says_why(monkeypatch):
    monkeypatch.setattr(memory, "capacity", lambda where: Capacity(0, None, 2**20))
    table = calls.calls("cpu")
    assert table.note.notna().all()
    assert set(table[table.op == "one call"].variant) == {"torch.add", *dispatch_rows.SLOWER}


def test_tensors_carry_keys_whether_or_not_they_are_needed():
    kinds = keys.keys("cpu").set_index("variant")["keys"]
    assert kinds["x = torch.ones(1)"] == "CPU, ADInplaceOrView, AutogradCPU, AutocastCPU"
    assert kinds["x.requires_grad_()"] == kinds["x = torch.ones(1)"]
    assert "Autograd" not in kinds["made in inference_mode"]


def test_a_call_is_what_a_hundred_calls_more_take(monkeypatch):
    class Timed:
        def __init__(self, variants, **how):
            self.table = calls.pd.DataFrame(
                [
                    {"variant": name, "blocks_s": [1e-5 + 3e-6 * int(name.split(", ")[-1])] * 6}
                    | {"samples": 6, "method": "host clock around one call, queue empty"}
                    | {"error": 0.0}
                    for name in variants
                ]
            )

    monkeypatch.setattr(calls, "compare", Timed)
    table = calls.calls("cpu")
    assert all(each == pytest.approx([3e-6] * 6) for each in table.blocks_s)
    assert set(table.samples) == {12} and table.method.str.contains("from 20 to 120 calls").all()


def test_loops_of_every_way_make_so_many_calls():
    x, ways = calls.additions(CPU)
    count = 0

    class Counting(calls.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal count
            count += "add" in str(func)
            return func(*args, **(kwargs or {}))

    for name in ("torch.add", "torch.add, out=", "no_grad", "requires_grad"):
        count, loop = 0, ways[name].loop(x, 7)
        with Counting():
            loop()
        assert count == 7, name


def test_the_keys_of_a_call_follow_its_tensors_and_its_thread():
    x = torch.ones(1)
    with torch.autocast("cpu"):
        assert keys.keys_of("aten::mm", x).startswith("AutocastCPU, ")
        assert keys.keys_of("aten::add.Tensor", x).startswith("(AutocastCPU), ")
    assert "Autocast" not in keys.keys_of("aten::mm", x)
    sparse = torch.eye(2).to_sparse()
    assert keys.keys_of("aten::add.Tensor", x, sparse).endswith("SparseCPU, CPU")


def test_the_script_of_the_day_prints_keys_and_counts_calls(capsys):
    runpy.run_path(str(CHECKOUT / "snippets/days/day_09/keys.py"), run_name="__main__")
    told = capsys.readouterr().out
    assert "one of inference_mode: DispatchKeySet(C" in told and "calls of operators" in told


IDS = ("falling-through-is-free", "recording-costs-less-than-a-call")
IDS += ("inference-mode-makes-calls-cheaper", "python-makes-calls-dearer", "a-view-is-cheap")
IDS += ("one-call-for-many-is-cheaper",)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ["holds"] * 6),
        (
            dict.fromkeys(dispatch_rows.SLOWER, 1.0),
            ["holds", "holds", "fails", "inconclusive", "fails", "fails"],
        ),
        (
            {"autocast": 1.4, "requires_grad": 2.4, "custom op": 0.9, "x.view(1)": 0.6},
            ["fails", "fails", "holds", "holds in part", "fails", "holds"],
        ),
    ],
)
def test_claims_follow_the_ratios(changed, expected, tmp_path, monkeypatch):
    for way, slower in changed.items():
        monkeypatch.setitem(dispatch_rows.SLOWER, way, slower)
    dispatch_rows.calls(tmp_path)
    assert words(tmp_path, *IDS) == expected


def test_keys_are_drawn_in_order_with_the_time_of_a_call(tmp_path):
    dispatch_rows.calls(tmp_path)
    with using(synthetic.showing(tmp_path)):
        drawn = figures.ways({"autocast": "under autocast", "custom op": "my::add"})
    assert drawn.count(f">{figures.UNDECIDED}<") == 2, "of one call, for a desk and for a phone"
    assert "under autocast: (AutocastCUDA), AutogradCUDA" in drawn and ">torch.library<" in drawn
    assert drawn.index(">AutocastCUDA<") < drawn.index(">AutogradCUDA<") < drawn.index(">CUDA<")


@pytest.mark.parametrize(("call", "tokens"), [(4e-6, 195), (1e-6, 781)])
def test_a_token_waits_for_all_its_calls(call, tokens):
    assert calculations.tokens_at_the_pace_of_calls(call) == tokens
    assert calculations.views_of_a_layer(call) == pytest.approx(256 * call)
