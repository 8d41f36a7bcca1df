"""What the first calls take: of an operator in a process, and of each shape that is new to it."""

from itertools import pairwise
from statistics import median

import pandas as pd
import torch

from anatomy.chapters.timing import requirements
from anatomy.chapters.timing.requirements import SHAPES
from anatomy.measure import stopwatch_for
from anatomy.numerics import formats
from anatomy.parts import grid, memory, own_blocks
from anatomy.record.declare import experiment

# Calls from one of these numbers to the next one are a row, by their median. The last row is the
# control of the others, once by every other of its calls and once by the rest.
KEPT = (1, 2, 3, 5, 10, 20, 52)
STEADY = f"call {KEPT[-2]} and on"
CALLS = {"GEMM": lambda x: x @ x, "softmax": lambda x: torch.softmax(x, dim=-1)}
WALL = {"quantity": "step_wall", "method": "host clock around one call and a synchronize"}


@experiment("timing.first_calls", page="curriculum/day_08.md", command="timing-first-calls")
def first_calls(device: str = "cuda:0") -> pd.DataFrame:
    """Time the first calls of a GEMM and a softmax, for a dozen shapes one after the other.

    Returns:
        One row per operation and number of the call, over the shapes, each from the call until the
        device is done; and the very first call of each operation, before any of these.
    """
    where = formats.torch_device(device)

    def measure(cell: grid.Cell) -> pd.DataFrame:
        watch, call, told = stopwatch_for(where), CALLS[cell["op"]], WALL | {"device": where.type}
        given = [torch.randn(n, n, device=where).to(torch.bfloat16) for n in SHAPES]
        taken = [[watch.wall([lambda x=x: call(x)]) for _ in range(1, KEPT[-1])] for x in given]
        first_s = taken.pop(0)[0]
        first = {"op": "first call of all", "variant": cell["op"], "role": "variant"} | told
        first |= {"median_s": first_s, "blocks_s": [first_s], "samples": 1}
        steady, last = own_blocks.again(STEADY), slice(KEPT[-2] - 1, None, 2)
        parts = {STEADY: last}
        parts |= {f"call {a}": slice(a - 1, b - 1) for a, b in pairwise(KEPT[:-1])}
        parts[steady] = slice(KEPT[-2], None, 2)
        blocks = {name: [median(each[part]) for each in taken] for name, part in parts.items()}
        columns = {
            name: {"call": part.start + 1, "samples": len(taken) * len(taken[0][part])}
            for name, part in parts.items()
        }
        table = own_blocks.compared(blocks, columns, op=cell["op"], **told)
        return pd.concat([pd.DataFrame([first]), table], ignore_index=True)

    table = grid.measure_cells(
        [{"op": op} for op in CALLS],
        measure,
        variants=[STEADY],
        quantity="step_wall",
        where=where,
        required=requirements.first_calls(memory.capacity(where)),
    )
    return grid.with_counts(table, "call")
