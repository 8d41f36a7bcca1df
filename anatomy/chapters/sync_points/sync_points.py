"""Sync points: what a line that waits for the GPU costs an iteration, and of what that consists.

One iteration is a matrix product and one line behind it. What the line takes with nothing to wait
for is its own price; what it takes behind a product holds the wait as well.
"""

import math
import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Literal

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.sync_points import lines, rounds, trace
from anatomy.chapters.sync_points import training_loop as sync_points_loop
from anatomy.chapters.sync_points.judged import NO_WAIT as ASYNC
from anatomy.chapters.sync_points.judged import predicted
from anatomy.chapters.sync_points.synchronizations import found_in, with_shares, with_wait
from anatomy.chapters.sync_points.trace import MOST_STEPS
from anatomy.comparison import compare
from anatomy.machine import host
from anatomy.measure.patient import patient_stopwatch
from anatomy.numerics import formats
from anatomy.parts import demands
from anatomy.parts.grid import joined, with_counts
from anatomy.record.bounds import Between, Count, Length, Scale
from anatomy.record.declare import experiment
from anatomy.table import formulas

# Sides of the products: the second and fifth are the seed's. On an H200 in fp16, the third should
# last the 18 us that the seed's small product took, and the last the 25 ms of its big one.
SIDES = (128, 512, 1728, 4096, 8192, 21504)
FULL_SIDES = (
    *(128, 256, 512, 1024, 1408, 1728, 1792, 2048, 3072, 4096),
    *(6144, 8192, 12288, 16384, 20480, 21504),
)
LARGEST_ON_CPU = 512  # nothing is queued there, so that larger ones only take longer
BUDGET_S, SETTLE_CAP_S = 2.5, 0.3  # seconds of one comparison, and of settling before it
# All elements of a factor have one value: random ones held the card at its power limit, where the
# clock moved by more than a wait takes. No whole numbers, which `print` would format otherwise.
VALUES = (0.3, 0.07)

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
        dtype: Number format of the products' factors; fp32 forbids TF32, tf32 allows it.
        iters: Least number of timed iterations of each; of products over 5 ms a quarter of it.
        largest: Side of the largest product; less for a GPU with less memory. A CPU takes 512.
        full: Measure products of more sizes; takes minutes.

    Returns:
        Rows of op `idle`, as host_enqueue: the host's time for one line when the GPU has nothing to
        do, and for its parts (a wait for nothing, a copy of 16 bytes, Python's formatting of a
        number), against queueing one small kernel. For each `side` rows of three ops. `product`, as
        gpu_warm: the product alone on the GPU. `behind SIDE`, as host_enqueue: the host's time to
        queue one product (control), and to queue it and wait for it. `loop SIDE`, as step_wall: an
        iteration of a product and nothing (control), or a product and one line. `t.numpy()` of a
        tensor on a GPU raises an error: its row has the message in `note`.
    """
    demands.positive(iters=iters, largest=largest)
    where, kind = formats.torch_device(device), formats.storage(dtype)
    most = largest if where.type == "cuda" else min(largest, LARGEST_ON_CPU)
    sides = [side for side in (FULL_SIDES if full else SIDES) if side <= most] or [most]
    # Both factors and the product, and the larger factor in float64 for the reference.
    need = (3 * kind.itemsize + 16) * sides[-1] ** 2
    host.require_bytes(where, need, f"a product of side {sides[-1]}")
    tables = []
    with formats.products_in(dtype), open(os.devnull, "w", encoding="utf-8") as sink:
        tables.append(idle(where, kind, sink, iters))
        alone = dict(zip(tables[0].variant, tables[0].median_s, strict=True))
        for side in sides:
            tables += behind_product(side, where, kind, sink, iters, alone)
        tables.append(pd.DataFrame([lines.direct(where, kind)]))
    promised = ("side", "kernel_s", "wait_s", "wait_share", "gap_s", "bound_by", "note")
    return with_counts(joined(tables, promised), "side")


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
            watch=patient_stopwatch(where),
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

    samples = rounds.least_samples(iters, kernel.median_s)
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
    each = rounds.of(kernel.median_s)
    table = measured(
        {name: rounds.repeated(call, each) for name, call in calls.items()},
        "step_wall",
        f"loop {side}",
        iters=math.ceil(samples / each),
        budget_s=BUDGET_S + rounds.seconds(each, len(calls) * kernel.median_s),
    )
    table = rounds.per_iteration(table, each)
    said = [predicted(name, kernel.median_s, queue_s, alone) for name in table.variant]
    yield with_shares(with_wait(table), kernel).assign(
        operation=table.variant,
        pending=True,
        bound_by=sync_points_loop.bound_by(table, where),
        predicted_s=said,
        residual_share=table.median_s / pd.Series(said, dtype="float64") - 1,
    )


@experiment(
    "sync_points.training_loop",
    page="benchmarks/c02_sync_points.md",
    command="sync-points-loop",
    timeout_s=400,
)
def training_loop(
    device: str = "cuda:0",
    steps: Count = 1000,
    every: Count = 25,
    scale: Scale = 1.0,
    full: bool = False,
) -> pd.DataFrame:
    """Train models of three sizes, reading the loss in no step, in each, and now and then.

    Args:
        steps: Training steps of each way at the least, timed in pieces.
        every: Steps of one piece, and of the loop that reads its loss now and then.
        scale: Share of the models' width and tokens; less for a small machine.
        full: Train models of more sizes; takes minutes.

    Returns:
        Rows of an op for each `model`, a transformer, as step_wall: pieces of `steps_each` steps,
        forward, backward and AdamW. `no readback` is the control; `item each step` reads the loss
        in every step; `mean each 25 steps` adds the losses up on the GPU and reads their mean once
        a piece. Rows of op `one step`, as host_enqueue: the host's time to queue a step. The
        learning rate is 0, so that every piece computes the same.
    """
    demands.positive(steps=steps, every=every, scale=scale)
    where = formats.torch_device(device)
    tables = list(sync_points_loop.loops(where, steps, every, scale, full))
    counted = ("steps_each", "steps_timed", "width", "tokens", "layers")
    return with_counts(joined(tables, ("wait_s", "bound_by")), *counted)


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
        device: Where to run, such as cuda:0.
        side: Rows and columns of the products, which are fp16.
        kernels_each: Products of one step.
        steps: Steps that are traced, 5 at the most.

    Returns:
        One row per event of torch.profiler, `variant` its name, in two runs, without a time of our
        own. A profiler slows the host, so gaps are wider than in a run without it.
    """
    demands.positive(side=side, kernels_each=kernels_each)
    return trace.traced(formats.torch_device(device), side, kernels_each, steps)


@experiment(
    "sync_points.found",
    page="benchmarks/sync_points_summary.md",
    command="sync-points-found",
    timeout_s=120,
    files=("snippets/waits_in_a_loop.py",),
)
def found(device: str = "cuda:0") -> pd.DataFrame:
    """Run a training loop under PyTorch's debug mode, and say which of its lines it warns of.

    Args:
        device: Where to run, such as cuda:0.

    Returns:
        One row per line of snippets/waits_in_a_loop.py that was warned of, without times. A loop
        without a warning has one row that says so.

    Raises:
        AnatomyError: The script is not there: this is no checkout.
    """
    return found_in(formats.torch_device(device))
