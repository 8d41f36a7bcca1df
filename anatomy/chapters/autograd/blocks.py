"""The layer of a GPT whose graph is looked at: attention written out or fused, else the same."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from anatomy.chapters.autograd.requirements import Problem
from anatomy.numerics import formats
from anatomy.parts import attention, models
from anatomy.parts.attention import BACKENDS, SWITCHES, WAYS
from anatomy.table.errors import BadParameter

MANUAL, DEFAULT = "manual", "default"
# Parts of the layer whose graphs are counted one by one, the smallest first.
CORE, BETWEEN, PROJECTED, LAYER = (
    "attention",
    "between the projections",
    "with the projections",
    "layer",
)
SCOPES = (CORE, BETWEEN, PROJECTED, LAYER)


@dataclass(frozen=True)
class Size:
    """Sizes of the layer and of its input; those that fit no layer raise BadParameter."""

    batch: int  # sequences B
    sequence: int  # tokens T of each
    width: int  # C, a multiple of `heads`
    heads: int  # H
    dtype: str  # of weights and input

    def __post_init__(self) -> None:
        for name, value in (("batch", self.batch), ("seq", self.sequence), ("nhead", self.heads)):
            if value < 1:
                raise BadParameter(f"{name}={value} must be at least 1.")
        if self.width < 1 or self.width % self.heads:
            fits = max(1, self.width // self.heads) * self.heads
            raise BadParameter(
                f"dmodel={self.width} is not a multiple of nhead={self.heads}: each head takes an "
                f"equal part of the width. Take dmodel={fits}, or dmodel={fits + self.heads}."
            )

    @property
    def exact_bytes(self) -> int:
        """About as many bytes as the same in float64 needs, with attention written out."""
        given = self.batch, self.sequence, self.width, self.heads, self.dtype
        return Problem(*given).exact_bytes


# --8<-- [start:manual]
class Manual(nn.Module):
    """Causal attention as one writes it down."""

    def __init__(self, sequence: int) -> None:
        super().__init__()
        hidden = torch.ones(sequence, sequence, dtype=torch.bool).triu(1)  # True: not to be seen
        self.register_buffer("hidden", hidden)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Three of (B, H, T, D) to (B, H, T, D)."""
        scores = q @ k.mT * q.shape[-1] ** -0.5  # (B, H, T, T)
        scores = scores.masked_fill(self.hidden, float("-inf"))
        return scores.softmax(-1) @ v


# --8<-- [end:manual]


class Fused(nn.Module):
    """The same as one call, with PyTorch's backends switched as wanted, or left as they are."""

    def __init__(self, on: Mapping[str, bool] | None = None) -> None:
        super().__init__()
        self.on = dict(on) if on else None

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Three of (B, H, T, D) to (B, H, T, D)."""
        if self.on:
            for name, (switch, _) in SWITCHES.items():
                switch(self.on[name])
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


# --8<-- [start:layer]
class Attention(nn.Module):
    """Attention between its two projections."""

    def __init__(self, width: int, heads: int, attend: nn.Module) -> None:
        super().__init__()
        self.heads, self.attend = heads, attend
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C)."""
        return self.out(self.between(self.qkv(x)))

    def between(self, qkv: Tensor) -> Tensor:
        """(B, T, 3C) to (B, T, C): take the heads apart, attend, put them together."""
        B, T, _ = qkv.shape
        qkv = qkv.view(B, T, 3, self.heads, -1)  # (B, T, 3, H, D)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # three of (B, H, T, D)
        return self.attend(q, k, v).transpose(1, 2).reshape(B, T, -1)


class Layer(nn.Module):
    """One layer: x + attention(norm(x)), then x + perceptron(norm(x))."""

    def __init__(self, width: int, heads: int, attend: nn.Module) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, attend)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C)."""
        x = x + self.attention(self.before(x))
        return x + self.down(F.gelu(self.up(self.between(x))))


# --8<-- [end:layer]


def attends(sequence: int, ordinary: Mapping[str, bool]) -> dict[str, nn.Module]:
    """Each way to attend, to be called in `attention.switches_kept`."""
    alone = {name: Fused({other: other == name for other in BACKENDS}) for name in BACKENDS}
    return {MANUAL: Manual(sequence), **alone, DEFAULT: Fused(ordinary)}


def layer(size: Size, attend: nn.Module, where: torch.device) -> Layer:
    """A layer with weights that are the same each time."""
    with models.drawn_on(where):
        made = Layer(size.width, size.heads, attend)
    return made.to(where, formats.storage(size.dtype))


def drawn(size: Size, where: torch.device, *shape: int) -> Tensor:
    """A random tensor that wants a gradient, (B, T, C) unless another shape is given."""
    shape = shape or (size.batch, size.sequence, size.width)
    x = torch.randn(shape, device=where).to(formats.storage(size.dtype))
    return x.requires_grad_()


def outputs(size: Size, model: Layer, scope: str, where: torch.device) -> Tensor:
    """The output of one of `SCOPES` of the layer, whose graph begins at fresh inputs."""
    B, T, H = size.batch, size.sequence, size.heads
    if scope == LAYER:
        return model(drawn(size, where))
    if scope == PROJECTED:
        return model.attention(drawn(size, where))
    if scope == BETWEEN:
        return model.attention.between(drawn(size, where, B, T, 3 * size.width))
    # As the layer has them: parts of one tensor, with the strides of a permutation.
    whole = drawn(size, where, B, T, 3, H, size.width // H).detach()
    q, k, v = (part.requires_grad_() for part in whole.permute(2, 0, 3, 1, 4).unbind())
    return model.attention.attend(q, k, v)


def step(model: nn.Module, x: Tensor, grad: Tensor, parameters: list[Tensor] | None = None):
    """A call that runs forward and backward, and returns the output and the matrices' gradients.
    The random gradient has the size of 1: that of a mean would lose half of it in fp16. Gradients
    of vectors are sums over all tokens, which can't be checked as closely in 16 bits. A compiled
    model is told the `parameters` of the one behind it."""
    wanted = [x, *(parameters or list(model.parameters()))]
    shown = [i for i, each in enumerate(wanted) if each.ndim > 1]

    def call() -> tuple[Tensor, ...]:
        out = model(x)
        found = torch.autograd.grad(out, wanted, grad)
        return (out.detach(), *(found[i] for i in shown))

    return call


def too_large(size: Size, where: torch.device) -> dict[str, str]:
    """Ways whose scores would need more than a sensible share of the free memory, and why."""
    given = attention.Size(
        heads=size.batch * size.heads,
        sequence=size.sequence,
        width=size.width // size.heads,
        dtype=size.dtype,
        backward=True,
        causal=True,
    )
    return attention.too_large(given, where)


def refused(
    size: Size, ways: Mapping[str, nn.Module], where: torch.device, names: tuple[str, ...] = WAYS
) -> dict[str, str]:
    """Ways that can't run here, each with the reason that PyTorch gives, or the memory's."""
    found = {name: why for name, why in too_large(size, where).items() if name in names}
    for name in names:
        if name in found:
            continue
        model = layer(size, ways[name], where)

        def attempt(model: Layer = model) -> None:
            out = outputs(size, model, CORE, where)
            out.backward(torch.randn_like(out))

        if why := attention.refusal(name, attempt, where):
            found[name] = why
    return found
