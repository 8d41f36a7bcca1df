"""One callable timed a thousand times: how far two equals differ, by how they are compared, and how
narrow an interval gets."""

import pandas as pd
import torch

from anatomy.chapters.timing import requirements
from anatomy.chapters.timing.ways import matrices
from anatomy.measure import stopwatch_for
from anatomy.measure.comparison import settle
from anatomy.measure.sampling import prepare
from anatomy.numerics import formats
from anatomy.parts import grid, memory
from anatomy.record.bounds import Count, Length
from anatomy.record.declare import experiment

SINGLE, AFTER, IN_TURN = "one sample each", "one after the other", "in turn"
BLOCKS = (6, 12, 24, 48, 96)
COMPARED = (SINGLE, AFTER, IN_TURN, *(f"{count} blocks" for count in BLOCKS))
QUANTITIES = {"GEMM": "gpu_warm", "addition": "step_wall"}
JUDGED = ("stray", "pairs", "half_width")


@experiment("timing.equals", page="curriculum/day_08.md", command="timing-equals", timeout_s=120)
def equals(device: str = "cuda:0", side: Length = 8192, samples: Count = 960) -> pd.DataFrame:
    """Time one GEMM, and one small addition on the wall, again and again, and keep all samples.

    Args:
        side: Rows and columns of the matrices.
        samples: Of each, in order.

    Returns:
        A row of the samples of each, and rows for what follows from them on reading: how far apart
        two halves of one callable come out, and how wide an interval of so many is.
    """
    where = formats.torch_device(device)

    def measure(cell: grid.Cell) -> pd.DataFrame:
        op, watch = cell["op"], stopwatch_for(where)
        if op == "GEMM":
            a, b = matrices(side, where)
            call = lambda: a @ b  # noqa: E731
        else:
            x, y = torch.randn(2, 1, device=where)
            call = lambda: torch.add(x, 1.0, out=y)  # noqa: E731
        settle(watch, {op: [call]})
        sampler = prepare(watch, [call], QUANTITIES[op])
        taken = [float(f"{sample:.5g}") for sample in sampler.take(samples)]
        told = {"op": op, "role": "variant", "quantity": QUANTITIES[op], "device": where.type}
        rows = [{"variant": "samples", "samples_s": taken, "samples": samples}]
        rows[0]["method"] = sampler.method
        rows += [{"variant": way} for way in (SINGLE, AFTER, IN_TURN)]
        rows += [{"variant": f"{count} blocks", "blocks": count} for count in BLOCKS]
        return grid.with_counts(pd.DataFrame([told | row for row in rows]), "samples", "blocks")

    return grid.measure_cells(
        [{"op": op} for op in QUANTITIES],
        measure,
        variants=["samples", *COMPARED],
        quantity=lambda cell: QUANTITIES[cell["op"]],
        where=where,
        required=requirements.equals(memory.capacity(where), side),
        promised=("blocks", *JUDGED),
    )
