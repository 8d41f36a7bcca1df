"""The base pointer, the leading dimension and the inner dimension K, each aligned or not."""

from typing import Literal

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from anatomy.chapters.memory_layout import requirements
from anatomy.chapters.memory_layout.contiguity import matmul
from anatomy.chapters.memory_layout.requirements import ALIGNED_BYTES
from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.measure.cache import rotation
from anatomy.numerics import formats
from anatomy.numerics.agreement import ALLOWED, ALLOWED_TF32
from anatomy.parts import grid, memory
from anatomy.parts.repeats import least_calls
from anatomy.record.bounds import Count, Length
from anatomy.record.declare import experiment
from anatomy.table import formulas
from anatomy.table.errors import BadParameter

STEPS_BYTES = (2, 4, 8, 16, 32, 64, 128)  # the alignments swept; the smallest is one 16-bit element


@experiment("alignment.factorial", page="benchmarks/contiguity_deep_dive.md", timeout_s=300)
def factorial(
    device: str = "cuda:0",
    op: Literal["matmul", "layer_norm", "pointwise"] = "matmul",
    dtype: Literal["fp16", "bf16", "fp32", "tf32"] = "fp16",
    m: Length = 4096,
    n: Length = 4096,
    k: Length = 4096,
    iters: Count = 100,
) -> pd.DataFrame:
    """Time one operation with base pointer, leading dimension and K each aligned or not.

    Args:
        n: Columns N of B; only the matrix product has them.
        k: Columns K of A, a multiple of 128 bytes; where K is not aligned, it is one less.
        iters: Least number of timed samples of each; a dozen where one lasts over 0.4 ms.

    Returns:
        One row per combination. The control, `aligned`, is contiguous; `base+K` is the seed's
        sliced view; rows of `padded` are aligned, and further apart than they are long.
    """
    size = formats.itemsize(dtype)
    pad = ALIGNED_BYTES // size
    _require_aligned(k, pad)
    cells = {}
    for k_aligned in (True, False):
        for ld_aligned in (True, False):
            for base_aligned in (True, False):
                name = "+".join(
                    word
                    for word, fits in (("base", base_aligned), ("ld", ld_aligned), ("K", k_aligned))
                    if not fits
                )
                cells[name or "aligned"] = {
                    "base": 0 if base_aligned else 1,
                    "ld": k if ld_aligned else k + 1,
                    "k": k if k_aligned else k - 1,
                }
    cells["padded"] = {"base": 0, "ld": k + pad, "k": k}
    table = _compare_places(device, op, dtype, m, n, cells, iters)
    place = table.variant.str.removesuffix(" (again)").map(cells)
    return table.assign(
        base_aligned=[c["base"] == 0 for c in place],
        ld_aligned=[c["ld"] % pad == 0 for c in place],
        k_aligned=[c["k"] % pad == 0 for c in place],
        **_places(place, size),
    )


@experiment("alignment.thresholds", page="benchmarks/contiguity_deep_dive.md", timeout_s=300)
def thresholds(
    device: str = "cuda:0",
    op: Literal["matmul", "layer_norm", "pointwise"] = "matmul",
    dtype: Literal["fp16", "bf16", "fp32", "tf32"] = "fp16",
    m: Length = 4096,
    n: Length = 4096,
    k: Length = 4096,
    iters: Count = 60,
) -> pd.DataFrame:
    """Sweep how far base pointer, leading dimension and K are aligned, one at a time.

    Args:
        n: Columns N of B; only the matrix product has them.
        k: Columns K of A, a multiple of 256 bytes; less by up to 128 bytes where K is swept.
        iters: Least number of timed samples of each; a dozen where one lasts over 0.4 ms.

    Returns:
        One row per `factor` and alignment; the control, `aligned`, is contiguous. Where K is swept,
        the rows stay as far apart as in it.
    """
    size = formats.itemsize(dtype)
    pad = ALIGNED_BYTES // size
    _require_aligned(k, 2 * pad)
    cells = {"aligned": {"base": 0, "ld": k, "k": k, "factor": "aligned", "step": None}}
    for step in (s for s in STEPS_BYTES if s >= size):
        shift = step // size
        aligned = cells["aligned"]
        for factor, place in (
            ("base", {"base": shift}),
            ("ld", {"ld": k + shift}),
            ("k", {"k": k - shift}),
        ):
            cells[f"{factor} {step} B"] = aligned | place | {"factor": factor, "step": step}
    table = _compare_places(device, op, dtype, m, n, cells, iters)
    place = table.variant.str.removesuffix(" (again)").map(cells)
    return table.assign(
        factor=[c["factor"] for c in place],
        alignment_bytes=[c["step"] for c in place],
        **_places(place, size),
    )


