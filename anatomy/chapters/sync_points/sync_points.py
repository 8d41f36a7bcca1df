"""What a line that waits for the GPU costs an iteration, and of what that consists."""

import math
import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Literal

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.sync_points import lines, requirements, trace
from anatomy.chapters.sync_points import training_loop as sync_points_loop
from anatomy.chapters.sync_points.judged import NO_WAIT as ASYNC
from anatomy.chapters.sync_points.judged import predicted
from anatomy.chapters.sync_points.requirements import bench_sides
from anatomy.chapters.sync_points.synchronizations import found_in, with_shares, with_wait
from anatomy.comparison import compare
from anatomy.diagnosis.traces import MOST_STEPS
from anatomy.numerics import formats
from anatomy.parts import grid, memory
from anatomy.parts.grid import joined, with_counts
from anatomy.record.bounds import Between, Count, Length, Scale
from anatomy.record.declare import experiment
from anatomy.table import formulas

LARGEST_ON_CPU = 512  # nothing is queued there, so that larger ones only take longer
BUDGET_S, SETTLE_CAP_S = 2.5, 0.3  # seconds of one comparison, and of settling before it
# All elements of a factor have one value: random ones held the card at its power limit, where the
# clock moved by more than a wait takes. No whole numbers, which `print` would format otherwise.
VALUES = (0.3, 0.07)

# A product longer than this is repeated a quarter as often as was asked: it varies less, and a
# table of fifty iterations of 25 ms would take longer than all others together.
LONG_S, QUARTER = 5e-3, 4
ENOUGH_S = 16e-3  # of a wait behind a shorter product, a share of the samples is enough
# A sample ends with a synchronize. If it held one long product alone, the loop without a wait would
# wait as often as the others; of so many iterations it waits once.
LONG_ROUNDS = 3
LONG_TURNS = 16  # turns of all loops: the time of their comparison, first calls and blocks together
TIMES = ("median_s", "low_s", "high_s", "p5_s", "p95_s", "p99_s", "enqueue_s")

BEHIND = {lines.SYNC: "queue, synchronize", lines.ITEM: "queue, item"}


@experiment(
    "sync_points.bench",
    page="benchmarks/c02_sync_points.md",
    command="c01 sync-points",
    timeout_s=400,
)
def bench(
    device: str = "cuda:0",
    dtype: Literal["fp16", "bf16", "tf32", "fp32"] = "fp16",
    iters: Count = 50,
    largest: Length = 21504,
    full: bool = False,
) -> pd.DataFrame:
    """Time a line that waits: on an idle GPU, and behind matrix products of many sizes.

    Args:
        iters: Least number of timed iterations of each; of products over 5 ms a quarter of it.
        largest: Side of the largest product; less for a GPU with less memory. A CPU takes 512.

    Returns:
        Rows of op `idle`, as host_enqueue: the host's time for a line when the GPU has nothing to
        do, and for its parts, against queueing one small kernel. For each `side` rows of three ops:
        `product`, as gpu_warm, alone; `behind SIDE`, as host_enqueue: to queue a product (control),
        and to queue it and wait; `loop SIDE`, as step_wall: a product and nothing (control), or one
        line.
    """
    where, kind = formats.torch_device(device), formats.storage(dtype)
    most = largest if where.type == "cuda" else min(largest, LARGEST_ON_CPU)
    required = list(requirements.bench(memory.capacity(where), dtype, most, full))
    with formats.products_in(dtype), open(os.devnull, "w", encoding="utf-8") as sink:
        nothing = idle(where, kind, sink, iters)
        alone = dict(zip(nothing.variant, nothing.median_s, strict=True))

        def measure(cell: grid.Cell) -> pd.DataFrame:
            return pd.concat(behind_product(cell["side"], where, kind, sink, iters, alone))

        behind = grid.measure_cells(
            ({"op": f"loop {side}", "side": side} for side in bench_sides(most, full)),
            measure,
            variants=(ASYNC, *lines.NAMES),
            quantity="step_wall",
            where=where,
            required=required,
        )
        direct = pd.DataFrame([lines.direct(where, kind)])
    promised = ("side", "kernel_s", "wait_s", "wait_share", "gap_s", "bound_by", "note")
    return with_counts(joined([nothing, behind, direct], promised), "side")


