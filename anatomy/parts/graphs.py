"""A call and its CUDA graph side by side: capture, comparison, memory, and what it cost."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from anatomy.comparison import compare
from anatomy.measure import census, stopwatch_for
from anatomy.parts import memory
from anatomy.table import intervals

Outputs = Tensor | tuple[Tensor, ...]
Call = Callable[[], Outputs]

WARM_UPS = 3  # calls before a capture: what is loaded and tuned at first is not captured
BUDGET_S, SETTLE_S = 1.5, 0.5  # seconds of one comparison, and of settling before it
EAGER, GRAPH, COPIED = "eager", "graph", "graph, input copied"
WHY_NOT = "CUDA graphs need an NVIDIA GPU"


@dataclass(frozen=True)
class Captured:
    """A captured call. `replay` runs it and returns its outputs, the same tensors each time."""

    replay: Call
    seconds: float  # what capturing, instantiating and the first replay took, warm-up calls apart
    pool_bytes: int  # what the allocator took from the driver for it, held while the graph lives


@functools.cache
def _side_stream(where: torch.device) -> torch.cuda.Stream:
    """The stream of all captures. Libraries keep a workspace for each stream: one is enough."""
    return torch.cuda.Stream(where)


def warm_up(call: Call, where: torch.device) -> torch.cuda.Stream | None:
    """Call it on the stream of the captures, so that all that happens once has happened."""
    if where.type != "cuda":
        return None
    side = _side_stream(where)
    side.wait_stream(torch.cuda.current_stream(where))
    with torch.cuda.stream(side):
        for _ in range(WARM_UPS):
            call()
    torch.cuda.current_stream(where).wait_stream(side)
    torch.cuda.synchronize(where)
    return side


def capture(call: Call, where: torch.device, pool: object = None) -> Captured:
    """Capture a call, which must not wait for the GPU; `pool` is another graph's, to share it."""
    side = warm_up(call, where)
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved(where)
    # --8<-- [start:capture]
    graph, outputs = torch.cuda.CUDAGraph(), []

    def record() -> None:
        with torch.cuda.graph(graph, pool=pool, stream=side):
            outputs.append(call())

    def replay() -> Outputs:
        graph.replay()
        return outputs[0]

    # --8<-- [end:capture]
    seconds = stopwatch_for(where).wall([record, replay])
    torch.cuda.empty_cache()
    return Captured(replay, seconds, torch.cuda.memory_reserved(where) - before)


def compared(
    over: Callable[[Tensor], Call],
    x: Tensor,
    where: torch.device,
    told: Mapping[str, object],
    quantities: Sequence[str],
    **given: object,
) -> pd.DataFrame:
    """Eager calls of `over(x)` against a graph of them, with what the graph costs."""
    eager = over(x)
    eager()
    warm_up(eager, where)  # a library's workspace for that stream is then in every figure below
    peaks = {EAGER: memory.peak(eager, where)}  # before there is a graph: its pool would count
    # Of the eager call alone, and before there is a graph: replays launch the same kernels.
    seen = census.take({EAGER: eager}, stopwatch_for(where)) or {}
    kernel_s = _mean_kernel(seen.get(EAGER))
    static = x.clone()  # what the graph reads, for as long as it lives
    captured = capture(over(static), where)

    def copied() -> Outputs:
        static.copy_(x)
        return captured.replay()

    calls = {EAGER: eager, GRAPH: captured.replay, COPIED: copied}
    for name in (GRAPH, COPIED):
        peaks[name] = memory.peak(calls[name], where)
    tables = []
    for quantity in quantities:
        table = compare(
            calls,
            quantity=quantity,
            op=told["op"],
            device=where,
            budget_s=BUDGET_S,
            settle_cap_s=SETTLE_S,
            profile=seen,
            **given,
        ).table
        tables.append(_with_costs(table, captured).assign(kernel_s=kernel_s))
    table = pd.concat(tables, ignore_index=True)
    for name, found in peaks.items():
        there = table.variant.str.removesuffix(" (again)") == name
        for column, value in memory.columns(found).items():
            table.loc[there, column] = value
    first = {"op": f"first call {told['op']}", "variant": GRAPH, "role": "variant"}
    first |= {"quantity": "step_wall", "median_s": captured.seconds, "samples": 1}
    first |= {"blocks_s": [captured.seconds], "kernel_s": kernel_s, "device": where.type}
    first |= {"method": "host clock around the capture, the first replay and a synchronize"}
    rows = [table, pd.DataFrame([first])]
    labels = {name: value for name, value in told.items() if name != "op"}
    return pd.concat(rows, ignore_index=True).assign(**labels)


def _mean_kernel(seen: census.Census | None) -> float | None:
    """Seconds of a kernel of one call, on average; None where nobody listed them."""
    return seen.busy_s / len(seen.kernels) if seen and seen.kernels else None


def _with_costs(table: pd.DataFrame, captured: Captured) -> pd.DataFrame:
    """Add what the graph holds and cost, and the replays after which that has paid."""
    eager = table[table.role == "control"].iloc[0].blocks_s
    costs = []
    for row in table.itertuples():
        if row.variant not in (GRAPH, COPIED):
            costs.append((None,) * 5)
            continue
        found = intervals.break_even(captured.seconds, eager, row.blocks_s)
        # Seconds on the wall were paid, and only seconds on the wall pay them back.
        pays = row.verdict == "faster" and row.quantity == "step_wall"
        known = (found.median, found.low, found.high) if pays else (None,) * 3
        uses = (None if x is None or x == float("inf") else x for x in known)
        costs.append((captured.pool_bytes, captured.seconds, *uses))
    names = ["pool_bytes", "capture_s", "replays", "replays_low", "replays_high"]
    table[names] = pd.DataFrame(costs, index=table.index, columns=names, dtype=float)
    return table


def why_not(where: torch.device) -> str:
    """Why there are no graphs on this device."""
    return f"{WHY_NOT}; this is {where.type}"


def held_before(where: torch.device) -> int:
    """Bytes that the allocator holds before a cell, the stopwatch's buffers among them."""
    stopwatch_for(where)
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved(where)
