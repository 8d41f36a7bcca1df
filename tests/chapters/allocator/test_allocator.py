"""The allocator without a GPU: which blocks are what, what the tables hold, and the claims."""

import gc
import json
import subprocess
from itertools import count
from unittest.mock import Mock

import pytest
import torch

from anatomy.chapters.allocator import allocator, figures, requirements
from anatomy.chapters.allocator.lifetimes import blocks, events, levels
from anatomy.claims import all_claims
from anatomy.measure.stopwatch import Stopwatch
from anatomy.record.showing import using
from anatomy.table.errors import DeviceError, MeasurementError
from tests.chapters.allocator import allocator_rows
from tests.fakes import synthetic
from tests.fakes.verdicts import words

ALL = ("costs", "fragmentation", "training_step", "kept_losses")
CPU = torch.device("cpu")
PATTERN = ["free-memory-in-pieces-is-lost", "expandable-segments-find-room"]


def test_a_block_is_what_its_part_leaves_if_it_outlives_it_and_an_address_may_come_again():
    done = [("segment_alloc", 1, 99), ("alloc", 2, 20), ("alloc", 1, 10), ("free_requested", 2, 20)]
    done += [("free_completed", 2, 20), ("alloc", 2, 30), ("free_completed", 1, 10)]
    done += [("free_completed", 7, 5)]  # was there before the record began
    record = events({"action": did, "addr": at, "size": size} for did, at, size in done)
    found = blocks(record, {"step 1, forward": 3, "step 1, backward": 6})
    lived = [(each["kind"], each["born_event"], each["died_event"]) for each in found]
    assert lived == [("temporary", 0, 2), ("activations", 1, 4), ("gradients", 3, None)]
    held = levels(found, 6)
    assert held["activations"].to_list() == [0, 10, 10, 10, 0, 0]
    assert held.sum(axis=1).to_list() == [20, 30, 10, 40, 30, 30]


@pytest.fixture
def toy(monkeypatch):
    """A card whose memory is the CPU's, whose driver gives nothing, and a small model."""
    monkeypatch.setattr(allocator, "_require_gpu", lambda where: None)
    monkeypatch.setattr(allocator, "HOW", allocator.HOW | {"budget_s": 0.2, "settle_cap_s": 0.01})
    monkeypatch.setattr(requirements, "STEP", (64, 1, 1, 4))
    monkeypatch.setattr(requirements, "SIZES", {"16 MiB": 2**24, "64 MiB": 2**26})
    monkeypatch.setattr(torch.cuda, "empty_cache", Mock())


def test_every_size_is_taken_in_both_ways_and_blocks_of_the_driver_count(toy, monkeypatch):
    given = count()  # one more at each look, which must disturb nothing
    monkeypatch.setattr(Stopwatch, "disturbances", lambda _: {"device allocations": next(given)})
    table = allocator.costs("cpu", iters=2)
    assert table.driver_calls.eq(1).all() and torch.cuda.empty_cache.called
    timed = table[table.role != "again"]
    assert list(timed.variant) == [allocator.CACHED, allocator.EMPTIED] * 2
    assert timed.median_s.gt(0).all() and set(timed.asked_bytes) == {2**24, 2**26}


def test_two_steps_are_recorded_part_by_part(toy, monkeypatch):
    trace = [{"action": "alloc", "addr": at, "size": 100} for at in range(12)]  # two in each part
    seen = [{"device_traces": {None: trace[:upto]}} for upto in range(2, 14, 2)]
    monkeypatch.setattr(torch.cuda.memory, "_snapshot", Mock(side_effect=seen))
    monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", Mock())
    before, *rows = allocator._recorded_steps(CPU)
    assert before["block_bytes"] > 0 and before["kind"] == "weights and batch"
    ends = {row["variant"]: row["died_event"] for row in rows if row["kind"] == "part"}
    assert next(iter(ends)) == "step 1, forward" and list(ends.values()) == [2, 4, 6, 8, 10, 12]
    kinds = [row["kind"] for row in rows if row["kind"] != "part"][::2]
    assert kinds == ["activations", "gradients", "optimizer state"] * 2