def idle(where: torch.device, kind: torch.dtype, sink, iters: int) -> pd.DataFrame:
    """Each line with nothing to wait for, and the parts that they are made of."""
    few = torch.randn(lines.FEW, device=where).to(kind)
    y, gpu = torch.empty_like(few), where.type == "cuda"
    pinned = torch.empty(lines.FEW, dtype=kind, pin_memory=gpu)
    on_host = few.cpu()
    number = float(on_host[0])

    def queue() -> None:
        torch.add(few, 0, out=y)

    def copy_and_wait() -> None:
        pinned.copy_(few, non_blocking=True)
        lines.synchronize(where)

    say, one = partial(print, file=sink), few[0]

    def print_number() -> None:
        say(one.item())

    parts = {
        "queue one kernel": queue,
        "copy 16 bytes, queued": lambda: pinned.copy_(few, non_blocking=True),
        "copy 16 bytes, waited for": copy_and_wait,
        "print(number)": partial(say, number),
        "print(t), t on the host": partial(say, on_host[0]),
        "print(t.item())": print_number,
        lines.NUMPY: lambda: lines.as_numpy(few),
    }
    calls = {name: lines.then(few, act) for name, act in (parts | lines.about(few, sink)).items()}
    table = compare(
        calls,
        reference=few.double,
        quantity="host_enqueue",
        op="idle",
        device=where,
        iters=iters,
        budget_s=2 * BUDGET_S,
        settle_cap_s=SETTLE_CAP_S,
        profile=False,
    ).table
    return table.assign(operation=table.variant, pending=False)


def behind_product(
    side: int, where: torch.device, kind: torch.dtype, sink, iters: int, alone: Mapping[str, float]
) -> Iterator[pd.DataFrame]:
    """Tables of one size: the product alone, the host's wait for it, and a loop of both."""
    a, b = (torch.full((side, side), value, device=where).to(kind) for value in VALUES)
    y = torch.full_like(a, float("nan"))
    few, row = y[0, : lines.FEW], y[0]

    def product() -> None:
        torch.mm(a, b, out=y)

    def exact() -> Tensor:
        return a[0].double() @ b.double()  # one row tells a product from none, and takes no time

    def measured(calls: dict[str, lines.Call], quantity: str, op: str, **given) -> pd.DataFrame:
        table = compare(
            calls,
            reference=exact,
            quantity=quantity,
            op=op,
            device=where,
            budget_s=given.pop("budget_s", BUDGET_S),
            settle_cap_s=SETTLE_CAP_S,
            profile=False,
            **given,
        ).table
        return table.assign(side=side)

    queue = lines.then(row, product)
    table = measured(
        {"product": queue},
        "gpu_warm",
        f"product {side}",
        iters=12,
        flops=formulas.matmul_flops(side, side, side),
        limit=f"matmul {formats.number_format(kind)}",
    )
    kernel = table.iloc[0]
    yield table.assign(kernel_s=kernel.median_s)

    turns = least_turns(iters, kernel.median_s)
    samples = max(1, math.ceil(turns * min(1.0, kernel.median_s / ENOUGH_S)))
    acts = lines.about(few, sink)
    waits = {BEHIND[name]: lines.then(row, product, acts[name]) for name in BEHIND}
    table = measured({"queue": queue} | waits, "host_enqueue", f"behind {side}", iters=samples)
    back = {told: name for name, told in BEHIND.items()}
    queue_s = table.median_s.iloc[0]
    yield with_wait(table).assign(
        kernel_s=kernel.median_s,
        operation=[back.get(name, "queue") for name in table.variant],
        pending=[name in back for name in table.variant],
    )

    calls = {ASYNC: queue} | {name: lines.then(row, product, act) for name, act in acts.items()}
    each = rounds_of(kernel.median_s)
    table = measured(
        {name: repeated(call, each) for name, call in calls.items()},
        "step_wall",
        f"loop {side}",
        iters=math.ceil(turns / each),
        budget_s=BUDGET_S + seconds_of(each, len(calls) * kernel.median_s),
    )
    table = per_iteration(table, each)
    said = [predicted(name, kernel.median_s, queue_s, alone) for name in table.variant]
    yield with_shares(with_wait(table), kernel).assign(
        operation=table.variant,
        pending=True,
        bound_by=sync_points_loop.bound_by(table, where),
        predicted_s=said,
        residual_share=table.median_s / pd.Series(said, dtype="float64") - 1,
    )


