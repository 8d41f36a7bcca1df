"""Single calls on the CPU: slopes, keys, what is recorded of each way; and the claims."""

import runpy
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import ANY, Mock, call

import pytest
import torch

from anatomy.chapters.dispatch import calculations, calls, figures, keys
from anatomy.claims import Need, all_claims
from anatomy.parts import memory
from anatomy.record.requirements import Capacity
from anatomy.record.showing import using
from tests.chapters.dispatch import dispatch_rows
from tests.chapters.dispatch.dispatch_rows import SLOWER
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
    assert set(one.index) == {"torch.add", "torch.add (again)", *SLOWER}
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
    assert set(table[table.op == "one call"].variant) == {"torch.add", *SLOWER}


def test_tensors_carry_keys_whether_or_not_they_are_needed():
    kinds = keys.keys("cpu").set_index("variant")["keys"]
    assert kinds["x = torch.ones(1)"] == "CPU, ADInplaceOrView, AutogradCPU, AutocastCPU"
    assert kinds["x.requires_grad_()"] == kinds["x = torch.ones(1)"]
    assert "Autograd" not in kinds["made in inference_mode"]


def test_a_call_is_what_a_hundred_calls_more_take(monkeypatch):
    def timed(variants, **how):
        said = {"samples": 6, "method": "host clock around one call, queue empty", "error": 0.0}
        took = {name: 1e-5 + 3e-6 * int(name.split(", ")[-1]) for name in variants}
        rows = [{"variant": name, "blocks_s": [each] * 6} | said for name, each in took.items()]
        return SimpleNamespace(table=calls.pd.DataFrame(rows))

    monkeypatch.setattr(calls, "compare", timed)
    table = calls.calls("cpu")
    assert all(each == pytest.approx([3e-6] * 6) for each in table.blocks_s)
    assert set(table.samples) == {12} and table.method.str.contains("from 20 to 120 calls").all()


def test_loops_of_every_way_make_so_many_calls():
    x, ways = calls.additions(CPU)
    for name, way in ways.items():
        counted = Mock(side_effect=way.call)
        replace(way, call=counted).loop(x, 7)()
        given = [call(7)] if way.at_once else 7 * [call(ANY)]
        assert counted.call_args_list == given, name
    assert ways["inference_mode"].loop(x, 1)().is_inference(), "within its context"


def test_the_keys_of_a_call_follow_its_tensors_and_its_thread():
    x, sparse = torch.ones(1), torch.eye(2).to_sparse()
    with torch.autocast("cpu"):
        assert keys.keys_of("aten::mm", x).startswith("AutocastCPU, ")
    assert "Autocast" not in keys.keys_of("aten::mm", x)
    assert keys.keys_of("aten::add.Tensor", x, sparse).endswith("SparseCPU, CPU")


def test_the_script_of_the_day_prints_keys_and_counts_calls(capsys):
    runpy.run_path(str(CHECKOUT / "snippets/days/day_09/keys.py"), run_name="__main__")
    told = capsys.readouterr().out
    assert "one of inference_mode: DispatchKeySet(C" in told and "calls of operators" in told


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "holds, holds, holds, holds, holds, holds"),
        (dict.fromkeys(SLOWER, 1.0), "holds, holds, fails, inconclusive, fails, fails"),
        ({"autocast": 1.4, "requires_grad": 2.4}, "fails, fails, holds, holds, holds, holds"),
        ({"custom op": 0.9, "x.view(1)": 0.6}, "holds, holds, holds, holds in part, fails, holds"),
    ],
)
def test_claims_follow_the_ratios(changed, expected, tmp_path, monkeypatch):
    for way, slower in changed.items():
        monkeypatch.setitem(SLOWER, way, slower)
    dispatch_rows.calls(tmp_path)
    own = (name for name, each in all_claims().items() if each.needs == (Need("dispatch.calls"),))
    assert ", ".join(words(tmp_path, *own)) == expected


def test_keys_are_drawn_in_order_with_the_time_of_a_call(tmp_path):
    dispatch_rows.calls(tmp_path)
    with using(synthetic.showing(tmp_path)):
        drawn = figures.ways({"autocast": "under autocast", "custom op": "my::add"})
    assert drawn.count(f">{figures.UNDECIDED}<") == 2, "of one call, for a desk and for a phone"
    assert drawn.index(f">{figures.UNDECIDED}<") < drawn.index(">my::add<")
    assert drawn.count("stroke-dasharray") == 8, "three keys of one call and one of the other"
    assert "under autocast: (AutocastCUDA), AutogradCUDA" in drawn and ">torch.library<" in drawn
    assert drawn.index(">AutocastCUDA<") < drawn.index(">AutogradCUDA<") < drawn.index(">CUDA<")


def test_a_token_waits_for_all_its_calls():
    assert calculations.tokens_at_the_pace_of_calls(4e-6) == 195
