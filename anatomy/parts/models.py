"""The transformer that axioms are tried on: a GPT's usual layers, sized by their width."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from anatomy.parts.demands import HEAD_WIDTH

Layer = Callable[[Tensor], Tensor]


class Attention(nn.Module):
    """Causal self-attention over (B, T, C), with one projection for q, k and v together."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // HEAD_WIDTH)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C)."""
        B, T, C = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.heads, C // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # three of (B, H, T, D)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, H, T, D)
        return self.out(y.transpose(1, 2).reshape(B, T, C))


class Perceptron(nn.Module):
    """Two linear layers, four times as wide in between, with a GELU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C)."""
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    """One layer: x + attention(norm(x)), then x + perceptron(norm(x))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.perceptron = Attention(width), Perceptron(width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C)."""
        x = x + self.attention(self.before(x))
        return x + self.perceptron(self.between(x))


def transformer(width: int, layers: int, device: torch.device, dtype: torch.dtype) -> nn.Sequential:
    """`layers` blocks, the same weights each time; `width` is whole heads, or one narrow head."""
    with drawn_on(device):
        return nn.Sequential(*(Block(width).to(dtype) for _ in range(layers)))


@contextmanager
def drawn_on(device: torch.device) -> Iterator[None]:
    """Draw weights where they are needed, the same each time: a CPU takes seconds for large ones.
    The caller's own random numbers stay as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), device:
        torch.manual_seed(0)
        yield


def half(where: torch.device) -> torch.dtype:
    """What large layers compute in: a CPU is there to show the form, and has no fast bfloat16."""
    return torch.bfloat16 if where.type == "cuda" else torch.float32


def gradients_of(
    model: Layer, parameters: Sequence[Tensor], x: Tensor
) -> Callable[[], tuple[Tensor, ...]]:
    """A call over `x` (B, T, C): loss and all gradients, none of which add up in `.grad`."""
    wanted = list(parameters)

    def call() -> tuple[Tensor, ...]:
        loss = model(x).float().square().mean()
        return loss.detach(), *torch.autograd.grad(loss, wanted)

    return call
