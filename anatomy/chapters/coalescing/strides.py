"""What a warp's request costs by where its 32 elements lie: apart, or not at the beginning of a
line. One kernel of our own reads them all; bytes are those that were asked for."""

from collections.abc import Sequence
from functools import partial

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import pad

from anatomy.chapters.coalescing import requirements
from anatomy.chapters.coalescing.requirements import ALL, HBM, L1, OFFSETS, ONE, STRIDES
from anatomy.chapters.coalescing.sectors import ITEM_BYTES, LINE_BYTES, sectors, useful_share
from anatomy.machine import host
from anatomy.numerics import formats
from anatomy.parts import cuda_kernels, grid, kernel_tables, memory
from anatomy.parts.kernel_tables import Work
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.record.requirements import Requirement

THREADS = 512  # of a block; as many blocks as fit at once
VALUES = (1, 16)  # small whole numbers: their sums are exact in float32, in any order
IN_L1 = 8  # elements of each thread that stay in the L1 cache: 64 KiB of an SM of 2048 threads
L1_BYTES = 2**32  # that a launch reads from there, in many rounds: 0.15 ms
TABLE_S = 1.5  # seconds of the blocks of one operation

Places = dict[str, tuple[int, int]]  # variant -> stride in elements, offset in bytes


@experiment(
    "coalescing.strides",
    page="curriculum/day_05.md",
    files=("snippets/kernels/strided_read.cu",),
)
def strides(device: str = "cuda:0", scale: Scale = 1.0, iters: Count = 12) -> pd.DataFrame:
    """Measure reads from HBM whose 32 threads of a warp lie 1 to 32 elements apart.

    Returns:
        One row per stride, of reads of `one of each`, and of `all of them`: then the same thread
        reads what lies between its element and the next thread's.
    """
    return _table({op: {f"stride {s}": (s, 0) for s in STRIDES[op]} for op in (ONE, ALL)},
                  formats.torch_device(device), scale, iters)  # fmt: skip


@experiment(
    "coalescing.offsets",
    page="curriculum/day_05.md",
    files=("snippets/kernels/strided_read.cu",),
)
def offsets(device: str = "cuda:0", scale: Scale = 1.0, iters: Count = 12) -> pd.DataFrame:
    """Measure reads of neighbouring elements that begin 0 to 128 bytes after a line does.

    Returns:
        One row per offset, of reads `from HBM` and `from L1`.
    """
    return _table({op: {f"offset {o}": (1, o) for o in OFFSETS} for op in (HBM, L1)},
                  formats.torch_device(device), scale, iters)  # fmt: skip


def _table(ops: dict[str, Places], where: torch.device, scale: float, iters: int) -> pd.DataFrame:
    on = memory.capacity(where)
    need = Requirement("reads", 4 * requirements.reach(on, scale))

    def measure(cell: grid.Cell) -> pd.DataFrame:
        places = ops[cell["op"]]
        make = partial(_works, cell["op"], places, requirements.reach(on, scale), where, scale)
        how = {"limit": "read", "iters": iters, "budget_s": TABLE_S}
        return kernel_tables.timed(cell, dict.fromkeys(places, need), make, where=where, **how)

    return grid.measure_cells(
        [{"op": op} for op in ops],
        measure,
        variants=lambda cell: list(ops[cell["op"]]),
        quantity="gpu_warm",
        where=where,
    )


def _works(
    op: str, places: Places, reach: int, where: torch.device, scale: float, fits: Sequence[str]
) -> dict[str, Work]:
    """Reads of one buffer, whose first element lies at the beginning of a line."""
    run = cuda_kernels.kernel("strided_read")
    blocks = (host.describe(where)["sm_count"] or 1) * run.blocks_per_sm(THREADS)
    threads = blocks * THREADS
    data = torch.randint(*VALUES, (reach // ITEM_BYTES,), device=where, dtype=torch.float32)
    slack = LINE_BYTES // ITEM_BYTES  # beyond the last element, for the largest offset

    def work(stride: int, offset: int) -> Work:
        elements, rounds = (data.numel() - slack) // stride, 1
        if op == L1:
            elements = min(elements, threads * IN_L1)
            rounds = max(1, int(scale * L1_BYTES) // (ITEM_BYTES * elements))
        neighbours, first = stride if op == ALL else 1, offset // ITEM_BYTES
        sums = torch.empty(threads, device=where)

        def call() -> Tensor:
            run(blocks, THREADS, (data, sums, first, stride, neighbours, elements, rounds))
            return sums

        def exact() -> Tensor:
            each = data[first : first + elements * stride].view(elements, stride)
            each = each[:, :neighbours].sum(1, dtype=torch.float64)
            return pad(each, (0, -elements % threads)).view(-1, threads).sum(0) * rounds

        columns = {"stride": stride, "offset_bytes": offset}
        columns["sectors"] = len(sectors(stride, offset))
        columns["useful_share"] = useful_share(stride, offset)
        return Work(call, exact, ITEM_BYTES * elements * neighbours * rounds, columns=columns)

    return {name: work(*places[name]) for name in fits}
