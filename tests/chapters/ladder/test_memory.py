"""What the ladder holds: equal weights once, optimizers by rung, graphs no longer than needed."""

import pytest
import torch

from anatomy.chapters.ladder import comparison, requirements, rungs, steps
from anatomy.chapters.ladder.requirements import Size
from anatomy.record.requirements import Capacity
from tests.chapters.ladder.test_training import bench, way

__all__ = ["bench"]
HAD = [each for each in rungs.TRAINING if each.rung.weights]  # without Transformer Engine


def held(*tensors: torch.Tensor) -> int:
    """Bytes of these tensors, storages that several share counted once."""
    found = {each.untyped_storage().data_ptr(): each.untyped_storage() for each in tensors}
    return sum(each.nbytes() for each in found.values())


def weights(bench) -> list[torch.Tensor]:
    return [p for each in HAD for p in bench.model(each).parameters()]


def test_equal_weights_of_all_rungs_are_held_once(bench):
    elements = sum(p.numel() for p in bench.model(rungs.FP32).parameters())
    assert held(*weights(bench)) == (4 + 2) * elements, "in float32 and in bfloat16"
    models = {id(bench.model(each)) for each in HAD}
    assert len(models) == 4 + 3, "yet modules are their own: how they multiply is kept there"


@pytest.mark.parametrize("changed", ["value", "shape"])
def test_other_weights_are_not_taken_for_equal(bench, monkeypatch, changed):
    script = rungs.load("2_sdpa")
    ordinary = script.build

    def build(width, *rest):
        model = ordinary(width if changed == "value" else 2 * width, *rest)
        next(model.parameters()).data.mul_(2.0)
        return model

    monkeypatch.setattr(script, "build", build)
    first, own = bench.model(rungs.FP32), bench.model(rungs.FUSED)
    shared = {id(p) for p in first.parameters()} & {id(p) for p in own.parameters()}
    assert not shared


def needed(size: Size) -> int:
    return requirements.all_ways("forward and backward", size).bytes


def test_what_is_held_is_within_the_estimate(bench):
    """All that can be had on a CPU: models, their gradients, and optimizers with their moments."""
    ready, _ = steps.prepared(bench)
    tensors = weights(bench)
    tensors += [p.grad for p in tensors if p.grad is not None]
    optimizers = set()
    for each in ready:
        if each.way.adamw:
            steps.with_optimizer(each, bench)
            optimizers.add(bench.optimizer(each.way, each.model))
    of_rung_5 = bench.optimizer(rungs.BF16, bench.model(rungs.BF16))
    assert of_rung_5 is bench.optimizer(rungs.FP8, bench.model(rungs.FP8))
    assert len(optimizers) == 4, "one of each rung from 0 to 3"
    for optimizer in optimizers:
        tensors += [x for state in optimizer.state.values() for x in state.values() if x.ndim]
    elements = 12 * bench.size.width**2 * bench.size.layers
    norms = 1.1  # which the estimate leaves out, are much of a model as small as this
    assert held(*tensors) <= norms * requirements.BYTES_PER_WEIGHT * elements
    assert held(*tensors) <= needed(bench.size)


def test_width_4096_fits_a_card_of_80_gb():
    assert needed(Size(4096, 2, 4, 1024)) < 0.75 * 80e9
    needs = [needed(Size(width, 2, 4, 1024)) for width in (1024, 2048, 4096)]
    assert needs == sorted(needs)


class Graph:
    """Stands for a CUDA graph, which holds memory until it is reset."""

    held = True

    def reset(self) -> None:
        self.held = False


@pytest.mark.parametrize("fails", [False, True])
def test_graphs_are_given_back_when_their_comparison_is_done(bench, monkeypatch, fails):
    """Whoever still names the call that replays one."""

    def compared(measured, calls, control):
        assert graph.held
        raise RuntimeError("no figure")

    each = steps.prepare(way("0 fp32"), bench)
    graph = each.call.graph = Graph()
    if fails:
        monkeypatch.setattr(comparison, "without_culprits", compared)
    comparison.compared("forward and backward", [each], bench, {}, 1, 0.02)
    assert not graph.held and each.call is not None


def test_without_torch_the_scripts_heads_and_the_ways_of_decoding_are_known():
    assert rungs.load("0_baseline").HEAD == requirements.HEAD
    assert len(rungs.TRAINING) <= requirements.CACHES


def test_on_a_small_card_a_step_has_fewer_sequences_unless_they_are_asked_for():
    def batch(gib: int, asked: int = 0) -> int:
        on = Capacity(gib * 2**30, (8, 9))
        return requirements.training_size(on, 1024, 2, asked, 1024).batch

    assert [batch(80), batch(7), batch(1)] == [8, 4, 1] and batch(7, asked=8) == 8
