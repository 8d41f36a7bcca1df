"""Limits: what this machine gives at best, sustained. A datasheet's peak is a clock times a width,
so it is the best rate over several shapes, with random numbers (zeros draw less power and run
faster), after the clocks have settled."""

import pandas as pd
import torch

from anatomy.chapters.limits import floors as limits_floors
from anatomy.chapters.limits import memory
from anatomy.machine import host
from anatomy.measure.cache import last_level_cache_bytes
from anatomy.numerics import formats
from anatomy.parts import products
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment

# Working sets of the bandwidth ceilings, in multiples of the last-level cache. All that is written
# is checked in float64, which is twice as large, so the largest is half of the others' there.
CACHES = {"copy": (4, 16, 64), "read": (4, 16, 64), "write": (4, 16, 32)}
# Square products, and one with a long and one with a short reduction; multiples of 128 all.
SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (16384, 8192, 4096), (8192, 8192, 16384))
# The curve over working-set size: powers of two from here to a third of the cache, then these
# multiples of the cache, close together where it is full.
SMALLEST_BYTES = 2**16
AROUND = (0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.25, 1.5, 2, 4, 8)
TOGETHER, GROUP_S = 7, 3.0  # sizes timed together, and seconds of 48 blocks of their 16 variants


@experiment("limits.ceilings", page="limits.md", command="limits", timeout_s=400)
def ceilings(device: str = "cuda:0", scale: Scale = 1.0, iters: Count = 60) -> pd.DataFrame:
    """Measure the ceilings: copy, read and write bandwidth, and products by number format.

    Returns:
        One row per size and way; a ceiling is the largest rate among the rows of one `limit`:
        `copy`, `read`, `write`, `matmul fp16`, and so on.
    """
    where = formats.torch_device(device)
    cache = last_level_cache_bytes(where)
    sets = {op: [_size(scale * each * cache) for each in CACHES[op]] for op in CACHES}
    sides = [tuple(max(16, int(scale * side) // 16 * 16) for side in shape) for shape in SHAPES]
    largest = max(m * k + k * n + m * n for m, n, k in sides)
    # All working sets of one operation, and one of them in float64; or a product in float64 too.
    need = max(sum(sets["copy"]) + 2 * max(sets["write"]), (4 + 8) * largest)
    host.require_bytes(where, need, "the largest working set of the ceilings")
    tables = []
    # The working sets are several caches, so back-to-back calls find nothing of theirs there.
    for op, sizes in sets.items():
        tables.append(memory.moved(sizes, op, where, iters))
        _release(where)
    for dtype in ("fp16", "bf16", "tf32", "fp32"):
        tables.append(products.products(dtype, sides, where, iters))
        _release(where)
    tables.append(products.fp8_products(sides, where, iters))
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
    cache = last_level_cache_bytes(where)
    sizes = working_sets(cache, scale)
    host.require_bytes(where, 5 * sum(sizes[-TOGETHER:]), "the largest working sets")
    tables = []
    for op in memory.OPS:
        for first in range(0, len(sizes), TOGETHER):
            some = sizes[first : first + TOGETHER]
            tables.append(memory.moved(some, op, where, iters, profile=False, budget_s=GROUP_S))
            _release(where)
    return _joined(tables).assign(cache_bytes=cache)


@experiment("limits.floors", page="limits.md", command="limits-floors", timeout_s=200)
def floors(device: str = "cuda:0", iters: Count = 100) -> pd.DataFrame:
    """Measure the floors: a launch, a wait, a readback, and each kernel of a CUDA graph.

    Args:
        device: A GPU, such as cuda:0; a CPU has none of these costs.

    Returns:
        One row per operation (`launch`, `wait`, `graph`), quantity and variant; `host_enqueue` is
        the host's time until the call returns, from an empty queue, the others the period of calls.
    """
    return _joined(list(limits_floors.costs(formats.torch_device(device), iters)))


def working_sets(cache_bytes: int, scale: float = 1.0) -> list[int]:
    """Sizes in bytes of the curve: from 64 KiB to eight caches, rising, each only once."""
    powers = []
    while SMALLEST_BYTES * 2 ** len(powers) <= cache_bytes / 3:
        powers.append(SMALLEST_BYTES * 2 ** len(powers))
    return sorted({_size(scale * each) for each in (*powers, *(m * cache_bytes for m in AROUND))})


def _size(wanted: float) -> int:
    """A working set of about so many bytes that every way of moving it divides."""
    step = memory.STEP_BYTES
    return max(step, round(wanted / step) * step)


def _joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    # Columns that are empty in one of the tables would otherwise decide the others' types.
    return pd.concat([table.astype(object) for table in tables], ignore_index=True)


def _release(where: torch.device) -> None:
    """Give the memory of what was measured back, for the next shapes are others."""
    if where.type == "cuda":
        torch.cuda.empty_cache()
