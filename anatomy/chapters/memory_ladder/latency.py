"""How long one load takes: a chain of addresses in random order, which no hardware can run ahead
of, over working sets from a few cache lines to far beyond the caches."""

from itertools import cycle, pairwise

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.memory_ladder import requirements
from anatomy.chapters.memory_ladder.bandwidth import with_levels
from anatomy.chapters.memory_ladder.requirements import LINE_BYTES
from anatomy.numerics import formats
from anatomy.parts import cuda_kernels, grid, kernel_tables, memory
from anatomy.parts.kernel_tables import Work
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.table import units

LOADS = 2**14  # of one launch: 0.3 ms even from the nearest cache
# Lines that all threads bring into the L1 cache before one of them chases: larger than any L1. More
# would take the one SM longer than it saves; they stay in the L2 cache from launch to launch.
TOUCHED, THREADS = 2**12, 1024
SIZE_S = 0.3  # seconds of the blocks of one working set


@experiment(
    "memory_ladder.latency",
    page="curriculum/day_04.md",
    files=("snippets/kernels/pointer_chase.cu",),
)
def latency(device: str = "cuda:0", scale: Scale = 1.0, iters: Count = 12) -> pd.DataFrame:
    """Measure the latency of a load by a pointer chase over working sets of 4 KiB to 1 GiB.

    Returns:
        One row per working set, of `loads` that wait for each other, by one thread; and the levels
        of the curve, in rows of their own.
    """
    where = formats.torch_device(device)
    on, loads = memory.capacity(where), max(2, int(LOADS * min(scale, 1.0)))

    def measure(cell: grid.Cell) -> pd.DataFrame:
        kernel_tables.require(where)
        chase = Chase(cell["working_set_bytes"] // LINE_BYTES, loads, where)
        # Alone, for another working set would take its place in the caches.
        works = {cell["variant"]: Work(chase, lambda: torch.ones(1, device=where))}
        table = kernel_tables.compared(cell["op"], works, where=where, iters=iters, budget_s=SIZE_S)
        cycles = chase.cycles.item() / loads
        return table.assign(way="one thread", loads=loads, cycles_per_load=cycles)

    table = grid.measure_cells(
        [
            {"op": f"chase {name}", "variant": name, "working_set_bytes": size}
            for size in requirements.chased(on.cache_bytes, scale)
            for name in [units.byte_count(size)]
        ],
        measure,
        variants=lambda cell: [cell["variant"]],
        quantity="gpu_warm",
        where=where,
        required=requirements.latency(on, scale),
        promised=("loads", "cycles_per_load"),
    )
    return with_levels(grid.with_counts(table, "loads"), ["chase"])


class Chase:
    """A chain through so many lines of memory, in random order and back to where it begins. Each
    call follows the next `loads` links of it: the same few again and again would fit any cache."""

    def __init__(self, lines: int, loads: int, where: torch.device) -> None:
        order, apart = torch.randperm(lines, device=where), LINE_BYTES // 8  # addresses of 8 bytes
        self.chain = torch.zeros(lines * apart, dtype=torch.int64, device=where)
        self.chain[order * apart] = self.chain.data_ptr() + LINE_BYTES * order.roll(-1)
        calls = max(1, lines // loads)  # until all lines have been visited
        stops = order[torch.arange(calls + 1, device=where) * loads % lines].tolist()
        self._ways = cycle(pairwise(stops))
        self._loads, self._touched = loads, lines if lines <= TOUCHED else 0
        self._landed = torch.empty(1, device=where)
        self.cycles = torch.zeros(1, dtype=torch.int64, device=where)

    def __call__(self) -> Tensor:
        """1 if the chain led where it should; `cycles` has how many it took."""
        start, end = next(self._ways)
        given = (self.chain, self._landed, self.cycles, self._touched, start, end, self._loads)
        cuda_kernels.kernel("pointer_chase")(1, THREADS, given)
        return self._landed
