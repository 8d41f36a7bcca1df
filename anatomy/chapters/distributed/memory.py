"""Which ways train a model whose state is too large for one GPU."""

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
WAYS = (of.DDP, of.VIEW, of.FSDP, of.FULL, of.CHECKPOINTED, of.KEPT)
FIGURES = ("total_peak_bytes", "cap_bytes", "fits")


@experiment("distributed.memory", page="axioms/distributed.md", timeout_s=180, on_request=True)
def memory(device: str = "cuda:0", world_size: Count = 2, scale: Scale = 1.0) -> pd.DataFrame:
    """Try two training steps of a model that is too large for one GPU under DDP.

    Returns:
        Rows of op `too large for one GPU`, which say whether it fits into what the allocator may
        take of the card, and what the steps take at most; a row of each rank.
    """
    wanted = partial(of.memory, scale=scale, world_size=world_size)
    how = {"budget_s": 45, "promised": FIGURES, "scale": scale}
    return ranks.table(of_rank, world_size, device, wanted, **how)


def of_rank(group: Group, scale: float) -> Rows:
    """What this rank counted."""
    rows, size, cap, whole = [], of.LARGE.scaled(scale, 1), None, 0
    if group.where.type == "cuda":
        whole = torch.cuda.get_device_properties(group.where).total_memory
        cap = int(of.CAP * scale * whole)
        size = of.too_large(cap, size)
    group.agree("the size of the model", size.columns)
    for name in WAYS:
        row = {"op": of.TOO_LARGE, "variant": name, "rank": group.rank, "gpus": group.size}
        row |= {**size.columns, "weights": size.weights, "device": group.where.type}
        rows.append(row | {"cap_bytes": cap} | _tried(group, size, name, cap and cap / whole))
    return rows


def _tried(group: Group, size: of.Size, name: str, share: float | None) -> dict[str, Any]:
    """What one way came to, where the allocator has a share of the card."""

    def act() -> counted.Peak:
        way, x = ways.build(name, group, size), ways.batch(size, group, group.rank)
        if found := counted.peak(lambda: [way.step(x) for _ in range(2)], group.where):
            return found
        way.step(x)
        raise DeviceError("the CPU's allocator keeps no account")

    counted.give_back(group.where)
    if share:
        torch.cuda.set_per_process_memory_fraction(share, group.where)
    try:
        found, why = group.attempt(of.TOO_LARGE, act)
    finally:
        if share:
            torch.cuda.set_per_process_memory_fraction(1.0, group.where)
    if found:
        return {"total_peak_bytes": found.total_bytes, "fits": True}
    return {"fits": False} if why == grid.NO_MEMORY else {"note": why}
