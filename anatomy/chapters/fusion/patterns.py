"""Patterns of operations that a compiler fuses, or does not; each by the tensors it is given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

Outputs = Tensor | tuple[Tensor, ...]
Trips = tuple[int, int]  # reads and writes of a tensor of full size


@dataclass(frozen=True)
class Pattern:
    """What is called, what it takes by name, and the least that it moves, eager and fused."""

    kind: str
    run: Callable[..., Outputs]
    takes: tuple[str, ...]
    eager: Trips
    fused: Trips
    options: Mapping[str, object] = field(default_factory=dict)  # of torch.compile


def tensors(side: int, where: torch.device) -> dict[str, Tensor]:
    """What patterns take; numbers above 0, so that no sum of them cancels."""
    square = {name: torch.rand(side, side, device=where) + 0.5 for name in ("x", "w", "b")}
    rows = torch.randperm(side, device=where)
    return square | {"row": square["w"][0].clone(), "column": square["b"][:, :1].clone(),
                     "few": square["x"][0, :1024].clone(), "order": rows}  # fmt: skip


def _softmax(x: Tensor) -> Tensor:
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def _gate(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.sigmoid(torch.relu(x * w + b))


def _apart(x: Tensor, y: Tensor) -> Outputs:
    return x.sin(), y.cos()


# Kinds, and the words of the table for them.
DOWN, ACROSS, APART, SHAPES = "vertical", "horizontal", "nothing shared", "different shapes"
INTO, ROWS, ALL = "into a reduction", "through row reductions", "through a full reduction"
PATTERNS = {
    "x.cos().cos()": Pattern(DOWN, lambda x: x.cos().cos(), ("x",), (2, 2), (1, 1)),
    "x.sin(), x.cos()": Pattern(ACROSS, lambda x: (x.sin(), x.cos()), ("x",), (2, 2), (1, 2)),
    "x.sin(), y.cos()": Pattern(APART, _apart, ("x", "w"), (2, 2), (2, 2)),
    "x.sin(), y.cos(), combo kernels": Pattern(
        APART, _apart, ("x", "w"), (2, 2), (2, 2), {"combo_kernels": True}
    ),
    "x * row + column": Pattern(
        SHAPES, lambda x, row, column: x * row + column, ("x", "row", "column"), (2, 2), (1, 1)
    ),
    "x[order].sin()": Pattern(
        SHAPES, lambda x, order: x[order].sin(), ("x", "order"), (2, 2), (1, 1)
    ),
    "(x * x).sum(-1)": Pattern(INTO, lambda x: (x * x).sum(-1), ("x",), (2, 1), (1, 0)),
    "softmax by hand": Pattern(ROWS, _softmax, ("x",), (5, 3), (1, 1)),
    "x / x.sum(-1)": Pattern(ROWS, lambda x: x / x.sum(-1, keepdim=True), ("x",), (2, 1), (1, 1)),
    "x / x.sum()": Pattern(ALL, lambda x: x / x.sum(), ("x",), (2, 1), (2, 1)),
    "x / x.sum(), 1024 elements": Pattern(ALL, lambda x: x / x.sum(), ("few",), (0, 0), (0, 0)),
    "gate, full w and b": Pattern(DOWN, _gate, ("x", "w", "b"), (6, 4), (3, 1)),
    "gate, vectors": Pattern(DOWN, _gate, ("x", "row", "column"), (4, 4), (1, 1)),
}
