"""Attention called once and again by a script under a profiler that counts each kernel's bytes. It
sees kernels in the order of their launch, so one that nothing else launches, the *mark*, stands
between calls. The L2 cache is emptied before and after, or the last writes would not be counted."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

WRITTEN_OUT, IN_BF16, FUSED = "written out", "written out, all in bf16", "fused"
FORWARD, BOTH = "forward", "forward and backward"
MARK = "spin_kernel"  # before and after a call: it only lets time go by
FLUSHES = 8  # caches that are read to empty one; in `requirements` as well


def written_out(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The attention of the ladder's rung 1, with the casts that autocast makes there."""
    T, kind = q.shape[2], q.dtype
    future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
    scores = q @ k.mT / q.shape[3] ** 0.5  # (B, H, T, T)
    shares = scores.masked_fill(future, float("-inf")).float().softmax(3)
    return shares.to(kind) @ v


def all_in_bf16(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention with as few operators as it can be written with: no mask, and no casts."""
    return (q @ k.mT * q.shape[3] ** -0.5).softmax(3) @ v


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention as the ladder's rung 2 has it."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


WAYS = {WRITTEN_OUT: written_out, IN_BF16: all_in_bf16, FUSED: fused}


def call_of(
    way: str, direction: str, heads: int, sequence: int, width: int, where: torch.device
) -> Callable[[], object]:
    """One attention of random q, k and v, to be called again and again."""
    shape = (1, heads, sequence, width)  # (B, H, T, D)
    q, k, v, grad = (torch.randn(shape, dtype=torch.bfloat16, device=where) for _ in range(4))
    if direction == FORWARD:
        return torch.inference_mode()(lambda: WAYS[way](q, k, v))
    for x in (q, k, v):
        x.requires_grad_()
    return lambda: torch.autograd.grad(WAYS[way](q, k, v), (q, k, v), grad)


def main(plan_path: str) -> None:
    """Call what a plan lists, until it is done or late: a JSON file with `cells`, each the
    arguments of `call_of`; `device`; `repeats`; `until`, the Unix time after which no call begins;
    and `done`, a file that becomes the list of the cells' places as they were called."""
    plan = json.loads(Path(plan_path).read_text(encoding="utf-8"))
    where = torch.device(plan["device"])
    torch.cuda.set_device(where)
    cache = torch.cuda.get_device_properties(where).L2_cache_size or 2**26
    full = torch.ones(FLUSHES * cache // 4, device=where)
    done = []
    for place in [*range(len(plan["cells"]))] * plan["repeats"]:
        if time.time() > plan["until"]:
            break
        try:
            call = call_of(**plan["cells"][place], where=where)
            call()  # memory, handles and plans are made now
        except torch.OutOfMemoryError:
            continue  # the others may fit
        full.sum()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        torch.cuda._sleep(1)
        result = call()
        torch.cuda._sleep(1)
        full.sum()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
        done.append(place)
        del result, call
    Path(plan["done"]).write_text(json.dumps(done), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
