"""The allocator without a GPU: which blocks are what, what the tables hold, and the claims."""

import gc
import json
import subprocess
from types import SimpleNamespace

import pytest
import torch

from anatomy.chapters.allocator import allocator, calculations, figures, requirements
from anatomy.chapters.allocator.lifetimes import blocks, events, levels
from anatomy.claims import Need, all_claims
from anatomy.machine import host
from anatomy.measure.stopwatch import CudaStopwatch
from anatomy.record.showing import using
from anatomy.table.errors import DeviceError, MeasurementError
from tests.chapters.allocator import allocator_rows
from tests.chapters.allocator.allocator_rows import MIB
from tests.fakes import synthetic
from tests.fakes.verdicts import words

ALL = allocator.costs, allocator.fragmentation, allocator.training_step, allocator.kept_losses
CPU = torch.device("cpu")


def test_a_block_is_what_its_part_leaves_if_it_outlives_it_and_an_address_may_come_again():
    done = [("segment_alloc", 1, 99), ("alloc", 1, 10), ("alloc", 2, 20)]
    done += [("free_requested", 2, 20), ("free_completed", 2, 20)]
    done += [("alloc", 2, 30), ("free_completed", 1, 10)]  # in the backward pass
    done += [("free_completed", 7, 5)]  # was there before the record began
    names = ("action", "addr", "size")
    record = events(dict(zip(names, each, strict=True)) for each in done)
    assert record[0] == ("alloc", 1, 10) and len(record) == 6
    found = blocks(record, {"step 1, forward": 3, "step 1, backward": 6})
    lived = [(each["kind"], each["born_event"], each["died_event"]) for each in found]
    assert lived == [("activations", 0, 4), ("temporary", 1, 2), ("gradients", 3, None)]
    held = levels(found, 6)
    assert held["activations"].to_list() == [10, 10, 10, 10, 0, 0]
    assert held.sum(axis=1).to_list() == [10, 30, 10, 40, 30, 30]


@pytest.fixture
def toy(monkeypatch):
    """A card whose memory is the CPU's, whose driver gives nothing, and a small model."""
    monkeypatch.setattr(allocator, "_require_gpu", lambda where: None)
    monkeypatch.setattr(allocator, "HOW", allocator.HOW | {"budget_s": 0.2, "settle_cap_s": 0.01})
    monkeypatch.setattr(requirements, "STEP", (64, 1, 1, 4))
    monkeypatch.setattr(requirements, "SIZES", {"16 MiB": 2**24, "64 MiB": 2**26})
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)


def test_every_size_is_taken_from_the_cache_and_without_it(toy):
    timed = allocator.costs("cpu", iters=2)
    timed = timed[timed.role != "again"]
    assert list(timed.variant) == [allocator.CACHED, allocator.EMPTIED] * 2
    assert timed.median_s.gt(0).all() and set(timed.asked_bytes) == {2**24, 2**26}


def test_a_block_from_the_driver_is_counted_and_disturbs_nothing(monkeypatch):
    given = iter((3, 4, 5))
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda _: {"num_device_alloc": next(given)})
    monkeypatch.setattr(host, "foreign_processes", lambda device: None)
    watch = SimpleNamespace(device=None)
    watch.disturbances = lambda: CudaStopwatch.disturbances(watch)
    assert allocator._driver_calls(lambda: None, watch) == 1
    assert allocator._asking(watch).disturbances()["device allocations"] == 0


def test_two_steps_are_recorded_part_by_part(toy, monkeypatch):
    upto = iter(range(2, 14, 2))  # two blocks in each part
    trace = [{"action": "alloc", "addr": at, "size": 100} for at in range(12)]
    monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", lambda *given, **how: None)
    recorded = lambda: {"device_traces": {None: trace[: next(upto)]}}  # noqa: E731
    monkeypatch.setattr(torch.cuda.memory, "_snapshot", recorded)
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
    asked, said = {}, {"rows": [{"op": "after"}], "expandable": True}

    def check_output(command, *, env):
        asked.update(env, card=command[-1])
        if command[-1] == "cuda:2":
            raise subprocess.CalledProcessError(1, command)
        return json.dumps(said)

    monkeypatch.setattr(subprocess, "check_output", check_output)
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:8")
    one, lacking = torch.device("cuda:1"), torch.device("cuda:2")
    assert allocator._in_fresh_process("expandable", one) == said["rows"]
    assert asked["PYTORCH_ALLOC_CONF"] == "expandable_segments:True" and asked["card"] == "cuda:1"
    assert "PYTORCH_CUDA_ALLOC_CONF" not in asked, "it would win"
    with pytest.raises(DeviceError, match="did not take the setting"):
        allocator._in_fresh_process("default", one)
    with pytest.raises(MeasurementError, match=r"'fragment\.py'.* non-zero exit status 1"):
        allocator._in_fresh_process("default", lacking)  # in a folder that nobody else has


@pytest.mark.parametrize("run", ALL)
def test_without_a_gpu_rows_say_why(run):
    assert run("cpu").note.str.contains("needs an NVIDIA GPU").all()


def test_activations_outweigh_what_the_optimizer_holds_beside_them():
    """Gradients are gone in the forward pass, and the optimizer copies the weights once."""
    assert 2 * requirements.WEIGHT_BYTES < requirements.ACTIVATION_BYTES


@pytest.mark.parametrize(
    ("make", "given", "expected"),
    [
        ("costs", {}, ["holds"]),
        ("costs", {"driven": 2.0}, ["fails"]),
        ("fragmentation", {}, ["holds", "holds"]),
        ("fragmentation", {"room": (True, True)}, ["fails", "fails"]),
        ("fragmentation", {"room": (False, False)}, ["holds", "fails"]),
        ("training_step", {}, ["holds"]),
        ("training_step", {"activations": 3}, ["fails"]),
        ("kept_losses", {}, ["holds"]),
        ("kept_losses", {"training": 240 * MIB}, ["fails"]),
        ("kept_losses", {"validation": 0}, ["fails"]),
    ],
)
def test_claims_follow_what_was_recorded(make, given, expected, tmp_path):
    getattr(allocator_rows, make)(tmp_path, **given)
    needs = (Need(f"allocator.{make}"),)
    assert words(tmp_path, *(n for n, c in all_claims().items() if c.needs == needs)) == expected


def test_memory_is_drawn_in_layers_and_in_pieces_with_its_figures(tmp_path):
    allocator_rows.training_step(tmp_path)
    allocator_rows.fragmentation(tmp_path)
    with using(synthetic.showing(tmp_path)):
        layers = figures.memory_of_a_step()
        pieces = figures.pieces({"default": "As it comes", "expandable": "Expandable"})
    assert "optimizer state" in layers and "step 2, backward" in layers
    assert layers.count(">465 MiB at most</text>") == 2, "for a desk and for a phone"
    assert "384 MiB free, 24.0 MiB in one piece" in pieces
    assert "384 MiB free, 384 MiB in one piece" in pieces


def test_a_card_is_full_after_so_many_losses():
    assert calculations.batches_until_full(140e9, 3e8) == 466
    assert calculations.blocks_without_a_cache(1e-3) == pytest.approx(0.3)