def test_a_kept_loss_keeps_its_graph_unless_something_took_it_off(toy, monkeypatch):
    def graphs(device):
        alive = (each for each in gc.get_objects() if type(each) is torch.Tensor)
        return sum(each.dim() == 0 and each.grad_fn is not None for each in alive)

    monkeypatch.setattr(torch.cuda, "memory_allocated", graphs)
    model, x = allocator._model(CPU)
    ways = ({"direction": passes, "variant": line} for passes, line in allocator.KEEPERS)
    assert [allocator._kept(way, model, x) for way in ways] == [1, 0, 1, 0, 0]
    assert all(each.grad is not None for each in model.parameters())


def test_a_fresh_process_is_told_how_to_ask_and_which_card_and_what_went_wrong_is_said(monkeypatch):
    run = Mock(return_value=json.dumps({"rows": [{"op": "after"}], "expandable": True}))
    monkeypatch.setattr(subprocess, "check_output", run)
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:8")
    assert allocator._in_fresh_process("expandable", torch.device("cuda:1")) == [{"op": "after"}]
    (command,), env = run.call_args.args, run.call_args.kwargs["env"]
    assert command[-1] == "cuda:1" and env["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"
    assert "PYTORCH_CUDA_ALLOC_CONF" not in env, "it would win"
    with pytest.raises(DeviceError, match="did not take the setting"):
        allocator._in_fresh_process("default", CPU)
    run.side_effect = subprocess.CalledProcessError(1, command)
    with pytest.raises(MeasurementError, match=r"'fragment\.py'.* non-zero exit status 1"):
        allocator._in_fresh_process("default", CPU)  # of its place no folder is told


@pytest.mark.parametrize("run", ALL)
def test_without_a_gpu_rows_say_why(run):
    assert getattr(allocator, run)("cpu").note.str.contains("needs an NVIDIA GPU").all()


def test_activations_outweigh_what_the_optimizer_holds_beside_them():
    """Gradients are gone in the forward pass, and the optimizer copies the weights once."""
    assert 2 * requirements.WEIGHT_BYTES < requirements.ACTIVATION_BYTES


@pytest.mark.parametrize(
    ("made", "given", "failing"),
    [
        ("costs", {}, []),
        ("costs", {"driven": 2.0}, ["cached-blocks-are-cheap"]),
        ("fragmentation", {"room": (False, False)}, PATTERN[1:]),
        ("fragmentation", {"room": (True, True)}, PATTERN),
        ("training_step", {"activations": 3}, ["backward-holds-the-most"]),
        ("kept_losses", {"training": 2**28}, ["kept-losses-hold-activations"]),
        ("kept_losses", {"validation": 0}, ["kept-losses-hold-activations"]),
    ],
)
def test_claims_follow_what_was_recorded(made, given, failing, tmp_path):
    for each in ALL:
        getattr(allocator_rows, each)(tmp_path, **(given if each == made else {}))
    own = [name for name, each in all_claims().items() if each.topic == "allocator"]
    said = dict(zip(own, words(tmp_path, *own), strict=True))
    assert said == dict.fromkeys(own, "holds") | dict.fromkeys(failing, "fails")


def test_memory_is_drawn_in_layers_and_in_pieces_with_its_figures(tmp_path):
    allocator_rows.training_step(tmp_path)
    allocator_rows.fragmentation(tmp_path)
    with using(synthetic.showing(tmp_path)):
        layers = figures.memory_of_a_step()
        pieces = figures.pieces({"default": "As it comes", "expandable": "Expandable"})
    assert "optimizer state" in layers and ">285 MiB<" in layers, "most in a part"
    assert layers.count(">465 MiB at most</text>") == 2, "for a desk and for a phone"
    for largest in ("24.0 MiB", "384 MiB"):
        assert f"384 MiB free, {largest} in one piece" in pieces
