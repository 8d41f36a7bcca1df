"""Occupancy: blocks run in waves, as many at a time as fit; and a load hides behind other warps.

Both experiments limit the blocks that an SM holds at once by shared memory that no block uses."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import torch

from anatomy.chapters.occupancy import requirements
from anatomy.chapters.occupancy.requirements import ALONE, COUNT, ROUNDS, THREADS, TOGETHER
from anatomy.numerics import formats
from anatomy.parts import cuda_kernels, grid, kernel_tables, memory
from anatomy.parts.kernel_tables import Work
from anatomy.record.bounds import Count
from anatomy.record.declare import experiment

STEPS = 20_000  # multiply-adds of a thread, each 4 cycles after the one before: some 45 us a block
WAVES = 4
# Loads that a thread asks for before it waits for them -> what rows call it.
LOADS = {1: "1 load at a time", 4: "4 loads at a time", 16: "16 loads at a time"}
KEPT_BYTES = 2**10  # of an SM's shared memory for each block, from sm_80 on
# Columns that are computed on reading, of which prose asks whether or not there is a time.
JUDGED = ("edge", "at_once", "at_once_low", "at_once_high", "wave_s", "fixed_s", "under_way_s")
HOW = {"budget_s": 8.0}


@experiment(
    "occupancy.staircase",
    page="curriculum/day_02.md",
    command="occupancy-staircase",
    files=("snippets/kernels/multiply_adds.cu",),
)
def staircase(device: str = "cuda:0", iters: Count = 12) -> pd.DataFrame:
    """Time one kernel over its number of blocks, from 1 to 4 times as many as the GPU has SMs.

    Each block does the same work. First it asks for so much shared memory that an SM has room for
    one block alone (two, on cards that give a block less than half of it); then for none.

    Returns:
        One row per number of blocks, back to back. How many run at once is fitted on reading.
    """
    where = formats.torch_device(device)

    def works(card: Any, op: str) -> dict[str, Work]:
        run, shared = cuda_kernels.kernel("multiply_adds"), card.shared_memory_per_block_optin
        counts = block_counts(card.multi_processor_count * run.blocks_per_sm(THREADS, shared))
        shared = shared if op == ALONE else 0
        held = run.blocks_per_sm(THREADS, shared)
        # Every step adds 1, so a thread that starts at its own number ends at a known one.
        ends = torch.arange(THREADS, device=where) + STEPS
        return {
            f"{n} block{'s' if n > 1 else ''}": Work(
                _call(run, n, where, lambda out: (out, STEPS, 1.0, 1.0), shared),
                lambda n=n: ends.expand(n, THREADS),
                columns={"grid_blocks": n, "blocks_per_sm": held},
            )
            for n in counts
        }

    cells = [{"op": op, "grid_blocks": 1, "blocks_per_sm": None} for op in (ALONE, TOGETHER)]
    return _measured(cells, "1 block", where, iters, works)


def block_counts(at_once: int) -> list[int]:
    """Numbers of blocks, rising: quarters of each wave of so many blocks at once, and both sides of
    each wave's end."""
    inside = {round(at_once * part / 4) for part in range(1, 4 * WAVES + 1)}
    edges = {at_once * wave + off for wave in range(1, WAVES) for off in (-1, 0, 1)}
    return sorted(count for count in inside | edges | {1} if count > 0)


@experiment(
    "occupancy.throughput",
    page="curriculum/day_02.md",
    command="occupancy-throughput",
    files=("snippets/kernels/loads.cu",),
)
def throughput(device: str = "cuda:0", iters: Count = 12) -> pd.DataFrame:
    """Read memory with few warps on each SM or many, and with few loads of each thread or many.

    Returns:
        One row for each number of blocks that an SM holds at once, from all that it has room for
        down to one, and of loads that a thread waits for at a time. All read the same bytes.
    """
    where = formats.torch_device(device)

    def works(card: Any, op: str) -> dict[str, Work]:
        kernels = {loads: cuda_kernels.kernel(f"loads<{loads}>") for loads in LOADS}
        full = min(run.blocks_per_sm(THREADS) for run in kernels.values())
        blocks = card.multi_processor_count * full * ROUNDS
        x = torch.rand(blocks, COUNT, THREADS, device=where)  # positive, so that no sum is near 0
        found: dict[str, Work] = {}
        for loads, run in kernels.items():
            for wanted in range(full, 0, -1):
                shared = card.shared_memory_per_multiprocessor // wanted - KEPT_BYTES
                shared = min(shared, card.shared_memory_per_block_optin) // 2**10 * 2**10
                held = run.blocks_per_sm(THREADS, shared)  # the driver's word for it
                place = {
                    "loads_each": LOADS[loads],
                    "blocks_per_sm": held,
                    "occupancy": held * THREADS / card.max_threads_per_multi_processor,
                    "loads_in_flight": held * THREADS // card.warp_size * loads,
                }
                found[f"{LOADS[loads]}, {held} blocks per SM"] = Work(
                    _call(run, blocks, where, lambda out: (x, out, COUNT), shared),
                    lambda: x.sum(dim=1, dtype=torch.float64),
                    bytes=x.nbytes,
                    columns=place,
                    control=next((n for n in found if n.startswith(LOADS[loads])), None),
                )
        return found

    required = requirements.throughput(memory.capacity(where))
    cell = {"op": "read", "loads_each": LOADS[1], "blocks_per_sm": 1}
    cell |= {"occupancy": None, "loads_in_flight": None}
    return _measured([cell], f"{LOADS[1]}, 1 blocks per SM", where, iters, works, required)


def _call(run, blocks: int, where: torch.device, given, shared: int) -> Callable[[], torch.Tensor]:
    """A launch that writes a float for each thread, and returns them."""

    def call() -> torch.Tensor:
        out = torch.empty(blocks, THREADS, device=where)
        run(blocks, THREADS, given(out), shared)
        return out

    return call


def _measured(cells, name: str, where, iters: int, works, required=()) -> pd.DataFrame:
    """The times of each cell's works; rows that say why, where no kernel of ours runs."""

    def one(cell: grid.Cell) -> pd.DataFrame:
        kernel_tables.require(where)
        made = works(torch.cuda.get_device_properties(where), cell["op"])
        how = HOW | {"limit": "read"} if required else HOW
        return kernel_tables.compared(cell["op"], made, where=where, iters=iters, **how)

    how = {"variants": [name], "quantity": kernel_tables.WARM, "where": where, "required": required}
    return grid.measure_cells(cells, one, **how, promised=JUDGED)
