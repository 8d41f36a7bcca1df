"""Patterns of operations that a compiler fuses, or does not; each by the tensors it is given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

Outputs = Tensor | tuple[Tensor, ...]


@dataclass(frozen=True)
class Pattern:
    """What is called, and what it takes by name."""

    kind: str
    run: Callable[..., Outputs]
    takes: tuple[str, ...]
    options: Mapping[str, object] = field(default_factory=dict)  # of torch.compile


def tensors(side: int, where: torch.device) -> dict[str, Tensor]:
    """What patterns take; numbers above 0, so that no sum of them cancels. `few` and `others` are
    1024 of them, or a row if that is shorter."""
    square = {name: torch.rand(side, side, device=where) + 0.5 for name in ("x", "w", "b")}
    rows = torch.randperm(side, device=where)
    return square | {"row": square["w"][0].clone(), "column": square["b"][:, :1].clone(),
                     "few": square["x"][0, :1024].clone(),
                     "others": square["w"][0, :1024].clone(), "order": rows}  # fmt: skip


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
COMBINED = "x.sin(), y.cos(), 1024 elements, combo kernels"
PATTERNS = {
    "x.cos().cos()": Pattern(DOWN, lambda x: x.cos().cos(), ("x",)),
    "x.sin(), x.cos()": Pattern(ACROSS, lambda x: (x.sin(), x.cos()), ("x",)),
    "x.sin(), y.cos()": Pattern(APART, _apart, ("x", "w")),
    # Small, for of tensors of more than 51 million elements Inductor combines none.
    COMBINED: Pattern(APART, _apart, ("few", "others"), {"combo_kernels": True}),
    "x * row + column": Pattern(
        SHAPES, lambda x, row, column: x * row + column, ("x", "row", "column")
    ),
    "x[order].sin()": Pattern(SHAPES, lambda x, order: x[order].sin(), ("x", "order")),
    "(x * x).sum(-1)": Pattern(INTO, lambda x: (x * x).sum(-1), ("x",)),
    "softmax by hand": Pattern(ROWS, _softmax, ("x",)),
    "x / x.sum(-1)": Pattern(ROWS, lambda x: x / x.sum(-1, keepdim=True), ("x",)),
    "x / x.sum()": Pattern(ALL, lambda x: x / x.sum(), ("x",)),
    "x / x.sum(), 1024 elements": Pattern(ALL, lambda x: x / x.sum(), ("few",)),
    "gate, full w and b": Pattern(DOWN, _gate, ("x", "w", "b")),
    "gate, vectors": Pattern(DOWN, _gate, ("x", "row", "column")),
}
