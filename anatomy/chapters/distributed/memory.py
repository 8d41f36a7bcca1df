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
from anatomy.parts.ranks import Group, Rows
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.record.requirements import Capacity

# Under a cap all ranks must run out of memory at the same place, or one would wait for the others
# in a collective. ZeRO-1 gives them whole tensors, of which one may have a few more bytes.
ALIKE = (of.DDP, of.FSDP, of.CHECKPOINTED, of.KEPT, of.VIEW)
WAYS = {of.PEAK: (*ALIKE, of.ZERO), of.CAPPED: ALIKE}
FIGURES = ("total_peak_bytes", "between_bytes", "cap_bytes", "fits")


@experiment("distributed.memory", page="axioms/distributed.md", timeout_s=180, on_request=True)
def memory(device: str = "cuda:0", world_size: Count = 2, scale: Scale = 1.0) -> pd.DataFrame:
    """Count the memory of a training step by way; then try all where the allocator may take less.

    Returns:
        Rows of op `peak memory`, with the bytes predicted, and of op `under a cap`, which say
        whether two steps fit; a row of each rank.
    """
    # As the first GPU has it, or models would differ.
    layers = of.large(counted.capacity(ranks.own_device(device)), scale, world_size).layers
    how = {"budget_s": 45, "promised": FIGURES, "scale": scale, "layers": layers}
    wanted = partial(of.memory, scale=scale, world_size=world_size)
    return ranks.table(of_rank, world_size, device, wanted, **how)


def of_rank(group: Group, scale: float, layers: int) -> Rows:
    """What this rank counted."""
    rows = []
    layers = group.gathered(layers)[0]
    size = replace(of.large(Capacity(), scale, group.size), layers=layers)
    for op, cap in ((of.PEAK, None), (of.CAPPED, of.cap_bytes(size, group.size))):
        for name in WAYS[op]:
            row = {"op": op, "variant": name, "rank": group.rank, "gpus": group.size}
            row |= {**size.columns, "batch": size.batch, "device": group.where.type}
            row |= {"predicted_bytes": of.predicted(name, size, group.size)}
            row |= {"cap_bytes": cap} if cap else {}
            rows.append(row | _tried(group, size, name, op, cap))
    return rows


def _tried(group: Group, size: Size, name: str, op: str, cap: int | None) -> dict[str, Any]:
    """Two steps of a way, with the allocator held below a cap if there is one."""
    on_gpu = group.where.type == "cuda"

    def act() -> tuple[int, int] | None:
        way = ways.build(name, group, size)
        x = ways.batch(size, group, group.rank)
        peak = counted.peak(lambda: [way.step(x) for _ in range(2)], group.where)
        return peak and (peak.total_bytes, torch.cuda.memory_allocated(group.where))

    counted.give_back(group.where)
    if on_gpu and cap:
        whole = torch.cuda.get_device_properties(group.where).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, cap / whole), group.where)
    try:
        found, why = group.attempt(op, act)
    finally:
        if on_gpu:
            torch.cuda.set_per_process_memory_fraction(1.0, group.where)
    if found:
        return {"total_peak_bytes": found[0], "between_bytes": found[1], "fits": True}
    if cap and why == grid.NO_MEMORY:
        return {"fits": False}
    return {"note": why or "not supported: the CPU's allocator keeps no account"}
