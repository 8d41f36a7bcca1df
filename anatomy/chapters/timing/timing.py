"""The same call timed in several ways, side by side; and one timed a thousand times: how far two
equals differ, by how they are compared, and how narrow an interval gets."""

from collections.abc import Callable, Mapping
from functools import partial
from math import ceil
from statistics import median

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.timing import requirements
from anatomy.measure import stopwatch_for
from anatomy.measure.comparison import settle
from anatomy.measure.sampling import Quantity, prepare
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import agreement, formats
from anatomy.parts import grid, memory, own_blocks
from anatomy.record.bounds import Count, Length
from anatomy.record.declare import experiment

Call = Callable[[], Tensor]
Sample = Callable[[], float]  # takes one, in seconds of a call

PAGE = "curriculum/day_08.md"
CALLS = 100  # of a loop with one wait at its end
BLOCKS, SAMPLES = 12, 5  # of each way: the first look of `compare`, and the samples of one block
LOAD_S = 0.04  # of a sample of the GEMMs that are to meet the power cap
CAREFUL = "events behind a sleep"
# Ways that time launches, too: how each takes a sample, in words and by the clock.
LAUNCHING: dict[str, tuple[str, Callable[[Stopwatch, Call], float]]] = {
    "perf_counter, no wait": (
        "host clock until the call returns",
        lambda watch, call: watch.enqueue(call),
    ),
    "perf_counter, a wait a call": (
        "host clock around one call and a synchronize",
        lambda watch, call: watch.wall([call]),
    ),
    "perf_counter, one wait": (
        f"host clock around {CALLS} calls and one synchronize",
        lambda watch, call: watch.wall([call] * CALLS) / CALLS,
    ),
    "events, one call": (
        "event pair around one call, nothing in the queue before it",
        lambda watch, call: watch.spans([call], cold=False, hold_s=0.0)[0][0],
    ),
    "events, many calls": (
        f"event pair around {CALLS} calls, nothing in the queue before them",
        lambda watch, call: watch.batch([call] * CALLS, hold_s=0.0)[0] / CALLS,
    ),
}
# The ways of each operation, its control first.
NAMED = dict.fromkeys(("GEMM", "addition"), (CAREFUL, *LAUNCHING))
NAMED |= {"copy": ("cache flushed", "back to back"), "values": ("random", "zeros")}
# What `equals` times, and the rows of each: its samples, and what follows from them on reading.
QUANTITIES: dict[str, Quantity] = {"GEMM": "gpu_warm", "addition": "step_wall"}
FOLLOWING = ("one sample each", "one after the other", "in turn")
COUNTS = dict.fromkeys(("samples", *FOLLOWING)) | {f"{n} blocks": n for n in (6, 12, 24, 48, 96)}


def gemm(side: int, where: torch.device, fill: Callable = torch.randn) -> tuple[Call, Call]:
    """A GEMM of two square matrices in bf16, and its exact result."""
    a, b = fill(2, side, side, device=where).to(torch.bfloat16)
    return lambda: a @ b, lambda: a.double() @ b.double()


def addition(_: int, where: torch.device) -> tuple[Call, Call]:
    """An addition of one element, and its exact result."""
    x, y = torch.randn(2, 1, device=where)
    return lambda: torch.add(x, 1.0, out=y), lambda: x.double() + 1


