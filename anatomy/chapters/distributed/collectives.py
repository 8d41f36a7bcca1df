"""What it takes to add up, gather and share out a message among all GPUs, over its size."""

from collections.abc import Callable
from functools import partial

import pandas as pd
import torch
from torch import Tensor, distributed

from anatomy.chapters.distributed import requirements as of
from anatomy.parts import ranks
from anatomy.parts.ranks import Group, Rows
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.table.errors import DisagreementError

REDUCE, GATHER, SCATTER = "all-reduce", "all-gather", "reduce-scatter"
# What each GPU sends, and receives, of a message in a ring of N, over the message: as nccl-tests
# count it (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md). An all-reduce is
# the two others.
ROUNDS = {REDUCE: 2, GATHER: 1, SCATTER: 1}


@experiment("distributed.collectives", page="axioms/distributed.md", timeout_s=180, on_request=True)
def collectives(
    device: str = "cuda:0", world_size: Count = 2, scale: Scale = 1.0, blocks: Count = 12
) -> pd.DataFrame:
    """Time the three collectives of training over the size of their message.

    Args:
        blocks: Blocks of calls in which each collective is timed.

    Returns:
        Rows of op `message of N bytes` and of one as large as all gradients of a training step;
        then, by a fit over all of them, rows of the time to start and of that for a gigabyte more.
    """
    how = {"budget_s": 60, "scale": scale, "blocks": blocks}
    wanted = partial(of.collectives, scale=scale, world_size=world_size)
    return ranks.table(of_rank, world_size, device, wanted, **how)


def of_rank(group: Group, scale: float, blocks: int) -> Rows:
    """What this rank measured."""
    rows = []
    for op, message in of.messages(scale, group.size).items():
        cell = {"op": op, "message_bytes": message, "gpus": group.size}
        made, why = group.attempt(op, partial(_calls, group, message))
        if why:
            rows += [{**cell, "variant": name, "note": why} for name in ROUNDS]
            continue
        for row in ranks.timed(group, made, cell=cell, blocks=blocks):
            share = ROUNDS[ranks.origin(row)] * (group.size - 1) / group.size
            rows.append(row | {"bytes": int(share * message)})
    for op, sent in ((of.STARTUP, None), (of.GIGABYTE, 10**9)):
        rows += [{"op": op, "variant": n, "gpus": group.size, "bytes": sent} for n in ROUNDS]
    return rows


def _named(now: str, before: str) -> Callable:
    """A function of torch.distributed, which PyTorch 2.13 has renamed."""
    return getattr(distributed, now, None) or getattr(distributed, before)


def _calls(group: Group, message: int) -> dict[str, Callable[[], Tensor]]:
    """A call of each collective over `message` bytes, which has given the right answer."""
    part = max(1, message // 4 // group.size)
    x = torch.ones(part * group.size, device=group.where)
    mine, everyone = torch.ones(part, device=group.where), torch.empty_like(x)
    group.agree("the shape of a message", list(x.shape))
    gather = _named("all_gather_single", "all_gather_into_tensor")
    scatter = _named("reduce_scatter_single", "reduce_scatter_tensor")
    # Each with the tensor that it fills, and what must be in there once those before have run.
    known = {
        REDUCE: (partial(distributed.all_reduce, x), x, group.size),
        GATHER: (partial(gather, everyone, mine), everyone, 1),
        SCATTER: (partial(scatter, mine, x), mine, group.size**2),
    }
    for name, (call, filled, expected) in known.items():
        call()
        if not bool((filled == expected).all()):
            raise DisagreementError(f"{name} of {message} bytes gave {filled[0]:g}: it is wrong.")
    # Sums of sums would overflow; zeros take as long, and stay.
    for buffer in (x, mine, everyone):
        buffer.zero_()
    return {name: call for name, (call, *_) in known.items()}
