"""Bandwidth over working-set size by kernels of our own. A library's reduction begins and ends once
for every few microseconds of reading; here each block moves its window of the set again and again
inside one launch, so that start and end hardly count."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.memory_ladder import requirements
from anatomy.chapters.memory_ladder.requirements import BY_ALL, ONCE, OPS, PARTS_FROM, TORCH, WRITE
from anatomy.machine import host
from anatomy.numerics import formats
from anatomy.parts import cuda_kernels, grid, kernel_tables, memory
from anatomy.parts.kernel_tables import Work
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.table import units

THREADS = 1024  # of the one block of each SM
ROW_BYTES = THREADS * 16  # that a block moves in one step: the widest load of each thread
MOVED_BYTES = 2**33  # by one launch: 0.3 ms even from the nearest cache
ITEM_BYTES = 4  # float32
VALUES = (1, 16)  # small whole numbers: their sums are exact in float32, in any order
CURVE_S = 1.0  # seconds of the blocks of one curve
MOST_LEVELS = 5  # that a curve is asked for


class Windows(NamedTuple):
    """How a working set is shared out among blocks; its rows are of `ROW_BYTES`."""

    rows: int  # of a block's window
    apart: int  # rows from one block's window to the next one's; 0 if all have the same
    rounds: int  # how often a launch goes through its window
    set_bytes: int  # that one launch touches
    moved_bytes: int  # by one launch


def windows(op: str, size: int, blocks: int, scale: float = 1.0) -> Windows:
    """The windows of so many blocks in a set of about `size` bytes."""
    by_all = op == BY_ALL or (op == WRITE and size < scale * PARTS_FROM)
    rows = max(1, round(size / ROW_BYTES / (1 if by_all else blocks)))
    once = ROW_BYTES * rows * blocks
    rounds = 1 if op in (ONCE, TORCH) else max(1, round(scale * MOVED_BYTES / once))
    return Windows(
        rows, 0 if by_all else rows, rounds, ROW_BYTES * rows if by_all else once, rounds * once
    )


@experiment(
    "memory_ladder.bandwidth",
    page="curriculum/day_04.md",
    files=("snippets/kernels/ladder_read.cu", "snippets/kernels/ladder_write.cu"),
)
def bandwidth(device: str = "cuda:0", scale: Scale = 1.0, iters: Count = 12) -> pd.DataFrame:
    """Measure read and write bandwidth over working sets of 64 KiB to 4 GiB.

    Returns:
        One row per curve and working set: `read by all` (every SM reads all of the set), `read in
        parts` (each SM its own part), `read once` (its part, once a launch), `torch.sum` and
        `write`; and the levels of each curve, in rows of their own.
    """
    where = formats.torch_device(device)
    on, blocks = memory.capacity(where), host.describe(where)["sm_count"] or 1
    needs = {each.op: each for each in requirements.bandwidth(on, scale)}

    def names(cell: grid.Cell) -> dict[str, int]:
        sizes = requirements.sets(cell["op"], on.cache_bytes, scale)
        return {units.byte_count(size): size for size in sizes}

    def measure(cell: grid.Cell) -> pd.DataFrame:
        op, sizes = cell["op"], names(cell)

        def make(fits: Sequence[str]) -> dict[str, Work]:
            return _works(
                op, {n: windows(op, sizes[n], blocks, scale) for n in fits}, where, blocks
            )

        wanted = {name: needs[f"{op} {name}"] for name in sizes}
        how = {"limit": WRITE if op == WRITE else "read", "iters": iters, "budget_s": CURVE_S}
        return kernel_tables.timed(cell, wanted, make, where=where, **how)

    cells = [{"op": op} for op in OPS]
    table = grid.measure_cells(cells, measure, variants=names, quantity="gpu_warm", where=where)
    return with_levels(table, OPS)


def with_levels(table: pd.DataFrame, curves: Sequence[str]) -> pd.DataFrame:
    """The table with rows for the levels of each curve, of which `judged` tells on reading."""
    told = {"role": "variant", "note": "fitted to the rows of its curve"}
    levels = [
        {"op": f"{curve}, levels", "variant": f"level {number}"} | told
        for curve in curves
        for number in range(1, MOST_LEVELS + 1)
    ]
    return pd.concat([table.astype(object), pd.DataFrame(levels)], ignore_index=True)


def _works(op: str, sets: dict[str, Windows], where: torch.device, blocks: int) -> dict[str, Work]:
    """A curve's calls, in buffers of which each set is the beginning."""
    most = max(each.set_bytes for each in sets.values()) // ITEM_BYTES
    run = cuda_kernels.kernel("ladder_write" if op == WRITE else "ladder_read")
    data = torch.randint(*VALUES, (most,), device=where, dtype=torch.float32)

    def work(each: Windows) -> Work:
        part = data[: each.set_bytes // ITEM_BYTES]
        buffers = [part] if op == WRITE else [part, torch.empty(blocks, THREADS, device=where)]
        given = (*buffers, each.rows, each.apart, each.rounds)

        def call() -> Tensor:
            run(blocks, THREADS, given)
            return buffers[-1]

        exact = {
            WRITE: lambda: torch.full_like(part, each.rounds),  # what the last round leaves
            TORCH: lambda: part.sum(dtype=torch.float64),
        }.get(op, partial(_sums, part, each, blocks))
        columns = {"working_set_bytes": each.set_bytes}
        return Work(part.sum if op == TORCH else call, exact, each.moved_bytes, columns=columns)

    return {name: work(each) for name, each in sets.items()}


def _sums(data: Tensor, sets: Windows, blocks: int) -> Tensor:
    """What each thread of each block reads, summed in float64: (blocks, THREADS)."""
    window = data.view(-1, sets.rows, THREADS, 4)  # (blocks, or 1 for all, rows, THREADS, 4)
    return (window.sum((1, 3), dtype=torch.float64) * sets.rounds).expand(blocks, THREADS)
