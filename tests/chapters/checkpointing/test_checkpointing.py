"""Checkpointing and accumulation as measured: what is computed again, and what is kept."""

import runpy
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from anatomy.chapters.checkpointing import accumulation, checkpointing, requirements
from anatomy.parts import models
from anatomy.record.requirements import Capacity
from anatomy.table.errors import DisagreementError

CPU = torch.device("cpu")
SNIPPET = Path(__file__).parents[3] / "snippets" / "accumulate_by_tokens.py"


@pytest.fixture(scope="module")
def model():
    return models.transformer(64, 4, CPU, torch.float64)


@pytest.fixture(scope="module")
def x():
    return torch.randn(2, 8, 64, dtype=torch.float64)  # (B, T, C)


def ways() -> list[str]:
    return list(checkpointing.granularities(models.transformer(64, 1, CPU, torch.float64)))


@pytest.mark.parametrize("name", ways())
def test_every_granularity_computes_the_models_gradients(name, model, x):
    parameters = list(model.parameters())
    forward = checkpointing.granularities(model)[name]
    expected = models.gradients_of(model, parameters, x)()
    for found, wanted in zip(models.gradients_of(forward, parameters, x)(), expected, strict=True):
        torch.testing.assert_close(found, wanted)


# What is run again, in products of C x C a token: q, k, v 6, out 2, up 8, down 8. A checkpoint
# ends when all that it needs is there, so that the last product of each is not run again.
AGAIN = {
    "none": 0,
    "every layer": 4 * 16,
    "every second layer": 2 * 16,
    "first half": 2 * 16,
    "halves of a layer": 4 * (6 + 8),
    "segments": 2 * (24 + 16),  # two of two layers
    "whole model": 3 * 24 + 16,
    "selective": 0,
}


@pytest.mark.parametrize(("name", "again"), AGAIN.items())
def test_each_granularity_runs_again_what_it_did_not_keep(name, again, model, x):
    def flops(which: str) -> int:
        forward = checkpointing.granularities(model)[which]
        counter = FlopCounterMode(display=False)
        with counter:
            models.gradients_of(forward, list(model.parameters()), x)()
        return counter.get_total_flops()

    # The fused attention of the CPU is not in PyTorch's count, in neither of the two.
    assert flops(name) - flops("none") == again * x.numel() * x.shape[-1]


