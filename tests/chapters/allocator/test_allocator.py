"""The allocator without a GPU: which blocks are what, what the tables hold, and the claims."""

import json
import subprocess
from collections import namedtuple

import pytest
import torch

from anatomy.chapters.allocator import allocator, calculations, figures, requirements
from anatomy.chapters.allocator.allocator import CACHED, EMPTIED
from anatomy.chapters.allocator.lifetimes import blocks, events, levels
from anatomy.record.showing import using
from anatomy.table.errors import DeviceError, MeasurementError
from tests.chapters.allocator import allocator_rows
from tests.chapters.allocator.allocator_rows import KEPT, MIB
from tests.fakes import synthetic
from tests.fakes.verdicts import words

ALL = allocator.costs, allocator.fragmentation, allocator.training_step, allocator.kept_losses


def test_a_block_is_what_it_lived_to_be_and_an_address_may_come_again():
    trace = [
        {"action": "segment_alloc", "addr": 1, "size": 99},
        {"action": "alloc", "addr": 1, "size": 10},  # kept by the forward pass
        {"action": "alloc", "addr": 2, "size": 20},
        {"action": "free_requested", "addr": 2, "size": 20},
        {"action": "free_completed", "addr": 2, "size": 20},
        {"action": "alloc", "addr": 2, "size": 30},  # a gradient at an address seen before
        {"action": "free_completed", "addr": 1, "size": 10},
        {"action": "free_completed", "addr": 7, "size": 5},  # was there before the record began
    ]
    record = events(trace)
    assert record[0] == ("alloc", 1, 10) and len(record) == 6
    marks = [(3, {}, "activations"), (6, {2: "gradients"}, "temporary")]
    found = blocks(record, marks)
    assert [(b["kind"], b["born_event"], b["died_event"]) for b in found] == [
        ("activations", 0, 4),
        ("temporary", 1, 2),
        ("gradients", 3, None),
    ]
    assert levels(found, 6) == {
        "activations": [10, 10, 10, 10, 0, 0],
        "temporary": [0, 20, 0, 0, 0, 0],
        "gradients": [0, 0, 0, 30, 30, 30],
    }


@pytest.fixture
def toy(monkeypatch):
    """A card whose memory is the CPU's, whose driver gives nothing, and whose record is made up."""
    monkeypatch.setattr(allocator, "_require_gpu", lambda where: None)
    monkeypatch.setattr(allocator, "HOW", allocator.HOW | {"budget_s": 0.2, "settle_cap_s": 0.01})
    small = requirements.Step(width=64, layers=1, batch=1, tokens=4)
    monkeypatch.setattr(allocator, "STEP", small)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda device: {})


def test_every_size_is_taken_from_the_cache_and_without_it(toy, monkeypatch):
    monkeypatch.setattr(allocator, "SIZES", {"16 MiB": 2**24, "64 MiB": 2**26})
    timed = allocator.costs("cpu", iters=2)
    timed = timed[timed.role != "again"]
    assert list(timed.variant) == [CACHED, EMPTIED] * 2
    assert timed.median_s.gt(0).all() and set(timed.asked_bytes) == {2**24, 2**26}


def test_parts_of_a_step_name_the_gradients_and_the_state(toy, monkeypatch):
    """The optimizer's state and the gradients are told by their addresses."""
    model, x = allocator._model(torch.device("cpu"))
    optimizer = torch.optim.AdamW(model.parameters())
    parts = dict(allocator._parts_of_a_step(model, x, optimizer))
    weights = list(model.parameters())
    assert list(parts) == ["forward", "backward", "optimizer"]
    assert parts["forward"] == ({}, "activations")
    assert parts["backward"][0] == {p.grad.data_ptr(): "gradients" for p in weights}
    assert set(parts["optimizer"][0].values()) == {"optimizer state"}
    assert len(parts["optimizer"][0]) >= 2 * len(weights)


def test_two_steps_are_recorded_part_by_part(toy, monkeypatch):
    upto = iter(range(2, 14, 2))  # two blocks in each part
    monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", lambda *given, **how: None)
    record = [("alloc", at, 100) for at in range(12)]
    monkeypatch.setattr(allocator, "_record", lambda where: record[: next(upto)])
    before, *rows = allocator._recorded_steps(torch.device("cpu"))
    assert before["block_bytes"] > 0 and before["kind"] == "weights and batch"
    ends = {row["variant"]: row["died_event"] for row in rows if row["kind"] == "part"}
    assert next(iter(ends)) == "step 1, forward" and list(ends.values()) == [2, 4, 6, 8, 10, 12]
    kinds = [row["kind"] for row in rows if row["kind"] != "part"]
    assert kinds == (["activations"] * 2 + ["temporary"] * 4) * 2


