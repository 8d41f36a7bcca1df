"""Limits: what this machine gives at best, sustained. A datasheet's peak is a clock times a width,
so it is the best rate over several shapes, with random numbers (zeros draw less power and run
faster), after the clocks have settled."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import pandas as pd
import torch

from anatomy.chapters.limits import floors as limits_floors
from anatomy.chapters.limits import memory, requirements
from anatomy.chapters.limits import sustained as limits_sustained
from anatomy.chapters.limits.requirements import (
    FORMATS,
    OPS,
    TOGETHER,
    sides,
    size_name,
    working_sets,
)
from anatomy.measure import stopwatch_for
from anatomy.numerics import formats
from anatomy.parts import grid, products
from anatomy.parts import memory as memory_of_device
from anatomy.record.bounds import Count, Length, Scale, Seconds
from anatomy.record.declare import experiment
from anatomy.record.requirements import Requirement

GROUP_S = 3.0  # seconds of 48 blocks of the 16 variants of sizes timed together


@experiment("limits.ceilings", page="limits.md", command="limits", timeout_s=400)
def ceilings(device: str = "cuda:0", scale: Scale = 1.0, iters: Count = 60) -> pd.DataFrame:
    """Measure the ceilings: copy, read and write bandwidth, and products by number format.

    Args:
        iters: Least number of timed samples of each; a dozen where one lasts over 0.4 ms.

    Returns:
        One row per size and way; a ceiling is the largest rate among the rows of one `limit`:
        `copy`, `read`, `write`, `matmul fp16`, and so on.
    """
    where = formats.torch_device(device)
    on = memory_of_device.capacity(where)
    required = list(requirements.ceilings(on, scale))
    tables = []
    # The working sets are several caches, so back-to-back calls find nothing of theirs there.
    for op, sizes in requirements.ceiling_sets(on.cache_bytes, scale).items():
        names = {f"{op} {size_name(size)}": size for size in sizes}
        measure = partial(memory.moved, op=op, where=where, iters=iters)
        tables.append(_fitting(names, measure, op, where, required))
    for dtype in FORMATS:
        names = {f"matmul {dtype} {m} x {n} x {k}": (m, n, k) for m, n, k in sides(scale)}
        measure = partial(
            products.fp8_products if dtype == "fp8" else partial(products.products, dtype),
            where=where,
            iters=iters,
        )
        tables.append(_fitting(names, measure, f"matmul {dtype}", where, required))
    return _joined(tables)


@experiment("limits.bandwidth", page="limits.md", command="limits-bandwidth", timeout_s=300)
def bandwidth(device: str = "cuda:0", scale: Scale = 1.0, iters: Count = 12) -> pd.DataFrame:
    """Measure copy, read and write bandwidth over working-set size: cache, knee and memory.

    Args:
        scale: Factor on the sizes around the cache; 1 but for a quick look.

    Returns:
        One row per operation, size and way, back to back: data stay in the cache as far as they
        fit.
    """
    where = formats.torch_device(device)
    on = memory_of_device.capacity(where)
    sizes = working_sets(on.cache_bytes, scale)
    required = list(requirements.bandwidth(on, scale))
    how = {"iters": iters, "profile": False, "budget_s": GROUP_S}
    tables = []
    for op in OPS:
        for first in range(0, len(sizes), TOGETHER):
            names = {f"{op} {size_name(size)}": size for size in sizes[first : first + TOGETHER]}
            measure = partial(memory.moved, op=op, where=where, **how)
            tables.append(_fitting(names, measure, op, where, required))
    return _joined(tables).assign(cache_bytes=on.cache_bytes)


@experiment("limits.floors", page="limits.md", command="limits-floors", timeout_s=200)
def floors(device: str = "cuda:0", iters: Count = 100) -> pd.DataFrame:
    """Measure the floors: a launch, a wait, a readback, and each kernel of a CUDA graph.

    Args:
        device: A GPU, such as cuda:0; a CPU has none of these costs.
        iters: Least number of timed samples of each; a dozen where one lasts over 0.4 ms.

    Returns:
        One row per operation (`launch`, `wait`, `graph`), quantity and variant; `host_enqueue` is
        the host's time until the call returns, from an empty queue, the others the period of calls.
    """
    return _joined(list(limits_floors.costs(formats.torch_device(device), iters)))


@experiment("limits.sustained", page="limits.md", command="limits-sustained", timeout_s=100)
def sustained(device: str = "cuda:0", side: Length = 8192, seconds: Seconds = 3.0) -> pd.DataFrame:
    """Time one fp16 product after a rest, and the same in a row for seconds.

    Args:
        side: Rows and columns of the matrices.
        seconds: How long products run in a row.

    Returns:
        A row of the products that a rest came before, and one for every 50 ms of those in a row,
        `after_s` of them without a rest, with the clock and the power just behind.
    """
    where = formats.torch_device(device)
    on = memory_of_device.capacity(where)
    op = requirements.sustained_op(side)
    watch = stopwatch_for(where)
    return grid.measure_cells(
        [{"op": op}],
        lambda cell: pd.DataFrame(limits_sustained.products(op, side, seconds, watch)),
        variants=(limits_sustained.ALONE, limits_sustained.IN_A_ROW),
        quantity="gpu_warm",
        where=where,
        required=requirements.sustained(on, side),
    )


def _fitting(
    names: Mapping[str, Any],
    measure: Callable[[list], pd.DataFrame],
    op: str,
    where: torch.device,
    required: Iterable[Requirement],
) -> pd.DataFrame:
    """The table of all sizes that fit beside those below them, and rows that say why for the rest;
    `names` has each size by the name of what it requires, rising."""
    needs = {each.op: each for each in required}
    on = memory_of_device.capacity(where)
    lacking = {name: why for name in names if (why := needs[name].why_not(on))}
    fit = {name: size for name, size in names.items() if name not in lacking}
    table, why = grid.attempt(partial(measure, list(fit.values())), where) if fit else (None, "")
    if table is None:
        lacking |= dict.fromkeys(fit, why)
    notes = {name.removeprefix(f"{op} "): why for name, why in lacking.items()}
    rest = grid.unmeasured({"op": op, "limit": op}, notes, quantity="gpu_warm", where=where)
    return _joined([table, rest] if table is not None and notes else [rest if notes else table])


def _joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    # Columns that are empty in one of the tables would otherwise decide the others' types.
    return pd.concat([table.astype(object) for table in tables], ignore_index=True)
