"""Measure PyTorch operations, to be placed on the roofline; and FMAs on each element, until memory
is no longer what they wait for."""

from collections.abc import Mapping
from functools import partial

import pandas as pd
import torch

from anatomy.chapters.roofline import calls, requirements
from anatomy.chapters.roofline.counts import Operation, Sizes, sizes
from anatomy.chapters.roofline.counts import operations as counted
from anatomy.chapters.roofline.requirements import FMAS, chain_elements, fma_name
from anatomy.chapters.roofline.roofs import RIDGE
from anatomy.comparison import compare
from anatomy.numerics import agreement, formats
from anatomy.parts import cuda_kernels, grid, kernel_tables, memory
from anatomy.parts.kernel_tables import Work
from anatomy.record.bounds import Count, Scale, Seconds
from anatomy.record.declare import experiment

THREADS = 256  # of a block
FACTOR, TERM = -0.9990234375, 0.5  # of each FMA, as the kernel has them


@experiment(
    "roofline.intensity",
    page="curriculum/day_06.md",
    files=("snippets/kernels/fma_chain.cu",),
)
def intensity(
    device: str = "cuda:0", scale: Scale = 1.0, iters: Count = 12, budget_s: Seconds = 3.0
) -> pd.DataFrame:
    """Do 1 to 1024 FMAs on each element of a large tensor: find where arithmetic takes over.

    Args:
        device: A GPU, such as cuda:0; the kernel is written in CUDA.

    Returns:
        One row for each number of FMAs (`fmas`), timed back to back. Where the slope ends and the
        flat part begins follows on reading, as `ridge`.
    """
    where = formats.torch_device(device)
    on = memory.capacity(where)

    def measure(_: grid.Cell) -> pd.DataFrame:
        kernel_tables.require(where)
        return chained(chain_elements(on.cache_bytes, scale), where, iters, budget_s)

    return grid.measure_cells(
        [{"op": requirements.CHAIN}],
        measure,
        variants=[fma_name(count) for count in FMAS],
        quantity="gpu_warm",
        where=where,
        required=requirements.intensity(on, scale),
        promised=("fmas", *RIDGE),
    )


def chained(n: int, where: torch.device, iters: int, budget_s: float) -> pd.DataFrame:
    """The table of all numbers of FMAs on `n` elements, a multiple of four."""
    x = torch.randn(n, device=where)
    y = torch.full_like(x, float("nan"))  # for all: each must overwrite what the last one left
    launch = cuda_kernels.kernel("fma_chain")
    fixed = TERM / (1 - FACTOR)

    def call(fmas: int) -> torch.Tensor:
        launch(-(-n // (4 * THREADS)), THREADS, (x, y, n // 4, fmas))
        return y

    def exact(fmas: int) -> torch.Tensor:
        return x.double().sub_(fixed).mul_(FACTOR**fmas).add_(fixed)

    works = {
        fma_name(count): Work(
            partial(call, count),
            partial(exact, count),
            bytes=2 * x.nbytes,
            flops=2 * count * n,
            columns={"fmas": count},
        )
        for count in FMAS
    }
    how = {"limit": "matmul fp32", "iters": iters, "budget_s": budget_s}
    return kernel_tables.compared(requirements.CHAIN, works, where=where, **how)


@experiment("roofline.operations", page="curriculum/day_07.md", timeout_s=400)
def operations(
    device: str = "cuda:0", scale: Scale = 1.0, iters: Count = 12, budget_s: Seconds = 1.5
) -> pd.DataFrame:
    """Time some twenty operations back to back, to be placed on the machine's measured roofs.

    Args:
        scale: Factor on elements; 1 but for a quick look, for less may fit the cache.

    Returns:
        One row for each, with its operations and least bytes. `op` names those that were timed
        together: ratios are over the first of these.
    """
    where = formats.torch_device(device)
    on = memory.capacity(where)
    extent = sizes(on.cache_bytes, scale)
    groups: dict[str, dict[str, Operation]] = {op: {} for op in calls.MAKERS}
    for each in counted(extent):
        groups[each.op][each.name] = each
    with torch.no_grad():
        table = grid.measure_cells(
            ({"op": op} for op in groups),
            lambda cell: _timed(groups[cell["op"]], extent, where, iters, budget_s),
            variants=lambda cell: tuple(groups[cell["op"]]),
            quantity="gpu_warm",
            where=where,
            required=requirements.operations(on, scale),
            foreseen=(RuntimeError,),
        )
    names = zip(table.op, table.variant, strict=True)
    own = [groups[op][variant.removesuffix(" (again)")] for op, variant in names]
    return table.assign(
        extent=[each.size for each in own],
        beside=[each.beside or None for each in own],
        dtype=[each.dtype for each in own],
        limit=[each.roof for each in own],
        flops=[each.flops for each in own],
        bytes=[each.bytes for each in own],
    )


def _timed(
    group: Mapping[str, Operation], extent: Sizes, where: torch.device, iters: int, budget_s: float
) -> pd.DataFrame:
    """The table of operations that are timed together; one that can't run here says why."""
    op = next(iter(group.values())).op
    refused: dict[str, str] = {}
    with formats.products_in("tf32" if op == "matmul tf32" else "fp32"):
        pairs = calls.MAKERS[op](extent, where)
        for name, (call, exact) in pairs.items():  # one by one: a wrong one costs its own row alone
            allowed = calls.ALLOWED.get(name)
            check = partial(agreement.check, {name: call}, {name: exact}, allowed)
            if why := grid.refusal(check):
                refused[name] = why
        there = {name: group[name] for name in pairs if name not in refused}
        if not there:
            return grid.unmeasured(
                {"op": op}, refused, quantity="gpu_warm", where=where, control=next(iter(refused))
            )
        table = compare(
            {name: pairs[name][0] for name in there},
            reference={name: pairs[name][1] for name in there},
            allowed={name: calls.ALLOWED.get(name) for name in there},
            quantity="gpu_warm",
            op=op,
            flops={name: each.flops for name, each in there.items()},
            bytes={name: each.bytes for name, each in there.items()},
            limit={name: each.roof for name, each in there.items()},
            device=where,
            iters=iters,
            budget_s=budget_s,
            settle_cap_s=min(1.0, budget_s),
        ).table
    return grid.with_refused(table, {"op": op}, refused, quantity="gpu_warm", where=where)
