"""The dispatch keys of tensors, and of calls."""

import functools

import pandas as pd
import torch
from torch import Tensor

from anatomy.numerics import formats
from anatomy.record.declare import experiment


@experiment("dispatch.keys", page="curriculum/day_09.md")
def keys(device: str = "cuda:0") -> pd.DataFrame:
    """List the dispatch keys that tensors of several kinds carry.

    Returns:
        One row per kind, without times.
    """
    where = formats.torch_device(device)
    x = torch.ones(1, device=where)
    with torch.inference_mode():
        inferred = torch.ones(1, device=where)
    kinds = {"x = torch.ones(1)": x, "x.requires_grad_()": x.clone().requires_grad_()}
    kinds |= {"made in inference_mode": inferred, "x.to_sparse()": x.to_sparse()}
    kinds |= {"torch.ones(1) on the CPU": torch.ones(1)}
    said = [str(torch._C._dispatch_keys(tensor)) for tensor in kinds.values()]
    named = [keys.removeprefix("DispatchKeySet(").removesuffix(")") for keys in said]
    return pd.DataFrame({"variant": [*kinds], "keys": named, "device": where.type})


def keys_of(op: str, *given: Tensor) -> str:
    """The keys of a call of `op`, by their priority: of its tensors and of the thread, which some
    contexts change. In brackets are those for which the operator's table has no code."""
    keys = functools.reduce(lambda a, b: a | b, map(torch._C._dispatch_keys, given))
    keys = keys | torch._C._dispatch_tls_local_include_set()
    keys = keys - torch._C._dispatch_tls_local_exclude_set()
    lines = torch._C._dispatch_dump_table(op).splitlines()
    table = dict(line.split(": ", 1) for line in lines if ": " in line)
    found = []
    while (key := keys.highestPriorityTypeId()) != torch._C.DispatchKey.Undefined:
        keys, name = keys.remove(key), torch._C._dispatch_key_name(key)
        runs = not table.get(name, "fallthrough").startswith("fallthrough")
        found.append(name if runs else f"({name})")
    return ", ".join(found)
