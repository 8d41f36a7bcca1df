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


# --8<-- [start:patterns]
def cosines(x):
    return x.cos().cos()


def both(x):
    return x.sin(), x.cos()


def unrelated(x, w):
    return x.sin(), w.cos()


def broadcast(x, row, column):
    return x * row + column


def gather(x, order):
    return x[order].sin()


def sum_of_squares(x):
    return (x * x).sum(-1)


def softmax(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def over_row_sum(x):
    return x / x.sum(-1, keepdim=True)


def over_sum(x):
    return x / x.sum()


def gated(x, w, b):
    return torch.sigmoid(torch.relu(x * w + b))


# --8<-- [end:patterns]

COMBINED = {"combo_kernels": True}
PATTERNS = {
    "x.cos().cos()": Pattern("vertical", cosines, ("x",), (2, 2), (1, 1)),
    "x.sin(), x.cos()": Pattern("horizontal", both, ("x",), (2, 2), (1, 2)),
    "x.sin(), y.cos()": Pattern("nothing shared", unrelated, ("x", "w"), (2, 2), (2, 2)),
    "x.sin(), y.cos(), combo kernels": Pattern(
        "nothing shared", unrelated, ("x", "w"), (2, 2), (2, 2), COMBINED
    ),
    "x * row + column": Pattern(
        "different shapes", broadcast, ("x", "row", "column"), (2, 2), (1, 1)
    ),
    "x[order].sin()": Pattern("different shapes", gather, ("x", "order"), (2, 2), (1, 1)),
    "(x * x).sum(-1)": Pattern("into a reduction", sum_of_squares, ("x",), (2, 1), (1, 0)),
    "softmax by hand": Pattern("through row reductions", softmax, ("x",), (5, 3), (1, 1)),
    "x / x.sum(-1)": Pattern("through row reductions", over_row_sum, ("x",), (2, 1), (1, 1)),
    "x / x.sum()": Pattern("through a full reduction", over_sum, ("x",), (2, 1), (2, 1)),
    "x / x.sum(), 1024 elements": Pattern(
        "through a full reduction", over_sum, ("few",), (0, 0), (0, 0)
    ),
    "gate, full w and b": Pattern("vertical", gated, ("x", "w", "b"), (6, 4), (3, 1)),
    "gate, vectors": Pattern("vertical", gated, ("x", "row", "column"), (4, 4), (1, 1)),
}