def copy(_: int, where: torch.device) -> tuple[Call, Call]:
    """A copy that fits the cache, and its exact result."""
    x = torch.randn(requirements.COPIED_BYTES // 4, device=where)
    y = torch.empty_like(x)
    return lambda: y.copy_(x), x.double


MADE = {"GEMM": gemm, "addition": addition, "copy": copy}


@experiment("timing.ways", page=PAGE, command="timing-ways", timeout_s=120)
def ways(device: str = "cuda:0", side: Length = 4096, iters: Count = 24) -> pd.DataFrame:
    """Time a long call and a short one in six ways, a copy with and without a flush, and zeros.

    Args:
        side: Rows and columns of the matrices.
        iters: Calls of a sample of those GEMMs that are to meet the power cap, at the most.

    Returns:
        One row per call and way; `method` says how a sample is taken. The control is the way of
        all other pages.
    """
    where = formats.torch_device(device)

    def quantity(cell: grid.Cell) -> Quantity:
        return "gpu_cold" if cell["op"] == "copy" else "gpu_warm"

    def measure(cell: grid.Cell) -> pd.DataFrame:
        op, watch = cell["op"], stopwatch_for(where)
        if op == "values":  # large enough to meet the power cap
            fills = zip(NAMED[op], (torch.randn, torch.zeros), strict=True)
            made = {name: gemm(2 * side, where, fill) for name, fill in fills}
        else:
            made = {op: MADE[op](side, where)}
        calls = {name: call for name, (call, _) in made.items()}
        agreement.check(calls, {name: exact for name, (_, exact) in made.items()})
        settle(watch, {name: [call] for name, call in calls.items()})
        takes = _takes(op, watch, calls, iters)
        blocks = {name: partial(_middle_of, take) for name, (take, _) in takes.items()}
        taken = own_blocks.in_turn(blocks, BLOCKS, watch)
        columns = {
            name: {"method": said, "launch_inclusive": name in LAUNCHING}
            for name, (_, said) in takes.items()
        }
        given = {"samples": BLOCKS * SAMPLES, "device": where.type}
        return own_blocks.compared(taken, columns, op=op, quantity=quantity(cell), **given)

    return grid.measure_cells(
        [{"op": op} for op in NAMED],
        measure,
        variants=lambda cell: NAMED[cell["op"]],
        quantity=quantity,
        where=where,
        required=requirements.ways(memory.capacity(where), side),
        promised=("noise_floor",),
    )


def _takes(
    op: str, watch: Stopwatch, calls: Mapping[str, Call], iters: int
) -> dict[str, tuple[Sample, str]]:
    """The ways of an operation: what takes a sample, and how in words."""
    if op == "values":
        return {name: _sampled(watch, call, "gpu_warm", iters) for name, call in calls.items()}
    if op == "copy":
        kinds = zip(NAMED[op], ("gpu_cold", "gpu_warm"), strict=True)
        return {name: _sampled(watch, calls[op], kind) for name, kind in kinds}
    takes = {CAREFUL: _sampled(watch, calls[op], "gpu_warm")}
    for name, (said, take) in LAUNCHING.items():
        takes[name] = partial(take, watch, calls[op]), said
    return takes


def _sampled(watch: Stopwatch, call: Call, quantity: Quantity, most: int = 1) -> tuple[Sample, str]:
    """How samples are taken by the way of all other pages, and its words. A card at its power cap
    takes tens of milliseconds to find its clock, and in blocks as short as those of `compare` all
    would share one. So a sample may be the median of several calls, at the `most` so many, which
    passes over the first ones."""
    sampler = prepare(watch, [call], quantity)
    count = min(most, ceil(LOAD_S / sampler.period_s))
    said = f", the median of {count}" if most > 1 else ""
    return lambda: median(sampler.take(count)), sampler.method + said


def _middle_of(take: Sample) -> float:
    return median(take() for _ in range(SAMPLES))


@experiment("timing.equals", page=PAGE, command="timing-equals", timeout_s=120)
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
        call, _ = MADE[op](side, where)
        settle(watch, {op: [call]})
        sampler = prepare(watch, [call], QUANTITIES[op])
        told = {"op": op, "role": "variant", "quantity": QUANTITIES[op], "device": where.type}
        rows = [told | {"variant": name, "blocks": count} for name, count in COUNTS.items()]
        taken = [float(f"{sample:.5g}") for sample in sampler.take(samples)]
        rows[0] |= {"samples_s": taken, "samples": samples, "method": sampler.method}
        return grid.with_counts(pd.DataFrame(rows), "samples", "blocks")

    return grid.measure_cells(
        [{"op": op} for op in QUANTITIES],
        measure,
        variants=list(COUNTS),
        quantity=lambda cell: QUANTITIES[cell["op"]],
        where=where,
        required=requirements.equals(memory.capacity(where), side),
        promised=("blocks", "stray", "pairs", "half_width"),
    )
