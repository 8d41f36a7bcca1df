"""Patterns of operations that a compiler fuses, or does not, and the tensors that they take."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

EAGER, COMPILED, BF16, TEMPLATE = "eager", "compiled", "eager bf16", "Triton template"
# A few tiles of Inductor's own matmul: trying all of them would take a minute.
TILES = {
    "max_autotune_gemm": True,
    "max_autotune_gemm_backends": "TRITON",
    "test_configs.autotune_choice_desc_regex": "BLOCK_M=128, BLOCK_N=128",
}
# Ways to run a pattern, beside eager, with the options of torch.compile; None is eager again, of
# tensors in bf16: half of the bytes, in place of fewer trips.
BY_DEFAULT, COMBINING = {COMPILED: {}}, {COMPILED: {"combo_kernels": True}}
TILED, AND_BF16 = {COMPILED: {}, TEMPLATE: TILES}, {COMPILED: {}, BF16: None}


class Pattern(NamedTuple):
    """What is called, with the tensors that its parameters name, eager and in other ways."""

    kind: str
    run: Callable[..., Tensor | tuple[Tensor, ...]]
    ways: Mapping[str, Mapping[str, object] | None] = BY_DEFAULT


def tensors(side: int, dtype: torch.dtype, where: torch.device) -> dict[str, Tensor]:
    """What patterns take; numbers above 0, so that no sum of them cancels. `few` and `others` are
    1024 of them, or a row if that is shorter."""
    given = {name: torch.rand(side, side, dtype=dtype, device=where) + 0.5 for name in "xwb"}
    given |= {"row": given["w"][0].clone(), "column": given["b"][:, :1].clone()}
    given |= {"few": given["x"][0, :1024].clone(), "others": given["w"][0, :1024].clone()}
    given["int8"] = torch.randint(1, 9, (side, side), dtype=torch.int8, device=where)
    return given | {"order": torch.randperm(side, device=where)}


def _softmax(x: Tensor) -> Tensor:
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def _gate(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.sigmoid(torch.relu(x * w + b))


# Small, for of tensors of more than 51 million elements Inductor combines none.
COMBINED = "x.sin(), y.cos(), 1024 elements, combo kernels"
PATTERNS = {
    "x.cos().cos()": Pattern("vertical", lambda x: x.cos().cos()),
    "x.sin(), x.cos()": Pattern("horizontal", lambda x: (x.sin(), x.cos())),
    "x.sin(), y.cos()": Pattern("nothing shared", lambda x, w: (x.sin(), w.cos())),
    COMBINED: Pattern("nothing shared", lambda few, others: (few.sin(), others.cos()), COMBINING),
    "x * row + column": Pattern("different shapes", lambda x, row, column: x * row + column),
    "x[order].sin()": Pattern("different shapes", lambda x, order: x[order].sin()),
    "(x * x).sum(-1)": Pattern("into a reduction", lambda x: (x * x).sum(-1)),
    "softmax by hand": Pattern("through row reductions", _softmax),
    "x / x.sum(-1)": Pattern("through row reductions", lambda x: x / x.sum(-1, keepdim=True)),
    "x / x.sum()": Pattern("through a full reduction", lambda x: x / x.sum()),
    "x / x.sum(), 1024 elements": Pattern("through a full reduction", lambda few: few / few.sum()),
    "gate, full w and b": Pattern("vertical", _gate),
    "gate, vectors": Pattern("vertical", lambda x, row, column: _gate(x, row, column), AND_BF16),
}
MATMULS = {
    "relu(a @ b + bias)": Pattern("epilogue", lambda x, w, row: (x @ w + row).relu(), TILED),
    "a @ int8.to(bf16)": Pattern("prologue", lambda x, int8: x @ int8.to(x.dtype), TILED),
    "a @ b @ c": Pattern("two matmuls", lambda x, w, b: x @ w @ b),
}
