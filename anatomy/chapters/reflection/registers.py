"""What becomes of numbers in registers when they are asked for by an index."""

from collections.abc import Callable

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.reflection import requirements
from anatomy.chapters.reflection.requirements import BLOCKS_PER_SM, KEPT, THREADS
from anatomy.numerics import formats
from anatomy.parts import cuda_kernels, grid, kernel_tables, memory
from anatomy.parts.kernel_tables import Work
from anatomy.record.bounds import Count
from anatomy.record.declare import experiment

ROUNDS = 256  # times that each number is changed: long beside reading and writing them
CONSTANT, VARIABLE = "index known to the compiler", "index known at run time"
HOW = {"budget_s": 4.0}


@experiment(
    "reflection.registers",
    page="curriculum/day_14.md",
    command="reflection-registers",
    files=("snippets/kernels/kept.cu",),
)
def registers(device: str = "cuda:0", iters: Count = 12) -> pd.DataFrame:
    """Keep 32 numbers a thread in an array, and index it by constants, or by a variable.

    Args:
        device: A GPU, such as cuda:0; a CPU runs no kernel of ours.

    Returns:
        One row for each kind of index, back to back, with what the compiler gave a thread. Both do
        the same arithmetic in the same order.
    """
    where = formats.torch_device(device)

    def measure(cell: grid.Cell) -> pd.DataFrame:
        kernel_tables.require(where)
        blocks = torch.cuda.get_device_properties(where).multi_processor_count * BLOCKS_PER_SM
        x = torch.rand(KEPT, blocks * THREADS, device=where)
        works = {}
        for name, variable in ((CONSTANT, 0), (VARIABLE, 1)):
            run = cuda_kernels.kernel(f"kept<{variable}>")
            works[name] = Work(
                _call(run, blocks, x),
                lambda: exact(x, ROUNDS),
                columns=cuda_kernels.given_to_a_thread(run),
            )
        return kernel_tables.compared(cell["op"], works, where=where, iters=iters, **HOW)

    how = {"variants": [CONSTANT, VARIABLE], "quantity": kernel_tables.WARM, "where": where}
    required = requirements.registers(memory.capacity(where))
    cell = {"op": "32 numbers a thread", "thread_registers": None, "local_bytes": None}
    return grid.measure_cells([cell], measure, **how, required=required)


def _call(run, blocks: int, x: Tensor) -> Callable[[], Tensor]:
    def call() -> Tensor:
        out = torch.empty(blocks * THREADS, device=x.device)
        run(blocks, THREADS, (x, out, ROUNDS, 0))
        return out

    return call


def exact(x: Tensor, rounds: int) -> Tensor:
    """The sums in float64: `x` is (kept, threads), the result (threads)."""
    mine = x.double()
    for _ in range(rounds):
        for k in range(KEPT):
            mine[k] = 0.5 * (mine[k] + mine[(k + 1) % KEPT])
    return mine.sum(dim=0)