def test_a_kept_loss_is_what_stays_allocated(toy, monkeypatch):
    held = iter((1000, 1000 + 8 * 512))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: next(held))
    model, x = allocator._model(torch.device("cpu"))
    assert allocator._kept(allocator.KEEPERS[0][2], model, x) == 512
    graphs = [keep(model, x).grad_fn is not None for _, _, keep in allocator.KEEPERS]
    assert graphs == [True, False, True, False, False]


def test_a_fresh_process_is_told_how_to_ask_and_which_card(monkeypatch):
    asked = {}

    def run(command, *, env, **how):
        asked.update(env, card=command[-1])
        return namedtuple("Done", "returncode stdout")(0, json.dumps({"steps": []}))

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:8")
    allocator._in_fresh_process(allocator.WAYS["expandable"], torch.device("cuda:1"))
    assert asked["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"
    assert "PYTORCH_CUDA_ALLOC_CONF" not in asked, "it would win"
    assert asked["card"] == "cuda:1"


def test_a_fresh_process_that_fails_names_no_folder_of_this_machine(monkeypatch):
    said = "Traceback\nOSError: /opt/site/torch/lib/libtorch_cuda.so: no such file"
    done = namedtuple("Done", "returncode stdout stderr")(1, "", said)
    monkeypatch.setattr(subprocess, "run", lambda *given, **how: done)
    with pytest.raises(MeasurementError, match="OSError: libtorch_cuda"):
        allocator._in_fresh_process(allocator.WAYS["default"], torch.device("cuda:0"))


def test_a_setting_that_pytorch_did_not_take_is_refused():
    with pytest.raises(DeviceError, match="did not take the setting"):
        allocator.fragments("expandable", allocator_rows.ran("default", False))


@pytest.mark.parametrize("run", ALL)
def test_without_a_gpu_rows_say_why(run):
    assert run("cpu").note.str.contains("needs an NVIDIA GPU").all()


def test_activations_outweigh_what_the_optimizer_holds_beside_them():
    """Gradients are gone in the forward pass, and the optimizer copies the weights once."""
    gradients = copies = requirements.WEIGHT_BYTES
    assert gradients + copies < requirements.ACTIVATION_BYTES


COSTS, PATTERN = ["cached-blocks-are-cheap"], ["free-memory-in-pieces-is-lost"]
PATTERN.append("expandable-segments-find-room")
STEP, LOSSES = ["backward-holds-the-most"], ["kept-losses-hold-activations"]


@pytest.mark.parametrize(
    ("make", "given", "names", "expected"),
    [
        ("costs", {}, COSTS, ["holds"]),
        ("costs", {"driven": 2.0}, COSTS, ["fails"]),
        ("fragmentation", {}, PATTERN, ["holds", "holds"]),
        ("fragmentation", {"room": (True, True)}, PATTERN, ["fails", "fails"]),
        ("fragmentation", {"room": (False, False)}, PATTERN, ["holds", "fails"]),
        ("training_step", {}, STEP, ["holds"]),
        ("training_step", {"activations": 1}, STEP, ["fails"]),
        ("kept_losses", {}, LOSSES, ["holds"]),
        ("kept_losses", {"kept": KEPT | {"training": 240 * MIB}}, LOSSES, ["fails"]),
        ("kept_losses", {"kept": KEPT | {"validation": 0}}, LOSSES, ["fails"]),
    ],
)
def test_claims_follow_what_was_recorded(make, given, names, expected, tmp_path):
    getattr(allocator_rows, make)(tmp_path, **given)
    assert words(tmp_path, *names) == expected


def test_memory_is_drawn_in_layers_with_what_each_part_ends_with(tmp_path):
    allocator_rows.training_step(tmp_path)
    with using(synthetic.showing(tmp_path)):
        drawn = figures.memory_of_a_step()
    assert "optimizer state" in drawn and "step 2, backward" in drawn
    assert "MiB at most</text>" in drawn


def test_pieces_say_how_much_is_free_and_how_much_in_one(tmp_path):
    allocator_rows.fragmentation(tmp_path)
    with using(synthetic.showing(tmp_path)):
        drawn = figures.pieces({"default": "As it comes", "expandable": "Expandable"})
    assert "384 MiB free, 24.0 MiB in one piece" in drawn
    assert "384 MiB free, 384 MiB in one piece" in drawn


@pytest.mark.parametrize(("memory", "kept", "batches"), [(80e9, 2e8, 400), (140e9, 3e8, 466)])
def test_a_card_is_full_after_so_many_losses(memory, kept, batches):
    assert calculations.batches_until_full(memory, kept) == batches
    assert calculations.blocks_without_a_cache(1e-3) == pytest.approx(0.3)
