"""A product, layer norm, and the seed's 'LayerNorm-ish' chain on six layouts of a matrix."""

from typing import Literal

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from anatomy.chapters.memory_layout import requirements
from anatomy.chapters.memory_layout.tensor_layout import LAYOUTS, layouts
from anatomy.comparison import Comparison, compare
from anatomy.measure import stopwatch_for
from anatomy.measure.cache import rotation
from anatomy.numerics import formats
from anatomy.numerics.agreement import ALLOWED, ALLOWED_TF32
from anatomy.parts import grid, memory, repeats
from anatomy.record.bounds import Count, Length
from anatomy.record.declare import experiment
from anatomy.table import formulas

EPS = 1e-5
BUDGET_S = 10.0  # for each of six comparisons; products at the power limit stay wide anyway
# One format is asked more than the others: norms from a cold cache, and all iterations of calls of
# up to 2 ms, which tell how many are enough.
IN_FULL = "fp16"
LONG_S = repeats.LONG_S, 2e-3
WARM, COLD = "gpu_warm", "gpu_cold"
CHAIN_ROUNDINGS = 8  # to the chain's 16-bit type, one after each step; layer_norm rounds once


@experiment(
    "contiguity.bench",
    page="benchmarks/c01_tensor_semantics.md",
    command="c01 contiguity-bench",
    timeout_s=400,
)
def bench(
    device: str = "cuda:0",
    dtype: Literal["fp16", "bf16", "fp32", "tf32"] = "fp16",
    m: Length = 4096,
    n: Length = 4096,
    k: Length = 4096,
    iters: Count = 200,
) -> pd.DataFrame:
    """Time a matrix product, layer_norm and a hand-written layer norm on each layout of A.

    Args:
        iters: Least number of timed samples of each; a dozen where one lasts over 0.4 ms, in fp16
            over 2 ms.

    Returns:
        One row per operation, quantity (gpu_warm; of the norms in fp16 also gpu_cold) and variant.
        `as_strided_view` has `contiguous_half` as its control, which does the same work; all others
        have `contiguous`.
    """
    where = formats.torch_device(device)
    sets = rotation(m * k * formats.itemsize(dtype), where)

    def measure(cell: grid.Cell) -> pd.DataFrame:
        op, call = cell["op"], CALLS[cell["op"]]
        made = (layouts(m, k, dtype, where) for _ in range(sets))
        inputs = [(a, _weights(n, m, k, dtype, where)) for a in made]
        tables = []
        rings = {name: [_bind(call, a[name], weights) for a, weights in inputs] for name in LAYOUTS}
        kernels = True  # the same ones, cold or warm: they are listed once
        first = [ring[0] for ring in rings.values()]
        calls = repeats.least_calls(iters, first, stopwatch_for(where), LONG_S[dtype == IN_FULL])
        for quantity in quantities(op, dtype):
            found = _compare(op, quantity, rings, inputs[0], dtype, n, where, calls, kernels)
            tables.append(found.table)
            kernels = found.census
        return pd.concat(tables, ignore_index=True)

    with formats.products_in(dtype), torch.inference_mode():
        return grid.measure_cells(
            [{"op": op} for op in CALLS],
            measure,
            variants=LAYOUTS,
            quantity=lambda cell: quantities(cell["op"], dtype),
            where=where,
            required=requirements.bench(memory.capacity(where), dtype, m, n, k),
        )


def quantities(op: str, dtype: str) -> tuple[str, ...]:
    """What is asked of an operation. A product reads each element so often that where it first lay
    hardly counts. Of a norm it counts, but alike in every format, so that one tells of all."""
    return (WARM, COLD) if op != "matmul" and dtype == IN_FULL else (WARM,)


def _compare(op, quantity, rings, inputs, dtype, n, where, iters, kernels) -> Comparison:
    views, weights = inputs
    shapes = {name: view.shape for name, view in views.items()}
    exact = matmul if op == "matmul" else _norm
    loose = CHAIN_ROUNDINGS if op == "layer_norm_chain" else 1
    size = formats.itemsize(dtype)
    if op == "matmul":
        flops = {name: formulas.matmul_flops(m, n, k) for name, (m, k) in shapes.items()}
        moved = {name: formulas.matmul_bytes(m, n, k, size) for name, (m, k) in shapes.items()}
    else:
        flops = None
        moved = {name: formulas.layer_norm_bytes(m, k, size) for name, (m, k) in shapes.items()}
    return compare(
        # Warm means one set of buffers, cold means sets in turn.
        {name: ring if quantity == COLD else ring[0] for name, ring in rings.items()},
        control="contiguous",
        against={"as_strided_view": "contiguous_half"},
        reference={v: _bind(exact, view, weights, torch.float64) for v, view in views.items()},
        allowed=loose * _allowed(op, dtype),
        quantity=quantity,
        op=op,
        flops=flops,
        bytes=moved,
        limit=f"matmul {dtype}" if op == "matmul" else "copy",
        device=where,
        iters=iters,
        budget_s=BUDGET_S,
        profile=kernels,
    )


def _allowed(op: str, dtype: str) -> float:
    return ALLOWED_TF32 if (op, dtype) == ("matmul", "tf32") else ALLOWED[formats.storage(dtype)]


def _weights(n: int, m: int, k: int, dtype: str, device: torch.device) -> dict[str, Tensor]:
    """B (K, N), and a weight and bias (K,) of the layer norm, for one set of buffers."""
    kind = formats.storage(dtype)
    return {
        "b": torch.randn(k, n, dtype=kind, device=device),
        "weight": torch.randn(k, dtype=kind, device=device),
        "bias": torch.randn(k, dtype=kind, device=device),
    }


def _bind(call, view: Tensor, weights: dict[str, Tensor], upcast: torch.dtype | None = None):
    """`call` on one layout, with B and the weights cut to its number of columns."""
    columns = view.shape[1]
    cut = {name: tensor[:columns] for name, tensor in weights.items()}
    if upcast is None:
        return lambda: call(view, **cut)
    return lambda: call(view.to(upcast), **{name: t.to(upcast) for name, t in cut.items()})


def matmul(a: Tensor, b: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The product; weight and bias are the norm's."""
    return a @ b  # (M, K) @ (K, N) -> (M, N)


def _norm(a: Tensor, b: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(a, weight.shape, weight, bias, EPS)  # (M, K)


def _chain(a: Tensor, b: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    centred = a - a.mean(-1, keepdim=True)  # (M, K)
    variance = a.var(-1, keepdim=True, unbiased=False)  # (M, 1)
    return centred * torch.rsqrt(variance + EPS) * weight + bias  # (M, K)


# Operation -> what is timed on each layout, as `_bind` calls it.
CALLS = {"matmul": matmul, "layer_norm": _norm, "layer_norm_chain": _chain}