def test_a_layer_keeps_sixteen_numbers_a_token_and_channel_and_a_checkpoint_one(x):
    x = x.clone().requires_grad_()
    layer = models.transformer(64, 1, CPU, torch.float64)
    storages = {}

    def note(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    held = [each.untyped_storage().data_ptr() for each in layer.parameters()]
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        y = layer(x)
    kept = sum(size for at, size in storages.items() if at not in held)
    # Beside them the norms' mean and spread, and attention's logarithms: a few numbers a token.
    assert 16 * x.nbytes <= kept < 16.5 * x.nbytes
    assert y.shape == x.shape


def test_what_is_selected_is_what_pytorch_has():
    kept = [str(each) for each in checkpointing.kept_operations()]
    assert {"aten.mm.default", "aten.addmm.default"} <= set(kept)
    assert any("flash_attention" in each for each in kept)


def test_the_map_has_depths_a_wider_cell_and_one_with_few_tokens():
    found = cells(2048, 8, 8, 1024, full=False)
    assert [(c.width, c.depth, c.tokens) for c in found] == [
        (2048, 2, 8192), (2048, 4, 8192), (2048, 8, 8192), (1024, 4, 8192), (2048, 4, 128),
    ]  # fmt: skip
    finer = cells(2048, 8, 8, 1024, full=True)
    assert len({c.op for c in finer}) == len(finer) > len(found)
    assert set(found) <= set(finer)
    # Half of seven heads is three of them; half of one narrow head is a narrower one.
    narrow = [cells(w, 4, 8, 8, full=False)[2].width for w in (448, 64, 3, 1)]
    assert narrow == [192, 32, 1, 1]


def cells(*sizes, full):
    return requirements.frontier_cells(Capacity(), *sizes, "bf16", full)


def test_only_the_deepest_cell_has_all_granularities(monkeypatch):
    seen = {}

    def measured(cell, dtype, where, iters, budget_s, names):
        seen[cell.width, cell.depth, cell.tokens] = names, budget_s
        return pd.DataFrame([{"op": cell.op, "variant": "none"}])

    monkeypatch.setattr(checkpointing, "_measured", measured)
    toy = {"device": "cpu", "width": 16, "depth": 8, "batch": 2, "sequence": 16, "budget_s": 6.0}
    checkpointing.frontier(**toy)
    assert seen.pop((16, 8, 32)) == (checkpointing.NAMES, 6.0)
    assert set(seen.values()) == {(checkpointing.BRIEF, 2.0)} and len(seen) == 4
    checkpointing.frontier(**toy, full=True)
    assert {names for names, _ in seen.values()} == {checkpointing.NAMES}


def toy_cell(**given):
    cell = requirements.Cell(16, 2, 1, 4)
    return checkpointing._measured(cell, "fp32", CPU, 3, 0.05, checkpointing.NAMES, **given)


def refusing(monkeypatch, error, *names):
    """Let these granularities fail when they are run."""
    real = checkpointing.granularities

    def broken(model):
        def fail(x):
            raise error

        return {name: fail if name in names else way for name, way in real(model).items()}

    monkeypatch.setattr(checkpointing, "granularities", broken)


def test_a_granularity_that_fails_becomes_a_row_that_says_why(monkeypatch):
    refusing(monkeypatch, RuntimeError("no kernel at /a/b/c.py\nmore"), "selective")
    found = toy_cell().set_index("variant")
    assert found.loc["selective"].note == "not possible here: RuntimeError: no kernel at"
    assert found.loc["selective"].isna().median_s and found.loc["selective"].depth == 2
    assert found.loc["every layer"].median_s > 0


def test_a_cell_that_does_not_fit_has_rows_without_times(monkeypatch):
    refusing(monkeypatch, torch.OutOfMemoryError("Tried to allocate"), "none")
    found = toy_cell().set_index("variant")
    assert "median_s" not in found and len(found) == len(AGAIN)
    assert found.loc["none"].note == "it does not fit into the memory of this device"
    assert found.loc["every layer"].note == "none is not possible here"


def test_a_cell_whose_answers_differ_is_not_timed(monkeypatch):
    def refuse(*args, **kwargs):
        raise DisagreementError("segments strays from its reference.")

    monkeypatch.setattr(checkpointing, "compare", refuse)
    monkeypatch.setattr(accumulation, "compare", refuse)
    note = "not possible here: DisagreementError: segments strays from its reference."
    assert set(toy_cell().note) == {note}
    toy = {"device": "cpu", "width": 16, "layers": 1, "batch": 8, "sequence": 1, "dtype": "fp32"}
    other = accumulation.steps(**toy, budget_s=0.05)
    assert set(other.note) == {"wrong result: segments strays from its reference."}
    assert list(other.steps) == [1, 2, 4, 8, 1]


def test_a_cell_that_does_not_fit_is_followed_by_the_largest_of_fewer_sequences_that_does():
    found = requirements.frontier_cells(Capacity(8 * 2**30), 2048, 8, 8, 1024, "bf16", False)
    left = [cell.op for cell in found if requirements.of_frontier(cell, "bf16").bytes > 7.5 * 2**30]
    assert left == ["train C=2048 L=8 T=8x1024"]
    assert "train C=2048 L=8 T=4x1024" in [cell.op for cell in found] and len(found) == 6


def test_the_traps_are_where_the_page_says():
    found = checkpointing.traps(device="cpu").set_index("variant")
    assert list(found.loc[["plain", "dropout", "batch norm"]].gradient_error) == [0.0] * 3
    assert found.loc["dropout, state not kept"].gradient_error > 0.1
    assert tuple(found.loc["batch norm"][["updates", "updates_without"]]) == (2, 1)
    old = found.loc["reentrant, input without gradient"]
    assert old.gradients_missing == 4 and old.raised == "RuntimeError"
    assert found.loc["reentrant, autograd.grad"].raised == "RuntimeError"
    assert found.loc["autograd.grad"].gradient_error == 0.0


@pytest.fixture(scope="module")
def sums():
    toy = {"width": 16, "layers": 1, "vocabulary": 32, "batch": 8, "sequence": 8}
    return accumulation.gradients(device="cpu", **toy)


def test_accumulated_gradients_are_those_of_the_full_batch_if_the_tokens_are_counted(sums):
    same = sums.gradient_error <= sums.allowed
    equal = sums.lengths == "equal"
    divided, weighted = (sums.variant == name for name in ("loss / steps", "weighted by tokens"))
    assert same[weighted].all() and same[divided & equal].all()
    assert not same[divided & ~equal & (sums.least_tokens < sums.most_tokens)].any()
    assert set(sums[divided].steps) == {2, 4, 8}
    undivided = sums[(sums.variant == "mean loss") & equal & (sums.dtype == "fp64")]
    assert list(undivided.gradient_error) == pytest.approx([1.0, 3.0, 7.0])


def test_equal_lengths_have_no_padding_and_sorted_ones_are_sorted():
    def counts(lengths):
        _, labels = accumulation._tokens(lengths, 32, 8, 16)
        return (labels != accumulation.PADDING).sum(1).tolist()

    assert counts("equal") == [16] * 8
    assert counts("sorted") == sorted(counts("mixed")) != counts("mixed")


def test_a_call_leaves_no_gradient_behind_for_the_next():
    model = nn.Linear(4, 4)
    call = accumulation.accumulated(model, list(model.parameters()), torch.randn(8, 4).chunk(2))
    first, second = call(), call()
    assert all(each.grad is None for each in model.parameters())
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)


def test_the_snippet_gives_the_gradient_of_the_full_batch(capsys):
    shown = runpy.run_path(str(SNIPPET), run_name="__main__")
    errors = [float(line.split("by ")[1].split()[0]) for line in capsys.readouterr().out.split("\n")
              if line]  # fmt: skip
    assert len(errors) == 3 and max(errors) < 1e-12
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9)).double()
    inputs, labels = torch.randint(9, (2, 4, 6))
    labels[0, 1:] = shown["PADDING"]
    shown["backward_in_steps"](model, inputs, labels, 2)
    found = model[1].weight.grad.clone()
    model.zero_grad()
    scores = model(inputs).flatten(0, 1)
    nn.functional.cross_entropy(scores, labels.flatten()).backward()
    torch.testing.assert_close(found, model[1].weight.grad)
