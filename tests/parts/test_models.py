"""The transformer that the axioms are tried on, and the account of memory."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from anatomy.parts import memory, models
from anatomy.table import formulas

CPU = torch.device("cpu")


def test_a_layer_computes_what_pytorchs_own_does():
    model = models.transformer(64, 1, CPU, torch.float64)[0]
    x = torch.randn(2, 5, 64, dtype=torch.float64)
    own = torch.nn.TransformerEncoderLayer(
        64, 1, 256, dropout=0, activation="gelu", batch_first=True, norm_first=True
    ).double()
    with torch.no_grad():
        for mine, theirs in (
            (model.before, own.norm1),
            (model.between, own.norm2),
            (model.attention.out, own.self_attn.out_proj),
            (model.perceptron.up, own.linear1),
            (model.perceptron.down, own.linear2),
        ):
            theirs.weight.copy_(mine.weight)
            theirs.bias.copy_(mine.bias)
        own.self_attn.in_proj_weight.copy_(model.attention.qkv.weight)
        own.self_attn.in_proj_bias.copy_(model.attention.qkv.bias)
        mask = torch.nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
        expected = own(x, src_mask=mask, is_causal=True)
        torch.testing.assert_close(model(x), expected)


def test_the_weights_are_the_same_each_time_and_leave_the_callers_numbers_alone():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first, second = (models.transformer(32, 2, CPU, torch.float32) for _ in range(2))
    assert torch.equal(torch.rand(2), expected)
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)


def test_gradients_are_those_of_backward_and_nothing_is_stored():
    model = models.transformer(32, 2, CPU, torch.float64)
    x = torch.randn(2, 4, 32, dtype=torch.float64)
    loss, *found = models.gradients_of(model, list(model.parameters()), x)()
    assert all(parameter.grad is None for parameter in model.parameters())
    model(x).float().square().mean().backward()
    for gradient, parameter in zip(found, model.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad)
    assert not loss.requires_grad


@pytest.mark.parametrize(("batch", "sequence"), [(1, 8), (3, 16)])
def test_the_operations_of_a_layer_are_pytorchs_count(batch, sequence):
    model = models.transformer(64, 1, CPU, torch.float32)
    # The fused kernel of the CPU is not in PyTorch's own count; attention written out is.
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
        model(torch.randn(batch, sequence, 64))
    expected = formulas.layer_flops(64, batch * sequence, sequence)
    assert counter.get_total_flops() == expected


def test_a_cpu_keeps_no_account_of_memory():
    assert memory.peak(lambda: torch.zeros(3), CPU) is None
    assert set(memory.columns(None).values()) == {None}
