"""What shape, strides and offset say about where elements lie, in six layouts of one matrix."""

import runpy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.memory_layout import requirements
from anatomy.numerics import formats
from anatomy.parts import grid, memory
from anatomy.record.bounds import Length
from anatomy.record.declare import experiment
from anatomy.record.requirements import Requirement
from anatomy.table.errors import AnatomyError

LAYOUTS = ("contiguous", "transposed_view", "sliced_offset_view", "as_strided_view")
LAYOUTS += ("transposed_contig_copy", "contiguous_half")
LINE_BYTES = 128  # the grid on which the seed reports an address; one L2 cache line
# The script that pages show and this experiment runs.
SCRIPT = Path(__file__).parents[3] / "snippets" / "alignment_check.py"


@experiment(
    "tensor_layout.report",
    page="benchmarks/c01_tensor_semantics.md",
    command="c01 tensor-layout",
    timeout_s=120,
)
def report(
    device: str = "cuda:0",
    dtype: Literal["fp16", "bf16", "fp32", "tf32"] = "fp16",
    m: Length = 4096,
    k: Length = 4096,
) -> pd.DataFrame:
    """Report how each layout variant of an M x K matrix lies in memory.

    One row per variant, without times.
    """
    where = formats.torch_device(device)
    return _rows(
        lambda: [_describe(name, view) for name, view in layouts(m, k, dtype, where).items()],
        requirements.layouts(memory.capacity(where), dtype, m, k),
        where,
    )


@experiment(
    "tensor_layout.check",
    page="benchmarks/contiguity_summary.md",
    command="c01 alignment-check",
    timeout_s=120,
    files=("snippets/alignment_check.py",),
)
def check(
    device: str = "cuda:0",
    dtype: Literal["fp16", "bf16", "fp32", "tf32"] = "fp16",
    m: Length = 4096,
    k: Length = 4096,
) -> pd.DataFrame:
    """Ask each layout variant whether a kernel with 16-byte loads can read it as it lies.

    One row per variant, with the answer of the script snippets/alignment_check.py.
    """
    where = formats.torch_device(device)
    if not SCRIPT.exists():
        raise AnatomyError(f"{SCRIPT.name} belongs to the checkout; clone it, and run this there.")
    alignment = runpy.run_path(str(SCRIPT))["alignment"]
    return _rows(
        lambda: [
            {"variant": name, "is_contiguous": a.is_contiguous(), "alignment": alignment(a)}
            for name, a in layouts(m, k, dtype, where).items()
        ],
        requirements.layouts(memory.capacity(where), dtype, m, k),
        where,
    )


def _rows(
    look: Callable[[], list[dict]], required: Iterable[Requirement], where: torch.device
) -> pd.DataFrame:
    """What is seen of each layout, or a row for each that says why nothing is."""
    why = "; ".join(filter(None, (each.why_not(memory.capacity(where)) for each in required)))
    found = None
    if not why:
        found, why = grid.attempt(look, where)
    return pd.DataFrame(found or [{"variant": name, "note": why} for name in LAYOUTS])


def layouts(m: int, k: int, dtype: str, device: torch.device) -> dict[str, Tensor]:
    """The layouts of a random (M, K) matrix, each of which a B of (K, N) can multiply."""
    kind = formats.storage(dtype)
    a = torch.randn(m, k, dtype=kind, device=device)  # (M, K)
    lying = torch.randn(k, m, dtype=kind, device=device)  # (K, M)
    return {
        "contiguous": a,
        "transposed_view": lying.t(),  # (M, K), strides (1, M)
        "sliced_offset_view": a[:, 1:],  # (M, K - 1), one element past an aligned address
        "as_strided_view": a.as_strided((m, k // 2), (k, 2)),  # every other column
        "transposed_contig_copy": lying.t().contiguous(),  # (M, K), strides (K, 1)
        "contiguous_half": a[:, : k // 2].contiguous(),  # (M, K / 2), the work of as_strided_view
    }


def _describe(name: str, view: Tensor) -> dict:
    size = view.element_size()
    return {
        "variant": name,
        "shape": list(view.shape),
        "strides": list(view.stride()),
        "dtype": str(view.dtype),
        "device": str(view.device),
        "storage_offset": view.storage_offset(),
        "offset_bytes": view.storage_offset() * size,
        "base_mod_128": view.data_ptr() % LINE_BYTES,
        "is_contiguous": view.is_contiguous(),
        "is_view": view._is_view(),
        "ld_bytes": max(view.stride()) * size,
        "blas": _blas_reading(view),
    }


def _blas_reading(view: Tensor) -> str:
    """`N`, `T` or `copy`: BLAS wants one stride of 1 and calls the other the leading dimension."""
    rows, columns = view.stride()
    if columns == 1:
        return "N"
    return "T" if rows == 1 else "copy"
