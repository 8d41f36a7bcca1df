"""One figure from its raw samples to its verdict: a softmax, beside one with two percent more rows.
It is what the page on measuring explains with."""

from typing import Literal

import pandas as pd
import torch

from anatomy.chapters.harnesses import requirements
from anatomy.comparison import compare
from anatomy.numerics import formats
from anatomy.parts import grid, memory
from anatomy.record.bounds import Length
from anatomy.record.declare import experiment
from anatomy.table import formulas


@experiment("worked_example.kernel", page="how-we-measure.md", timeout_s=120, processes=3)
def kernel(
    device: str = "cuda:0",
    dtype: Literal["fp16", "bf16", "fp32"] = "bf16",
    m: Length = 4096,
    k: Length = 4096,
) -> pd.DataFrame:
    """Time a softmax and the same with 2 % more rows, and keep every raw sample.

    Args:
        dtype: Number format.
        m: Rows M of the matrix.
        k: Columns K, over which the softmax is taken.

    Returns:
        One row per quantity and variant, with `samples_s`. The recorder measures it in three
        processes, because a difference of 2 % needs them.
    """
    where = formats.torch_device(device)
    return grid.measure_cells(
        [{"op": "softmax"}],
        lambda cell: _softmaxes(where, dtype, m, k),
        variants=("softmax", "2% more rows"),
        quantity=("gpu_cold", "gpu_warm"),
        where=where,
        required=requirements.kernel(memory.capacity(where), dtype, m, k),
    )


def _softmaxes(where: torch.device, dtype: str, m: int, k: int) -> pd.DataFrame:
    size, more = formats.itemsize(dtype), requirements.rows(m)
    kind = formats.storage(dtype)
    x, y = (torch.randn(rows, k, dtype=kind, device=where) for rows in (m, more))  # (rows, K)
    calls = {
        "softmax": lambda: torch.softmax(x, dim=-1),
        "2% more rows": lambda: torch.softmax(y, dim=-1),
    }
    exact = {
        "softmax": lambda: torch.softmax(x.double(), dim=-1),
        "2% more rows": lambda: torch.softmax(y.double(), dim=-1),
    }
    tables = [
        compare(
            calls,
            reference=exact,
            quantity=quantity,
            op="softmax",
            bytes={
                name: formulas.copy_bytes(t.numel(), size)
                for name, t in zip(calls, (x, y), strict=True)
            },
            limit="copy",
            device=where,
            keep_samples=True,
        ).table
        for quantity in ("gpu_cold", "gpu_warm")
    ]
    return pd.concat(tables, ignore_index=True)
