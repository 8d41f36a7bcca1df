"""What the first calls take: of an operator in a process, and of each shape that is new to it."""

from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.timing import requirements
from anatomy.chapters.timing.requirements import SHAPES
from anatomy.measure import stopwatch_for
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import formats
from anatomy.parts import grid, memory
from anatomy.record.declare import experiment

# Calls from one of these numbers to the next one are a row, by their median; the last row is the
# control of the others, once by its odd calls and once by its even ones.
KEPT = (1, 2, 3, 5, 10, 20, 52)
CALLS = {"GEMM": lambda x: x @ x, "softmax": lambda x: torch.softmax(x, dim=-1)}
ALL = "first of all"


@experiment("timing.first_calls", page="curriculum/day_08.md", command="timing-first-calls")
def first_calls(device: str = "cuda:0") -> pd.DataFrame:
    """Time the first calls of a GEMM and a softmax, for a dozen shapes one after the other.

    Returns:
        One row per operation and number of the call, over the shapes, each from the call until the
        device is done; and the very first call of each operation, before any of these.
    """
    where = formats.torch_device(device)

    def measure(cell: grid.Cell) -> pd.DataFrame:
        watch = stopwatch_for(where)
        given = [torch.randn(n, n, device=where).to(torch.bfloat16) for n in SHAPES]
        return pd.DataFrame(_rows(cell["op"], given, watch))

    table = grid.measure_cells(
        [{"op": op} for op in CALLS],
        measure,
        variants=["call 1"],
        quantity="step_wall",
        where=where,
        required=requirements.first_calls(memory.capacity(where)),
    )
    return grid.with_counts(table, "call")


def _rows(op: str, given: list[Tensor], watch: Stopwatch) -> Iterator[dict[str, Any]]:
    call, told = CALLS[op], {"op": op, "quantity": "step_wall", "device": watch.device.type}
    told |= {"method": "host clock around one call and a synchronize"}
    taken = [[watch.wall([lambda x=x: call(x)]) for _ in range(1, KEPT[-1])] for x in given]
    very_first = taken.pop(0)[0]
    yield told | {"op": ALL, "variant": op, "role": "variant", "median_s": very_first, "samples": 1}

    def row(name: str, role: str, number: int, *, every: int = 1, offset: int = 0) -> dict:
        first, end = KEPT[number], KEPT[number + 1]
        parts = [each[first - 1 + offset : end - 1 : every] for each in taken]
        blocks = {"blocks_s": [median(each) for each in parts], "samples": sum(map(len, parts))}
        base = None if role == "control" else f"call {KEPT[-2]} and on"
        here = {"variant": name, "role": role, "control": base, "call": first}
        return told | here | blocks | {"launch_inclusive": False}

    last = len(KEPT) - 2
    steady = f"call {KEPT[last]} and on"
    yield row(steady, "control", last, every=2)
    for number, (first, _) in enumerate(pairwise(KEPT[:-1])):
        yield row(f"call {first}", "variant", number)
    yield row(f"{steady} (again)", "again", last, every=2, offset=1)
