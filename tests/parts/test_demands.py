"""Sizes that do not go together, or do not fit, are refused before anything is allocated."""

import pytest
import torch

from anatomy.machine import host
from anatomy.parts import demands, models, sizes
from anatomy.record.declare import load
from anatomy.record.processes import worker
from anatomy.table.errors import BadParameter, OutOfMemory


@pytest.mark.parametrize(
    ("name", "params", "says"),
    [
        ("accumulation.gradients", {"width": 100}, "try width=128"),
        ("accumulation.gradients", {"batch": 4}, "multiple of 8; try batch=8"),
        ("accumulation.steps", {"batch": 12}, "multiple of 8; try batch=16"),
        ("checkpointing.frontier", {"width": 200}, "multiple of 64; try width=192"),
        ("precision.gradients", {"width": 65}, "try width=64"),
    ],
)
def test_a_size_that_does_not_divide_names_one_that_does(name, params, says):
    with pytest.raises(BadParameter, match=says):
        load(name)(device="cpu", **params)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("accumulation.gradients", {"width": 2**20}),
        ("accumulation.steps", {"layers": 10**5}),
        ("checkpointing.frontier", {"depth": 10**5}),
        ("graph_capture.training", {"layers": 10**5}),
        ("precision.gradients", {"width": 2**20}),
    ],
)
def test_a_model_that_can_not_fit_is_refused_before_its_layers_are_made(name, params, monkeypatch):
    monkeypatch.setattr(host, "free_bytes", lambda _: 2**30)
    monkeypatch.setattr(models, "transformer", None)
    with pytest.raises(OutOfMemory, match=r"A transformer of .* needs"):
        load(name)(device="cpu", **params)


@pytest.mark.parametrize("scale", [1 / 64, 0.2, 0.3, 0.7, 1.0])
def test_a_factor_leaves_widths_of_whole_heads(scale):
    made = [cell.width for cell in sizes.layer_cells(scale, full=True)]
    made += sizes.widths((256, 512, 1024, 2048, 4096), scale)
    for width in made:
        demands.width(width) if width >= 2 * models.HEAD_WIDTH else demands.positive(width=width)
    assert demands.heads_of(0.4) == 1 and demands.heads_of(100) == 64


@pytest.mark.parametrize("shape", [(2**62, 2**10), (2**80,)])
def test_a_tensor_whose_bytes_can_not_be_counted_is_out_of_memory(shape):
    with pytest.raises((RuntimeError, TypeError)) as error:
        torch.empty(shape)
    assert worker.failure(error.value)["error"] == "OutOfMemory"