def _require_aligned(k: int, multiple: int) -> None:
    if k % multiple or k < multiple:
        good = max(multiple, round(k / multiple) * multiple)
        raise BadParameter(f"k={k} is not a multiple of {multiple}; try k={good}.")


def _places(place, size: int) -> dict[str, list[int]]:
    return {
        "k": [c["k"] for c in place],
        "ld_bytes": [c["ld"] * size for c in place],
        "base_bytes": [c["base"] * size for c in place],
    }


def _compare_places(device, op, dtype, m, n, cells, iters) -> pd.DataFrame:
    where = formats.torch_device(device)
    k = cells["aligned"]["k"]
    return grid.measure_cells(
        [{"op": op}],
        lambda cell: _places_of(where, op, dtype, m, n, cells, iters),
        variants=tuple(cells),
        quantity="gpu_cold",
        where=where,
        required=requirements.places(memory.capacity(where), op, dtype, m, n, k),
    )


def _places_of(where, op, dtype, m, n, cells, iters) -> pd.DataFrame:
    size = formats.itemsize(dtype)
    wide = max(c["ld"] for c in cells.values())
    # All places share one buffer in turn: what differs is where in it the operand is read.
    sets = rotation(m * wide * size, where)
    kind = formats.storage(dtype)
    buffers = [torch.randn(m * wide + ALIGNED_BYTES, dtype=kind, device=where) for _ in range(sets)]
    b = torch.randn(wide, n if op == "matmul" else 1, dtype=kind, device=where)  # (K, N)
    weight, bias = torch.randn(2, wide, dtype=kind, device=where)  # (K,) each

    def call(place: dict, buffer: Tensor, upcast: torch.dtype | None = None):
        a = _place(buffer, m, **{name: place[name] for name in ("base", "ld", "k")})  # (M, K)
        operands = [a, b[: place["k"]], weight[: place["k"]], bias[: place["k"]]]
        run = {"matmul": matmul, "layer_norm": _layer_norm, "pointwise": _pointwise}[op]
        if upcast:
            return lambda: run(*(x.to(upcast) for x in operands))
        return lambda: run(*operands)

    flops, moved = _work(op, m, n, cells, size)
    with formats.products_in(dtype), torch.inference_mode():
        rings = {name: [call(at, x) for x in buffers] for name, at in cells.items()}
        first = (ring[0] for ring in rings.values())
        return compare(
            rings,
            reference={name: call(at, buffers[0], torch.float64) for name, at in cells.items()},
            allowed=ALLOWED_TF32 if (op, dtype) == ("matmul", "tf32") else ALLOWED[kind],
            quantity="gpu_cold",
            op=op,
            flops=flops,
            bytes=moved,
            limit=f"matmul {dtype}" if op == "matmul" else "copy",
            device=where,
            iters=least_calls(iters, first, stopwatch_for(where)),
        ).table


def _place(buffer: Tensor, rows: int, base: int, ld: int, k: int) -> Tensor:
    """A (rows, k) matrix in `buffer` whose rows begin `ld` elements apart, the first at `base`."""
    if buffer.data_ptr() % ALIGNED_BYTES and buffer.device.type == "cuda":
        raise AssertionError("the allocator returned a buffer that is not aligned to 128 bytes")
    return buffer.as_strided((rows, k), (ld, 1), base)


def _work(op: str, m: int, n: int, cells: dict, size: int):
    columns = {name: place["k"] for name, place in cells.items()}
    if op == "matmul":
        return (
            {name: formulas.matmul_flops(m, n, k) for name, k in columns.items()},
            {name: formulas.matmul_bytes(m, n, k, size) for name, k in columns.items()},
        )
    count = formulas.layer_norm_bytes if op == "layer_norm" else formulas.pointwise_bytes
    return None, {
        name: count(m, k, size) if op == "layer_norm" else count(m * k, size)
        for name, k in columns.items()
    }


def _layer_norm(a: Tensor, b: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(a, weight.shape, weight, bias)  # (M, K)


def _pointwise(a: Tensor, b: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return a * 2  # (M, K): one read and one write per element, nothing to reuse
