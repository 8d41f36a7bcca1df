"""The same call timed in several ways, side by side: with every precaution, and without one."""

from collections.abc import Callable, Mapping
from functools import partial
from math import ceil
from statistics import median

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.timing import requirements
from anatomy.measure import stopwatch_for
from anatomy.measure.blocks import balanced_orders
from anatomy.measure.sampling import Sampler, prepare
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import agreement, formats
from anatomy.parts import grid, memory, own_blocks
from anatomy.record.bounds import Count, Length
from anatomy.record.declare import experiment

CALLS = 100  # of a loop with one wait at its end
BLOCKS, SAMPLES = 12, 5  # of each way: the first look of `compare`, and the samples of one block
WARM_UP_S = 0.2
LOAD_S = 0.04  # of a sample of the GEMMs that are to meet the power cap
CAREFUL = "events behind a sleep"
# Ways that time launches, too, and how each takes a sample.
LAUNCHING = {
    "perf_counter, no wait": "host clock until the call returns",
    "perf_counter, a wait a call": "host clock around one call and a synchronize",
    "perf_counter, one wait": f"host clock around {CALLS} calls and one synchronize",
    "events, one call": "event pair around one call, nothing in the queue before it",
    "events, many calls": f"event pair around {CALLS} calls, nothing in the queue before them",
}
FLUSHED, HOT = "cache flushed", "back to back"
RANDOM, ZEROS = "random", "zeros"
# The ways of each operation, its control first.
NAMED = dict.fromkeys(("GEMM", "addition"), (CAREFUL, *LAUNCHING))
NAMED |= {"copy": (FLUSHED, HOT), "values": (RANDOM, ZEROS)}

Call = Callable[[], Tensor]
Sample = Callable[[], float]  # takes one, in seconds of a call


@experiment("timing.ways", page="curriculum/day_08.md", command="timing-ways", timeout_s=120)
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

    def measure(cell: grid.Cell) -> pd.DataFrame:
        if cell["op"] == "values":
            return _values(2 * side, where, iters)  # large enough to meet the power cap
        watch = stopwatch_for(where)
        quantity, call, exact = _calls(side, where)[cell["op"]]()
        agreement.check({cell["op"]: call}, {cell["op"]: exact})
        begun = watch.now()
        while watch.now() - begun < WARM_UP_S:
            watch.wall([call])
        make = _caches if quantity == "gpu_cold" else _clocks
        return _in_turn(make(watch, call), op=cell["op"], quantity=quantity, device=where.type)

    return grid.measure_cells(
        [{"op": op} for op in NAMED],
        measure,
        variants=lambda cell: NAMED[cell["op"]],
        quantity=lambda cell: "gpu_cold" if cell["op"] == "copy" else "gpu_warm",
        where=where,
        required=requirements.ways(memory.capacity(where), side),
        promised=("noise_floor",),
    )


def matrices(side: int, where: torch.device) -> tuple[Tensor, Tensor]:
    """Two square matrices of random numbers in bf16."""
    a, b = torch.randn(2, side, side, device=where).to(torch.bfloat16)
    return a, b


def _calls(side: int, where: torch.device) -> Mapping[str, Callable[[], tuple[str, Call, Call]]]:
    """What makes each call: the time that is meant, the call, and its exact result."""

    def gemm():
        a, b = matrices(side, where)
        return "gpu_warm", lambda: a @ b, lambda: a.double() @ b.double()

    def addition():
        x, y = torch.randn(2, 1, device=where)
        return "gpu_warm", lambda: torch.add(x, 1.0, out=y), lambda: x.double() + 1

    def copy():
        x = torch.randn(requirements.COPIED_BYTES // 4, device=where)
        y = torch.empty_like(x)
        return "gpu_cold", lambda: y.copy_(x), lambda: x.double()

    return {"GEMM": gemm, "addition": addition, "copy": copy}


def _clocks(watch: Stopwatch, call: Call) -> dict[str, tuple[Sample, str]]:
    """Ways to time a call, the careful one first, each with its words."""
    careful, many = prepare(watch, [call], "gpu_warm"), [call] * CALLS
    careless = (
        partial(watch.enqueue, call),
        partial(watch.wall, [call]),
        lambda: watch.wall(many) / CALLS,
        lambda: watch.spans([call], cold=False, hold_s=0.0)[0][0],
        lambda: watch.batch(many, hold_s=0.0)[0] / CALLS,
    )
    ways = {n: (take, said) for (n, said), take in zip(LAUNCHING.items(), careless, strict=True)}
    return {CAREFUL: (lambda: careful.take(1)[0], careful.method)} | ways


def _caches(watch: Stopwatch, call: Call) -> dict[str, tuple[Sample, str]]:
    """With the flush before each call, and with the call before it in place of a flush."""
    cold, warm = (prepare(watch, [call], each) for each in ("gpu_cold", "gpu_warm"))
    return {
        FLUSHED: (lambda: cold.take(1)[0], cold.method),
        HOT: (lambda: warm.take(1)[0], warm.method),
    }


def _in_turn(ways: Mapping[str, tuple[Sample, str]], **given: object) -> pd.DataFrame:
    """The rows of all ways, taken in blocks and the first of them twice, as `compare` does."""
    control = next(iter(ways))
    named = {**ways, own_blocks.again(control): ways[control]}
    orders, taken = balanced_orders(len(named), seed=0), {name: [] for name in named}
    for block in range(BLOCKS):
        for name in map(list(named).__getitem__, orders[block % len(orders)]):
            taken[name].append(median(named[name][0]() for _ in range(SAMPLES)))
    kept = {"samples": BLOCKS * SAMPLES}
    columns = {
        name: kept | {"method": said, "launch_inclusive": name in LAUNCHING}
        for name, (_, said) in ways.items()
    }
    return own_blocks.compared(taken, columns, **given)


def _values(side: int, where: torch.device, iters: int) -> pd.DataFrame:
    """A GEMM of random numbers, and of zeros. A card at its power cap takes tens of milliseconds to
    find its clock, and in blocks as short as those of `compare` both would share one. So each runs
    for longer, several calls for a sample; a block's median passes over the first ones."""
    watch = stopwatch_for(where)
    a, b = matrices(side, where)
    nothing = torch.zeros_like(a)
    calls = {RANDOM: lambda: a @ b, ZEROS: lambda: nothing @ nothing}
    agreement.check(calls, {RANDOM: lambda: a.double() @ b.double(), ZEROS: nothing.double})
    ways = {}
    for name, call in calls.items():
        sampler = prepare(watch, [call], "gpu_warm")
        count = min(iters, ceil(LOAD_S / sampler.period_s))
        ways[name] = partial(_middle_of, sampler, count), f"{sampler.method}, the median of {count}"
    return _in_turn(ways, op="values", quantity="gpu_warm", device=where.type)


def _middle_of(sampler: Sampler, count: int) -> float:
    return median(sampler.take(count))
