"""Layers with little and with much to fuse: what they compute, and what happens where one fails."""

import pytest
import torch

from anatomy.chapters.compilation import layers

CPU = torch.device("cpu")


def test_layers_differ_in_what_there_is_to_fuse_and_multiply_as_much():
    found = layers.cells(1.0)
    assert len(found) == len(layers.CELLS) == len({cell.op for cell in found})
    plain, written = found[:2]
    assert plain.layer != written.layer and plain.columns["tokens"] == written.columns["tokens"]
    assert written.flops == pytest.approx(plain.flops, rel=0.02)
    assert len(layers.cells(1e-4)) < len(found), "scaled down, two can be one"


def test_a_layer_that_is_written_out_is_causal_and_turns_by_place():
    cell = layers.Cell("written out", "amp bf16", 64, 1, 8)
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


def test_a_layer_that_fails_says_why_and_the_others_go_on(monkeypatch):
    whole = layers._cell

    def fail(cell, *given):
        if cell.layer == "written out":
            raise RuntimeError("no kernel in /home/someone/kernel.py")
        return whole(cell, *given)

    monkeypatch.setattr(layers, "_cell", fail)
    cells = layers.cells(1 / 64)
    found = layers.measure(cells, CPU, "eager", 6, 0.02)
    refused = found[found.note.notna()]
    assert set(refused.layer) == {"written out"} and refused.median_s.isna().all()
    assert set(found[found.role == "control"].layer) == {"few kernels"}
