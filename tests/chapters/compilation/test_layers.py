"""Layers with little and with much to fuse: what they compute, and what happens where one fails."""

import pytest
import torch

from anatomy.chapters.compilation import layers, requirements

CPU = torch.device("cpu")


def test_layers_differ_in_what_there_is_to_fuse_and_multiply_as_much():
    found = requirements.layer_cells(1.0)
    assert len(found) == len(requirements.CELLS) == len({cell.op for cell in found})
    plain, written = found[:2]
    assert plain.layer != written.layer and plain.columns["tokens"] == written.columns["tokens"]
    assert written.flops == pytest.approx(plain.flops, rel=0.02)
    assert len(requirements.layer_cells(1e-4)) < len(found), "scaled down, two can be one"


def test_a_layer_that_is_written_out_is_causal_and_turns_by_place():
    cell = requirements.Cell("written out", "amp bf16", 64, 1, 8)
    model = layers.layer_of(cell, CPU)
    x = torch.randn(1, 8, 64)
    later = x.clone()
    later[0, 7] += 1
    with torch.no_grad():
        assert torch.allclose(model(x)[0, :7], model(later)[0, :7], atol=1e-5)
        same = x[:, :1].expand(1, 8, 64)
        q = model.qkv(model.before(same)).view(1, 8, 3, 1, 64)[:, :, 0].transpose(1, 2)
        turned = model._turned(q)
    assert torch.allclose(turned[0, 0, 0], q[0, 0, 0], atol=1e-6)
    assert not torch.allclose(turned[0, 0, 0], turned[0, 0, 5], atol=1e-2)
    assert torch.allclose(turned.norm(dim=-1), q.norm(dim=-1), rtol=1e-4)


def test_a_stack_is_one_graph_and_does_as_much_as_its_layers():
    whole, *stacks = [cell for cell in requirements.layer_cells(1.0) if cell.layers > 1]
    assert [cell.layers for cell in (whole, *stacks)] == [2, 4, 8] and "L=2" in whole.op
    for cell in stacks:
        assert cell.flops * whole.layers == whole.flops * cell.layers
        assert cell.required.needed > whole.required.needed
    small = requirements.scaled_cell(1 / 32, *requirements.STACK, 3)
    assert len(layers.layer_of(small, CPU)) == 3
    found = layers.measure([small], CPU, "eager", 6, 0.02, layers.TUNED_MODES)
    timed = found[found.role == "variant"].set_index("variant")
    assert list(timed.index) == ["compiled", "max-autotune"] and set(found.layers) == {3}
    assert timed.setup_s.notna().all() and timed.note.isna().all()


def test_gradients_of_many_layers_in_bf16_are_within_what_is_allowed():
    """What rounding adds up to in 32 layers: their first gradients come last."""
    cell = requirements.Cell(*requirements.STACK[:2], 64, 1, 32, 32)
    found = layers.measure([cell], CPU, "eager", 6, 0.02)
    assert found.note.isna().all() and 0 < found.error.max() < layers.ALLOWED / 2


def test_a_stack_that_does_not_fit_says_so_and_the_others_are_measured(monkeypatch):
    small, large = (
        requirements.scaled_cell(1 / 64, *requirements.STACK, many) for many in (2, 10**9)
    )
    found = layers.measure([large, small], CPU, "eager", 6, 0.02)
    refused = found[found.layers == large.layers]
    assert refused.note.notna().all() and found[found.layers == 2].note.isna().all()


def test_a_layer_that_fails_says_why_and_the_others_go_on(monkeypatch):
    whole = layers._cell

    def fail(cell, *given):
        if cell.layer == "written out":
            raise RuntimeError("no kernel in /home/someone/kernel.py")
        return whole(cell, *given)

    monkeypatch.setattr(layers, "_cell", fail)
    cells = requirements.layer_cells(1 / 64)
    found = layers.measure(cells, CPU, "eager", 6, 0.02)
    refused = found[found.note.notna()]
    assert set(refused.layer) == {"written out"} and refused.median_s.isna().all()
    timed = found[found.note.isna()]
    assert set(timed[timed.role == "control"].layer) == {"few kernels"}
