"""What each way takes of a GPU's memory, and which still fit where less is allowed."""

from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import torch

from anatomy.chapters.distributed import requirements as of
from anatomy.chapters.distributed import ways
from anatomy.chapters.distributed.requirements import Size
from anatomy.parts import grid, ranks
from anatomy.parts import memory as counted
from anatomy.parts.ranks import Group
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.record.requirements import Capacity

LIMIT_S = 240
WAYS = (of.DDP, of.VIEW, of.ZERO, of.FSDP, of.KEPT, of.CHECKPOINTED)
FIGURES = ("total_peak_bytes", "between_bytes", "cap_bytes", "fits")
NO_ACCOUNT = "not supported: the CPU's allocator keeps no account"


@experiment("distributed.memory", page="axioms/distributed.md", timeout_s=LIMIT_S, on_request=True)
def memory(device: str = "cuda:0", world_size: Count = 2, scale: Scale = 1.0) -> pd.DataFrame:
    """Count the memory of a training step by way; then try all where the allocator may take less.

    Returns:
        Rows of op `peak memory`, with the bytes predicted, and of op `under a cap`, which say
        whether two steps fit; a row of each rank.
    """
    layers = of.large(counted.capacity(ranks.own_device(device)), scale, world_size).layers
    wanted = partial(of.memory, scale=scale, world_size=world_size)
    how = {"scale": scale, "layers": layers, "promised": FIGURES}
    return ranks.table(of_rank, world_size, device, LIMIT_S, wanted, **how)


def of_rank(
    device: str, left: dict[str, str], scale: float, layers: int
) -> list[list[dict[str, Any]]]:
    """What each rank counted, by rank."""
    rows = []
    with ranks.joined(device) as group:
        left, layers = group.gathered((left, layers))[0]  # as rank 0 has it, or models would differ
        size = replace(of.large(Capacity(), scale, group.size), layers=layers)
        cap = of.cap_bytes(size, group.size)
        for op in (of.PEAK, of.CAPPED):
            for name in WAYS:
                row = {"op": op, "variant": name, "rank": group.rank, "gpus": group.size}
                row |= {**size.columns, "batch": size.batch, "device": group.where.type}
                row |= {"predicted_bytes": of.predicted(name, size, group.size)}
                row |= {"cap_bytes": cap} if op == of.CAPPED else {}
                if why := left.get(op):
                    rows.append(row | {"note": why})
                else:
                    rows.append(row | _tried(group, size, name, row.get("cap_bytes")))
        return group.gathered(rows)


def _tried(group: Group, size: Size, name: str, cap: int | None) -> dict[str, Any]:
    """Two steps of a way, with the allocator held below a cap if there is one."""
    on_gpu = group.where.type == "cuda"

    def act() -> tuple[int, int]:
        way = ways.build(name, group, size)
        x = next(ways.batches(size, group, group.rank))
        peak = counted.peak(lambda: [way.step(x) for _ in range(2)], group.where)
        return (peak.total_bytes, torch.cuda.memory_allocated(group.where)) if peak else (0, 0)

    counted.give_back(group.where)
    if on_gpu and cap:
        whole = torch.cuda.get_device_properties(group.where).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, cap / whole), group.where)
    try:
        found, why = group.attempt(act)
    finally:
        if on_gpu:
            torch.cuda.set_per_process_memory_fraction(1.0, group.where)
    if not on_gpu:
        return {"note": why or NO_ACCOUNT}
    if found:
        return {"total_peak_bytes": found[0], "between_bytes": found[1], "fits": True}
    return {"fits": False} if why == grid.NO_MEMORY else {"note": why}
