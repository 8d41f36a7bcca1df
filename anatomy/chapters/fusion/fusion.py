"""Fusion measured: chains of 1 to 32 operations, patterns, and matmuls, eager and compiled."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Literal

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.fusion import requirements
from anatomy.chapters.fusion.patterns import COMPILED, EAGER, MATMULS, PATTERNS, tensors
from anatomy.chapters.fusion.requirements import LENGTHS, MATRIX, SIDE, side
from anatomy.comparison import compare
from anatomy.numerics import formats
from anatomy.parts import grid, memory
from anatomy.record.bounds import Count, Scale, Seconds
from anatomy.record.declare import experiment
from anatomy.table import formulas

WARM = "gpu_warm"
Backend = Literal["inductor", "eager"]
# One operation that costs next to nothing beside its bytes, and one of some twenty instructions.
CHAINS = {"multiplications": lambda x: x * 0.999, "cosines": lambda x: x.cos()}


@experiment("fusion.chains", page="curriculum/day_13.md")
def chains(
    device: str = "cuda:0",
    backend: Backend = "inductor",
    scale: Scale = 1.0,
    iters: Count = 12,
    budget_s: Seconds = 8.0,
) -> pd.DataFrame:
    """Time chains of 1 to 32 elementwise operations, eager and compiled, and count their kernels.

    Returns:
        For each operation a comparison of all lengths. `bytes` is by formula: eager, every
        operation reads and writes the tensor; compiled, the chain does so once.
    """
    where = formats.torch_device(device)
    on = memory.capacity(where)
    names = {f"{way}, {count}": (way, count) for way in (EAGER, COMPILED) for count in LENGTHS}

    def made(op: str) -> dict:
        x = torch.rand(requirements.elements(on.cache_bytes, scale), device=where) + 0.5
        calls, exact, moved = {}, {}, {}
        for name, (way, count) in names.items():
            run = _repeated(CHAINS[op], count)
            exact[name] = lambda run=run: run(x.double())
            moved[name] = 2 * x.nbytes * (1 if way == COMPILED else count)
            if way == COMPILED:
                run = torch.compile(run, backend=backend, dynamic=False)
            calls[name] = partial(run, x)
        return {"variants": calls, "reference": exact, "bytes": moved}

    how = {"required": requirements.chains(on, scale), "iters": iters, "budget_s": budget_s}
    table = _measured(dict.fromkeys(CHAINS, names), made, where=where, **how)
    named = table.variant.str.extract(r"(?P<way>\w+), (?P<operations>\d+)")
    return table.join(named.astype({"operations": int}))


def _repeated(operation: Callable[[Tensor], Tensor], count: int) -> Callable[[Tensor], Tensor]:
    def chain(x: Tensor) -> Tensor:
        for _ in range(count):
            x = operation(x)
        return x

    return chain


@experiment("fusion.patterns", page="curriculum/day_13.md", timeout_s=240)
def patterns(
    device: str = "cuda:0",
    backend: Backend = "inductor",
    scale: Scale = 1.0,
    iters: Count = 12,
    budget_s: Seconds = 2.0,
) -> pd.DataFrame:
    """Count the kernels of patterns that a compiler may fuse, eager and compiled, and time them.

    Returns:
        A comparison for each pattern.
    """
    where = formats.torch_device(device)
    given = partial(tensors, side(SIDE, scale), torch.float32, where)
    how = {"required": requirements.patterns(memory.capacity(where), scale), "where": where}
    return _fused(PATTERNS, given, backend, iters=iters, budget_s=budget_s, **how)


@experiment("fusion.matmuls", page="curriculum/day_13.md", timeout_s=240)
def matmuls(
    device: str = "cuda:0",
    backend: Backend = "inductor",
    scale: Scale = 1.0,
    iters: Count = 12,
    budget_s: Seconds = 2.0,
) -> pd.DataFrame:
    """Count the kernels around a matmul: what is fused behind it, before it, and between two.

    Returns:
        A comparison for each, in bf16: eager, compiled, and compiled with a matmul of Inductor's
        own, of a few tiles, which it can write into.
    """
    where = formats.torch_device(device)
    given = partial(tensors, side(MATRIX, scale), torch.bfloat16, where)
    how = {"required": requirements.matmuls(memory.capacity(where), scale), "where": where}
    return _fused(MATMULS, given, backend, iters=iters, budget_s=budget_s, **how)


def _fused(patterns: Mapping, given: Callable, backend: Backend, **how) -> pd.DataFrame:
    """A comparison of each pattern's ways, on what it takes of the tensors `given`."""

    def made(op: str) -> dict:
        _, run, ways = patterns[op]
        named = given()
        inputs = [named[name] for name in signature(run).parameters]
        calls = {EAGER: partial(run, *inputs)}
        for way, options in ways.items():
            if options is None:
                calls[way] = partial(run, *(x.to(torch.bfloat16) for x in inputs))
            else:
                own = dict(options) if backend == "inductor" else None
                compiled = torch.compile(run, backend=backend, dynamic=False, options=own)
                calls[way] = partial(compiled, *inputs)
        flops = op.count("@") * formulas.matmul_flops(*named["x"].shape, len(named["x"])) or None
        return {"variants": calls, "reference": lambda: run(*map(_wide, inputs)), "flops": flops}

    ways = {op: (EAGER, *each.ways) for op, each in patterns.items()}
    table = _measured(ways, made, **how)
    return table.assign(pattern=[patterns[op].kind for op in table.op])


def _wide(x: Tensor) -> Tensor:
    return x.double() if x.is_floating_point() else x


def _measured(ways: Mapping, made: Callable, where, required, budget_s, **how) -> pd.DataFrame:
    """A comparison of the ways of each operation, with what is `made` for it; one that is refused
    says why. Each operation takes all that is `required`."""
    how |= {"quantity": WARM, "device": where, "budget_s": budget_s}

    def measure(cell: grid.Cell) -> pd.DataFrame:
        given = made(cell["op"])
        calls = given.pop("variants")
        # The first call compiles, which is no part of the budget, and leaves little to settle.
        notes = {way: why for way in [*calls][1:] if (why := grid.refusal(calls[way]))}
        calls = {way: call for way, call in calls.items() if way not in notes}
        table = compare(calls, **cell, **given, **how, settle_cap_s=min(1.0, budget_s)).table
        return grid.with_refused(table, cell, notes, quantity=WARM, where=where)

    told = {"required": [replace(need, op=op) for need in required for op in ways]}
    told |= {"variants": lambda cell: tuple(ways[cell["op"]]), "foreseen": (RuntimeError,)}
    told |= {"quantity": WARM, "where": where, "promised": ("kernels",)}
    with torch.no_grad():
        return grid.measure_cells(({"op": op} for op in ways), measure, **told)