def least_turns(iters: int, kernel_s: float) -> int:
    """Iterations of a loop at the least: `iters`, or of a long kernel a quarter of them."""
    return math.ceil(iters / QUARTER) if kernel_s > LONG_S else iters


def rounds_of(kernel_s: float) -> int:
    """Iterations of one call: one, or of a long kernel several."""
    return LONG_ROUNDS if kernel_s > LONG_S else 1


def seconds_of(rounds: int, turn_s: float) -> float:
    """What comparing loops takes whose one iteration each takes `turn_s`; of short kernels 0."""
    return LONG_TURNS * rounds * turn_s if rounds > 1 else 0.0


def repeated(call: lines.Call, rounds: int) -> lines.Call:
    """So many iterations as one call, which returns the last one's result."""
    if rounds == 1:
        return call

    def several() -> Tensor:
        for _ in range(rounds):
            result = call()
        return result

    return several


def per_iteration(table: pd.DataFrame, rounds: int) -> pd.DataFrame:
    """Times of calls of so many iterations as times of one iteration."""
    if rounds == 1:
        return table
    table = table.assign(
        blocks_s=[[took / rounds for took in blocks] for blocks in table.blocks_s],
        method=[f"{method}; a call is {rounds} iterations" for method in table.method],
    )
    times = {name: table[name].astype("float64") / rounds for name in TIMES}
    return table.assign(**times)


@experiment(
    "sync_points.training_loop",
    page="benchmarks/c02_sync_points.md",
    command="sync-points-loop",
    timeout_s=400,
)
def training_loop(
    device: str = "cuda:0",
    steps: Count = 300,
    every: Count = 25,
    scale: Scale = 1.0,
    full: bool = False,
) -> pd.DataFrame:
    """Train models of two sizes, reading the loss in no step, in each, and now and then.

    Args:
        scale: Share of the models' width and tokens; less for a small machine.
        full: Train models of more sizes; takes minutes.
        steps: Training steps of each way at the least, timed in pieces.
        every: Steps of one piece, and of the loop that reads its loss now and then.

    Returns:
        Rows of an op for each `model`, a transformer, as step_wall: pieces of `steps_each` steps
        with AdamW at a learning rate of 0. The control reads no loss, `item each step` each one;
        `mean each 25 steps` adds them up on the GPU and reads their mean. Rows of op `one step`, as
        host_enqueue: the host's time to queue a step.
    """
    where = formats.torch_device(device)
    table = sync_points_loop.loops(where, steps, every, scale, full)
    counted = ("steps_each", "steps_timed", "width", "tokens", "layers")
    return with_counts(table, *counted)


@experiment(
    "sync_points.timeline",
    page="benchmarks/sync_points_deep_dive.md",
    command="sync-points-timeline",
    timeout_s=200,
)
def timeline(
    device: str = "cuda:0",
    side: Length = 2048,
    kernels_each: Count = 4,
    steps: Annotated[int, Between(1, MOST_STEPS)] = 4,
) -> pd.DataFrame:
    """Trace a few steps of matrix products without a wait, and with `.item()` after each step.

    Args:
        device: Where to run, such as cuda:0; a CPU has nothing to wait for.
        side: Rows and columns of the products, which are fp16.
        kernels_each: Products of one step.
        steps: Steps that are traced, 5 at the most.

    Returns:
        One row per event of torch.profiler, in two runs. It slows the host, so gaps are wider than
        without it.
    """
    where = formats.torch_device(device)
    (required,) = requirements.timeline(memory.capacity(where), side)
    table, why = None, required.why_not(memory.capacity(where)) if where.type == "cuda" else ""
    if not why:
        table, why = grid.attempt(partial(trace.traced, where, side, kernels_each, steps), where)
    return trace.refused(why) if table is None else table


@experiment(
    "sync_points.found",
    page="benchmarks/sync_points_summary.md",
    command="sync-points-found",
    timeout_s=120,
    files=("snippets/waits_in_a_loop.py",),
)
def found(device: str = "cuda:0") -> pd.DataFrame:
    """Run a training loop under PyTorch's debug mode, and say which of its lines it warns of.

    One row per line of snippets/waits_in_a_loop.py that was warned of, or one that says none was.

    Args:
        device: Where to run, such as cuda:0; a CPU has nothing to wait for.
    """
    return found_in(formats.torch_device(device))
