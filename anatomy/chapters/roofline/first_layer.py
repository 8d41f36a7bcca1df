"""One layer, relu(x @ W + b), as a CPU and a GPU run it: eager, in half the bits, and compiled."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.roofline import requirements
from anatomy.chapters.roofline.requirements import LAYERS, ON_CPU, layer_sides
from anatomy.comparison import compare
from anatomy.numerics import formats
from anatomy.parts import grid, memory
from anatomy.record.bounds import Count, Scale, Seconds
from anatomy.record.declare import experiment
from anatomy.table import formulas

EAGER, HALF, COMPILED, ONE_CALL = "eager fp32", "eager bf16", "compiled bf16", "one call bf16"
WAYS = (EAGER, HALF, COMPILED, ONE_CALL)
FORMATS = {EAGER: "fp32", HALF: "bf16", COMPILED: "bf16", ONE_CALL: "bf16"}


# --8<-- [start:layer]
def layer(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """x is (M, K), W is (K, N), b is (N,)."""
    return torch.relu(x @ W + b)


# --8<-- [end:layer]


def in_one_call(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """The same by a routine that PyTorch has for it, and hardly anybody calls."""
    return torch._addmm_activation(b, x, W)


@experiment("roofline.first_layer", page="curriculum/day_01.md")
def first_layer(
    device: str = "cuda:0",
    scale: Scale = 1.0,
    iters: Count = 12,
    budget_s: Seconds = 1.0,
    backend: Literal["inductor", "eager"] = "inductor",
) -> pd.DataFrame:
    """Time one layer, small and large: by the CPU, by the GPU in fp32 and bf16, and compiled.

    Args:
        scale: Factor on rows and width of the layer.

    Returns:
        For each size a comparison of the ways on the device, their kernels with them, and one row
        of the host's own time for it, whose `op` says so.
    """
    where = formats.torch_device(device)
    places = dict.fromkeys(LAYERS, where)
    places |= {f"{name}, {ON_CPU}": torch.device("cpu") for name in LAYERS}

    def ways(cell: grid.Cell) -> Sequence[str]:
        return WAYS if cell["op"] in LAYERS else WAYS[:1]

    def measure(cell: grid.Cell) -> pd.DataFrame:
        op = cell["op"]
        M, N = layer_sides(op.partition(",")[0], scale)
        return _timed(op, ways(cell), (M, N), places[op], iters, budget_s, backend)

    with torch.inference_mode(), formats.products_in("fp32"):
        table = grid.measure_cells(
            ({"op": op} for op in places),
            measure,
            variants=ways,
            quantity="step_wall",
            where=where,
            required=requirements.first_layer(memory.capacity(where), scale),
            foreseen=(RuntimeError,),
        )
    table = table.assign(dtype=[FORMATS[each.removesuffix(" (again)")] for each in table.variant])
    return grid.with_counts(table, "flops")


def _timed(
    op: str,
    ways: Sequence[str],
    sides: tuple[int, int],
    where: torch.device,
    iters: int,
    budget_s: float,
    backend: str,
) -> pd.DataFrame:
    """The table of one layer on one device; a way that can't run there says why."""
    M, N = sides
    wide = (torch.randn(M, N, device=where), torch.randn(N, N, device=where) / N**0.5,
            torch.randn(N, device=where))  # fmt: skip
    given = {
        dtype: [each.to(formats.storage(dtype)) for each in wide] for dtype in ("fp32", "bf16")
    }
    run = dict.fromkeys(ways, layer) | {ONE_CALL: in_one_call}
    run[COMPILED] = torch.compile(layer, backend=backend, dynamic=False)
    calls = {way: partial(run[way], *given[FORMATS[way]]) for way in ways}
    exact = {way: partial(_exact, *given[FORMATS[way]]) for way in ways}
    refused = {way: why for way, call in calls.items() if (why := grid.refusal(call))}
    calls = {way: call for way, call in calls.items() if way not in refused}
    # Of the host no ceiling is known, so its row has nothing to be a share of.
    counted = op in LAYERS
    table = compare(
        calls,
        reference={way: exact[way] for way in calls},
        quantity="step_wall",
        op=op,
        flops=formulas.matmul_flops(M, N, N) if counted else None,
        limit={way: f"matmul {FORMATS[way]}" for way in calls} if counted else None,
        device=where,
        iters=iters,
        budget_s=budget_s,
        settle_cap_s=min(1.0, budget_s),
    ).table
    return grid.with_refused(table, {"op": op}, refused, quantity="step_wall", where=where)


def _exact(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    return layer(x.double(), W.double(), b.double())
