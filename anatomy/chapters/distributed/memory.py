"""Which ways still fit where the allocator may take less of a card."""

from functools import partial
from typing import Any

import pandas as pd
import torch

from anatomy.chapters.distributed import requirements as of
from anatomy.chapters.distributed import ways
from anatomy.parts import grid, ranks
from anatomy.parts import memory as counted
from anatomy.parts.ranks import Group, Rows
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.table.errors import DeviceError

# All ranks must run out of memory at the same place, or one would wait for the others in a
# collective: so ZeRO-1 is left out, which gives ranks whole tensors, one of them more bytes.
WAYS = (of.DDP, of.VIEW, of.FSDP, of.CHECKPOINTED, of.KEPT)
FIGURES = ("total_peak_bytes", "cap_bytes", "fits")


@experiment("distributed.memory", page="axioms/distributed.md", timeout_s=180, on_request=True)
def memory(device: str = "cuda:0", world_size: Count = 2, scale: Scale = 1.0) -> pd.DataFrame:
    """Try two training steps of a large model where the allocator may take no more than a cap.

    Returns:
        Rows of op `under a cap`, which say whether it fits, and what it takes; a row of each rank.
    """
    wanted = partial(of.memory, scale=scale, world_size=world_size)
    how = {"budget_s": 45, "promised": FIGURES, "scale": scale}
    return ranks.table(of_rank, world_size, device, wanted, **how)


def of_rank(group: Group, scale: float) -> Rows:
    """What this rank counted."""
    rows, size = [], of.LARGE.scaled(scale, 1)
    for name in WAYS:
        row = {"op": of.CAPPED, "variant": name, "rank": group.rank, "gpus": group.size}
        row |= {**size.columns, "device": group.where.type}
        row |= {"cap_bytes": of.cap_bytes(size, group.size)}
        rows.append(row | _tried(group, size, name, row["cap_bytes"]))
    return rows


def _tried(group: Group, size: of.Size, name: str, cap: int) -> dict[str, Any]:
    on_gpu = group.where.type == "cuda"

    def act() -> counted.Peak:
        way, x = ways.build(name, group, size), ways.batch(size, group, group.rank)
        if found := counted.peak(lambda: [way.step(x) for _ in range(2)], group.where):
            return found
        way.step(x)
        raise DeviceError("the CPU's allocator keeps no account")

    counted.give_back(group.where)
    if on_gpu:
        whole = torch.cuda.get_device_properties(group.where).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, cap / whole), group.where)
    try:
        found, why = group.attempt(of.CAPPED, act)
    finally:
        if on_gpu:
            torch.cuda.set_per_process_memory_fraction(1.0, group.where)
    if found:
        return {"total_peak_bytes": found.total_bytes, "fits": True}
    return {"fits": False} if why == grid.NO_MEMORY else {"note": why}
