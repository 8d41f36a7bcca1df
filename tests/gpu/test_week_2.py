"""What only a GPU shows of PyTorch's allocator and of a profile; skipped without one."""

import pytest
import torch

from anatomy.chapters.allocator import allocator
from anatomy.chapters.allocator.allocator import CACHED, EMPTIED
from anatomy.chapters.profiling import profiling

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


def test_only_an_emptied_cache_asks_the_driver_and_waits(monkeypatch):
    monkeypatch.setattr(allocator, "SIZES", {"64 MiB": 2**26})
    monkeypatch.setattr(allocator.requirements, "SIZES", {"64 MiB": 2**26})
    table = allocator.costs().set_index("variant")
    assert dict(table.driver_calls[[CACHED, EMPTIED]]) == {CACHED: 0, EMPTIED: 1}
    assert list(table.waits_for_gpu[[CACHED, EMPTIED]]) == [False, True]


def test_pieces_of_a_segment_add_up_and_a_setting_is_taken():
    table = allocator.fragmentation()
    assert table.note.isna().all() if "note" in table else True
    pieces = table[table.op == "piece"].groupby("way").piece_bytes.sum()
    held = table[table.variant == "16 of 40 MiB"].set_index("way").reserved_bytes
    assert pieces.to_dict() == held.to_dict()
    segments = table[table.op == "piece"].groupby("way").segment.nunique()
    assert segments["expandable"] < segments["default"]


def test_a_step_is_made_of_every_kind_and_its_state_stays():
    table = allocator.training_step()
    sizes = table.groupby("kind").block_bytes.sum()
    weights = sizes["weights and batch"]
    # AdamW keeps two averages of each weight; the batch is beside the weights.
    assert 1.7 * weights < sizes["optimizer state"] < 2.1 * weights
    assert sizes["activations"] > 0 and sizes["temporary"] > 0
    state = table[table.kind == "optimizer state"]
    assert state.died_event.isna().all()


def test_a_kept_loss_holds_activations_only_where_nothing_freed_them():
    kept = allocator.kept_losses().set_index(["direction", "variant"]).kept_bytes
    assert kept["validation", "losses.append(loss)"] > 100 * 2**20
    assert kept.drop(("validation", "losses.append(loss)")).max() < 2**16


def test_a_trace_has_both_lanes_and_the_parts_of_the_step():
    table = profiling.trace()
    assert {"CPU", "GPU", "PyTorch", "step"} <= set(table.lane)
    names = list(table[table.lane == "step"].variant)
    assert names == ["forward", "backward", "optimizer"]


def test_kernels_are_rows_without_time_on_the_cpu():
    table = profiling.averages()
    kernels = table[table.ran_on == "GPU"]
    assert len(kernels) and kernels.self_host_s.eq(0).all() and kernels.self_device_s.gt(0).all()


def test_every_option_is_timed_on_a_gpu():
    table = profiling.overhead(scale=0.125, rounds=1)
    own = table[table.op == "small step"].set_index("variant")
    assert own.median_s.gt(0).all() and set(own.index) > {"GPU", profiling.BOTH}
    assert 0 < own.busy_s[profiling.BOTH] < own.median_s[profiling.BOTH]
    assert own.busy_s[[profiling.OFF, "CPU"]].eq(own.busy_s[profiling.BOTH]).all()
