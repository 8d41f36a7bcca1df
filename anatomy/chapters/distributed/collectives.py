"""What it takes to add up, gather and share out a message among all GPUs, over its size."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor, distributed

from anatomy.chapters.distributed import requirements
from anatomy.parts import ranks
from anatomy.parts.ranks import Group
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.table.errors import DisagreementError

LIMIT_S = 300
REDUCE, GATHER, SCATTER = "all-reduce", "all-gather", "reduce-scatter"
# What each GPU sends, and receives, of a message in a ring of N, over the message: as nccl-tests
# count it (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md). An all-reduce is
# the two others.
ROUNDS = {REDUCE: 2, GATHER: 1, SCATTER: 1}


@experiment(
    "distributed.collectives", page="axioms/distributed.md", timeout_s=LIMIT_S, on_request=True
)
def collectives(
    device: str = "cuda:0", world_size: Count = 2, scale: Scale = 1.0, blocks: Count = 12
) -> pd.DataFrame:
    """Time the three collectives of training over the size of their message.

    Args:
        blocks: Blocks of calls in which each collective is timed.

    Returns:
        Rows of op `message of N bytes`, then rows `fit`, which say start-up time and bandwidth.
    """
    wanted = partial(requirements.collectives, scale=scale)
    how = {"scale": scale, "blocks": blocks}
    return ranks.table(of_rank, world_size, device, LIMIT_S, wanted, **how)


def of_rank(
    device: str, left: dict[str, str], scale: float, blocks: int
) -> list[list[dict[str, Any]]]:
    """What each rank measured, by rank."""
    rows = []
    with ranks.joined(device) as group:
        left = group.gathered(left)[0]
        for message in requirements.messages(scale):
            op = requirements.named(message)
            cell = {"op": op, "message_bytes": message, "gpus": group.size}
            made, why = None, left.get(op, "")
            if not why:
                made, why = group.attempt(partial(_calls, group, message))
            if why:
                rows += [{**cell, "variant": name, "note": why} for name in ROUNDS]
                continue
            for row in ranks.timed(group, made, cell=cell, blocks=blocks):
                name = row["variant"].removesuffix(" (again)")
                share = ROUNDS[name] * (group.size - 1) / group.size
                rows.append(row | {"bytes": int(share * message)})
        rows += [{"op": "fit", "variant": name, "gpus": group.size} for name in ROUNDS]
        return group.gathered(rows)


def _named(now: str, before: str) -> Callable:
    """A function of torch.distributed, which PyTorch 2.13 has renamed."""
    return getattr(distributed, now, None) or getattr(distributed, before)


def _calls(group: Group, message: int) -> dict[str, Callable[[], Tensor]]:
    """A call of each collective over `message` bytes, which has given the right answer."""
    part = max(1, message // 4 // group.size)
    x = torch.ones(part * group.size, device=group.where)
    mine = torch.ones(part, device=group.where)
    everyone = torch.empty_like(x)
    group.agree("the shape of a message", list(x.shape))

    def reduce() -> Tensor:
        distributed.all_reduce(x)
        return x

    def gather() -> Tensor:
        _named("all_gather_single", "all_gather_into_tensor")(everyone, mine)
        return everyone

    def scatter() -> Tensor:
        _named("reduce_scatter_single", "reduce_scatter_tensor")(mine, x)
        return mine

    calls = {REDUCE: reduce, GATHER: gather, SCATTER: scatter}
    expected = {REDUCE: group.size, GATHER: 1.0, SCATTER: group.size**2}
    for name, call in calls.items():
        found = call()
        if not bool((found == expected[name]).all()):
            raise DisagreementError(f"{name} of {message} bytes gave {found[0]:g}, which is wrong.")
    # Sums of sums would overflow; zeros take as long, and stay.
    for buffer in (x, mine, everyone):
        buffer.zero_()
    return calls
