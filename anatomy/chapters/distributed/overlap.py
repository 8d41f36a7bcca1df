"""What hides: kernels that compute and kernels that communicate, of a step on every rank."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
from torch.profiler import ProfilerActivity, profile

from anatomy.chapters.distributed import requirements as of
from anatomy.chapters.distributed import ways
from anatomy.diagnosis import profiles
from anatomy.measure import census, stopwatch_for
from anatomy.measure.census import Kernel
from anatomy.parts import memory, ranks
from anatomy.parts.ranks import Group, Rows
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.table.errors import DeviceError, MeasurementError

WARM_UP, TAKES = 4, 3  # steps before a profile, and profiles, of which the middle one is kept
DRAWN = 200  # parts of a step, of which a page draws none that is shorter
MOVES = ("nccl", "Memcpy PtoP")  # how names of kernels begin that move bytes between GPUs
FIGURES = ("profiled_step_s", "compute_s", "communication_s", "exposed_s", "hidden_share")
Parts = tuple[list[Kernel], list[Kernel]]


@experiment("distributed.overlap", page="axioms/distributed.md", timeout_s=180, on_request=True)
def overlap(device: str = "cuda:0", world_size: Count = 2, scale: Scale = 1.0) -> pd.DataFrame:
    """Profile a training step on every rank: how much communication is hidden behind kernels.

    Returns:
        A row of each way and rank: the time in which kernels compute, the time in which bytes move,
        and how much of that lies beside no kernel that computes. A rank that waits for another in
        a collective counts as moving bytes.
    """
    wanted = partial(of.overlap, scale=scale, world_size=world_size)
    how = {"budget_s": 45, "promised": FIGURES, "scale": scale}
    return ranks.table(of_rank, world_size, device, wanted, **how)


def of_rank(group: Group, scale: float) -> Rows:
    """What this rank saw."""
    rows, size = [], of.STEP.scaled(scale, group.size)
    for name in of.PROFILED:
        op = of.profile_of(name)
        cell = {"op": op, "variant": name, "rank": group.rank, "gpus": group.size}
        cell |= {**size.columns, "device": group.where.type}
        found, why = group.attempt(op, partial(_taken, group, size, name))
        rows.append(cell | (figures(*found) if found else {"note": why}))
        memory.give_back(group.where)
    return rows


def _taken(group: Group, size: of.Size, name: str) -> Parts:
    """When kernels computed and when bytes moved, in the middle one of several steps."""
    way, x = ways.build(name, group, size), ways.batch(size, group, group.rank)
    watch = stopwatch_for(group.where)
    for _ in range(WARM_UP):
        way.step(x)
    if group.where.type != "cuda":
        raise DeviceError("the CPU runs no kernels")
    takes = []
    for _ in range(TAKES):
        watch.drain()
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
            # Not before: to start a profiler takes ranks unequally long, and a rank that waits
            # for another in a collective would count as moving bytes.
            group.barrier(f"a profile of {name}")
            way.step(x)
            watch.drain()
        takes.append(parted(profiles.on_device(profiler.events())))
    lasted = [census.span(sorted(compute + moving)) for compute, moving in takes]
    middle = sorted(range(TAKES), key=lasted.__getitem__)[TAKES // 2]
    taken = takes[group.gathered(middle)[0]]  # rank 0's, so that all show the same step
    if not taken[0]:  # said after the last step, or the other ranks would wait
        raise MeasurementError("the profiler lost the kernels of a step.")
    return taken


def parted(kernels: Sequence[Kernel]) -> Parts:
    """Kernels that compute, and those that move bytes between GPUs; each in order of start."""
    # `nccl:all_reduce` is the name of a call that profiles show above its kernel.
    moving = [k for k in kernels if k[2].startswith(MOVES) and "nccl:" not in k[2]]
    return [k for k in kernels if not k[2].startswith(MOVES)], moving


def figures(compute: Sequence[Kernel], moving: Sequence[Kernel]) -> dict[str, Any]:
    """Seconds of each, and of what moves beside nothing that computes; and spans of both, so few
    that a page can draw them."""
    both = sorted([*compute, *moving])
    computing, communicating, any_s = map(census.busy, (compute, moving, both))
    whole = census.span(both)
    spans = partial(drawn, since=both[0][0], gap_s=whole / DRAWN)
    return {
        "profiled_step_s": whole,
        "compute_s": computing,
        "communication_s": communicating,
        "exposed_s": any_s - computing,
        "hidden_share": 1 - max(0.0, any_s - computing) / communicating if moving else None,
        "compute_spans_s": spans(compute),
        "communication_spans_s": spans(moving),
    }


def drawn(kernels: Sequence[Kernel], since: float, gap_s: float) -> list[float]:
    """Starts and ends, in turn, of the spans that hold all kernels, in seconds `since` a time, to
    the microsecond; gaps that last no longer than `gap_s` are closed."""
    ends: list[float] = []
    for start, end, _ in kernels:
        if ends and start <= ends[-1] + gap_s:
            ends[-1] = max(ends[-1], end)
        else:
            ends += [start, end]
    return [round(time - since, 6) for time in ends]
