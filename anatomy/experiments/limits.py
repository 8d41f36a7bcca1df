"""Limits: what this machine gives at best, sustained, so that every other figure has a measure.

A datasheet's peak is a product of a clock and a width. What a card sustains depends on its power
budget, its memory and its libraries, so the ceilings are measured: the best rate over several
shapes, with random numbers (zeros draw less power and run faster), after the clocks have settled.
"""

import pandas as pd
import torch

from anatomy import counts, machine, tensors
from anatomy.agreement import ALLOWED, ALLOWED_TF32
from anatomy.experiment import experiment
from anatomy.measuring import compare
from anatomy.measuring.cache import last_level_cache_bytes

# Working sets of the bandwidth ceilings, in multiples of the last-level cache.
CACHES = (4, 16, 64)
# Square products, and one with a long and one with a short reduction; multiples of 128 all.
SHAPES = (
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (16384, 8192, 4096),
    (8192, 8192, 16384),
)


@experiment(page="benchmarks/c01_tensor_semantics.md", command="limits", timeout_s=400)
def ceilings(device: str = "cuda:0", scale: float = 1.0, iters: int = 60) -> pd.DataFrame:
    """Measure the ceilings: copy and read bandwidth, and matrix products by number format.

    Args:
        device: Where to run, such as cuda:0 or cpu.
        scale: Factor on every size; 1 for a GPU, less for a quick look or a CPU.
        iters: Least number of timed samples of each size.

    Returns:
        One row per size, with the columns of `compare`. Bandwidth rows have `bytes`, products
        `flops`; a ceiling is the largest rate among the rows of one `limit`: `copy`, `read`,
        `matmul fp16`, and so on.

    Raises:
        DeviceError: The device is not there.
        OutOfMemory: The largest working set does not fit.
    """
    where = tensors.torch_device(device)
    cache = last_level_cache_bytes(where)
    elements = [max(1024, int(scale * share * cache / 2 / 4) // 1024 * 1024) for share in CACHES]
    sides = [tuple(max(16, int(scale * side) // 16 * 16) for side in shape) for shape in SHAPES]
    largest = max(m * k + k * n + m * n for m, n, k in sides)
    need = max(2 * 4 * 2 * max(elements), (4 + 8) * largest)
    machine.require_bytes(where, need, "the largest working set of the ceilings")
    tables = [_bandwidth(op, elements, where, iters) for op in ("copy", "read")]
    for dtype in ("fp16", "bf16", "tf32", "fp32"):
        tables.append(_products(dtype, sides, where, iters))
        if where.type == "cuda":
            torch.cuda.empty_cache()
    return pd.concat(tables, ignore_index=True)


def _bandwidth(op: str, elements: list[int], where: torch.device, iters: int) -> pd.DataFrame:
    """Copy (bytes read plus bytes written) or read (sums) over working sets beyond the cache.

    Each in two ways, because neither the copy engine nor one reduction is the fastest everywhere.
    """
    variants, references, moved = {}, {}, {}
    for count in elements:
        working_set = f"{2 * count * 4 / 2**20:.0f} MiB"
        ways = _copies(count, where) if op == "copy" else _reads(2 * count, where)
        for way, (call, exact) in ways.items():
            variants[f"{working_set}, {way}"] = call
            references[f"{working_set}, {way}"] = exact
            moved[f"{working_set}, {way}"] = counts.copy_bytes(count, 4)  # a read's set is as large
    return compare(
        variants,
        reference=references,
        # The working set is several caches, so back-to-back calls find nothing of it there.
        quantity="gpu_warm",
        op=op,
        bytes=moved,
        limit=op,
        device=where,
        iters=iters,
    ).table


def _copies(count: int, where: torch.device) -> dict[str, tuple]:
    """Ways to copy `count` float32 elements, each with its exact result."""
    x = torch.randn(count, device=where)
    y = torch.empty_like(x)

    def exact() -> torch.Tensor:
        return x.to(torch.float64)

    return {
        "copy_": (lambda: y.copy_(x), exact),
        "multiply by 1": (lambda: torch.mul(x, 1.0, out=y), exact),
    }


def _reads(count: int, where: torch.device) -> dict[str, tuple]:
    """Ways to read `count` float32 elements, each with its exact result."""
    x = torch.rand(count, device=where)  # all positive, so that the sum is well off 0
    rows = x.view(1024, -1)  # (1024, count / 1024)
    return {
        "one sum": (lambda: torch.sum(x), lambda: torch.sum(x, dtype=torch.float64)),
        "row sums": (
            lambda: torch.sum(rows, dim=1),
            lambda: torch.sum(rows, dim=1, dtype=torch.float64),
        ),
    }


def _products(dtype: str, sides: list[tuple], where: torch.device, iters: int) -> pd.DataFrame:
    """Matrix products of one number format, on random numbers."""
    kind, size = tensors.storage(dtype), tensors.itemsize(dtype)
    variants, references, flops, moved = {}, {}, {}, {}
    for m, n, k in sides:
        a = torch.randn(m, k, dtype=kind, device=where)  # (M, K)
        b = torch.randn(k, n, dtype=kind, device=where)  # (K, N)
        name = f"{m} x {n} x {k}"
        variants[name] = lambda a=a, b=b: a @ b
        references[name] = lambda a=a, b=b: a.to(torch.float64) @ b.to(torch.float64)
        flops[name] = counts.matmul_flops(m, n, k)
        moved[name] = counts.matmul_bytes(m, n, k, size)
    with tensors.products_in(dtype), torch.inference_mode():
        return compare(
            variants,
            reference=references,
            allowed=ALLOWED_TF32 if dtype == "tf32" else ALLOWED[kind],
            quantity="gpu_warm",
            op=f"matmul {dtype}",
            flops=flops,
            bytes=moved,
            limit=f"matmul {dtype}",
            device=where,
            iters=iters,
        ).table
