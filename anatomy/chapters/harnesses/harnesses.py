"""The package's stopwatch against the public ones: the same workloads, quantities and wall budget,
by the rules that the page has under "Which rules were fixed before the run?", written before the
first run (docs/how-good-is-the-stopwatch.md)."""

from collections.abc import Callable
from itertools import product
from statistics import median

import pandas as pd
import torch

from anatomy.chapters.harnesses import requirements
from anatomy.chapters.harnesses.stopwatches import adapters, cupti, protocol, workloads
from anatomy.chapters.harnesses.stopwatches.protocol import FAILURES, Process, first_line
from anatomy.measure import stopwatch_for
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import formats
from anatomy.parts import memory
from anatomy.record.bounds import Count, Number, Scale, Seconds
from anatomy.record.declare import experiment

ROUNDS = 3
WAYS = {"gpu_cold": cupti.cold, "gpu_warm": cupti.warm, "step_wall": cupti.wall}


@experiment(
    "harnesses.estimates", page="how-good-is-the-stopwatch.md", timeout_s=480, on_request=True
)
def estimates(
    process: Number = 0,
    device: str = "cuda:0",
    replicates: Count = 3,
    budget_s: Seconds = 0.3,
    scale: Scale = 1.0,
) -> pd.DataFrame:
    """Let every harness estimate every workload in one process; pairs and effects come behind.

    Args:
        process: Number of the process, from 0; it turns the orders, and is recorded by itself.
        replicates: Estimates of each workload by each harness.
        budget_s: Wall time of one estimate in seconds, warm-up included.

    Returns:
        One row per figure: `op` is the workload, `variant` the harness, `median_s` its figure.
    """
    where = formats.torch_device(device)
    builders, refused = _possible(where, scale)
    if not builders:
        return refused
    watch = stopwatch_for(where)
    taking_part = adapters.harnesses(watch, budget_s)
    load, effects = protocol.settle_load(where, scale), workloads.effects(where, scale)
    one = Process(watch, process, replicates, budget_s, load, taking_part, builders, effects)
    table = pd.concat([refused, pd.DataFrame(one.run())], ignore_index=True)
    table.attrs["warnings"] = [f"{count} x {told}" for told, count in one.warned.most_common(10)]
    table.attrs["sparse"] = True
    table.attrs["method"] = {"budget_s": budget_s, "settle": "0.03 s of matrix products"}
    return table


@experiment("harnesses.reference", page="how-good-is-the-stopwatch.md", on_request=True)
def reference(process: Number = 0, device: str = "cuda:0", scale: Scale = 1.0) -> pd.DataFrame:
    """Take every workload's time from CUPTI's record of its kernels, in one process.

    Args:
        process: Number of the process, from 0; each is recorded by itself.
        device: Where to run, such as cuda:0; a cpu has wall times alone.
        scale: Factor on every size, as for the estimates.

    Returns:
        One row per workload and quantity: the median over the rounds.
    """
    where = formats.torch_device(device)
    builders, refused = _possible(where, scale)
    if not builders:
        return refused
    watch = stopwatch_for(where)
    load, calls = protocol.settle_load(where, scale), {}
    for op, build in builders.items():
        torch.manual_seed(process)
        calls[op] = build()
        watch.wall([calls[op]] * 10)
    rounds = []
    for _, op, quantity in product(range(ROUNDS), calls, WAYS):
        if where.type == "cuda" or quantity == "step_wall":
            protocol.settle(watch, load)
            rounds.append({"op": op, "quantity": quantity} | _round(calls[op], watch, quantity))
    middles = ("events_s", "events_profiled_s", "sm_clock_mhz")
    names = ["op", "quantity", "variant", "seconds", "samples", *middles, "note"]
    found = pd.DataFrame(rounds, columns=names)
    cells = found.astype({"sm_clock_mhz": float}).groupby(["op", "quantity"], sort=False)
    table = cells.agg(
        variant=("variant", "first"),
        median_s=("seconds", "median"),
        low_s=("seconds", "min"),
        high_s=("seconds", "max"),
        rounds_s=("seconds", lambda each: list(each.dropna())),
        samples=("samples", "sum"),
        note=("note", "last"),
        **{name: (name, "median") for name in middles},
    )
    table = pd.concat([refused, table.reset_index()], ignore_index=True)
    table.attrs["sparse"] = True
    table.attrs["method"] = {"rounds": ROUNDS, "warm_up_s": cupti.WARM_UP_S}
    return table


def _round(call: Callable, watch: Stopwatch, quantity: str) -> dict:
    """The reference's figure of a call in one round, with the witness and the clock behind it."""
    on_host = quantity == "step_wall"
    row = {"variant": "loop" if on_host else "CUPTI"}
    try:
        values = WAYS[quantity](call, watch)
        row |= {"seconds": median(values), "samples": len(values)}
        if not on_host:
            clock = (watch.conditions() or {}).get("sm_clock_mhz")
            row |= cupti.witnessed(call, watch, quantity) | {"sm_clock_mhz": clock}
    except FAILURES as error:
        row["note"] = first_line(error)
    return row


def _possible(where: torch.device, scale: float) -> tuple[dict[str, Callable], pd.DataFrame]:
    """What builds the workloads that fit the device, and rows that say why the rest does not."""
    on = memory.capacity(where)
    lacking = {each.op: each.why_not(on) for each in requirements.workloads(on, scale)}
    builders = workloads.workloads(where, scale)
    why = lacking["the others"]
    named = dict.fromkeys(builders, why) if why else {op: why for op, why in lacking.items() if why}
    rows = [{"part": "estimate", "op": op, "note": why} for op, why in named.items()]
    return {op: build for op, build in builders.items() if op not in named}, pd.DataFrame(rows)
