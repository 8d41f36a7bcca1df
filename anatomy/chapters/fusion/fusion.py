"""Fusion measured: chains of 1 to 32 operations, patterns, and matmuls, eager and compiled."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.fusion import requirements
from anatomy.chapters.fusion.patterns import PATTERNS, Outputs, tensors
from anatomy.chapters.fusion.requirements import CHAINS, LENGTHS, MATRIX, SIDE, side
from anatomy.comparison import compare
from anatomy.numerics import formats
from anatomy.parts import grid, memory
from anatomy.record.bounds import Count, Scale, Seconds
from anatomy.record.declare import experiment
from anatomy.table import formulas

EAGER, COMPILED, BF16, TEMPLATE = "eager", "compiled", "eager bf16", "Triton template"
WARM, HALVED = "gpu_warm", "gate, vectors"
SETTLE_S = 1.0  # of settling, or the budget if that is less; all variants have run before
# A few tiles of Inductor's own matmul: trying all of them would take a minute.
TILES = {
    "max_autotune_gemm": True,
    "max_autotune_gemm_backends": "TRITON",
    "test_configs.autotune_choice_desc_regex": "BLOCK_M=128, BLOCK_N=128",
}
Backend = Literal["inductor", "eager"]


def multiplied(x: Tensor) -> Tensor:
    """One operation that costs next to nothing beside its bytes."""
    return x * 0.999


def turned(x: Tensor) -> Tensor:
    """One operation of some twenty instructions."""
    return x.cos()


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

    def measure(cell: grid.Cell) -> pd.DataFrame:
        x = torch.rand(requirements.elements(on.cache_bytes, scale), device=where) + 0.5
        operation = dict(zip(CHAINS, (multiplied, turned), strict=True))[cell["op"]]
        calls, exact, moved, lengths = {}, {}, {}, {}
        for way in (EAGER, COMPILED):
            for count in LENGTHS:
                name, run = f"{way}, {count}", _repeated(operation, count)
                exact[name] = lambda run=run: run(x.double())
                if way == COMPILED:
                    run = torch.compile(run, backend=backend, dynamic=False)
                    run(x)  # compiles it, which is no part of the budget
                calls[name] = functools.partial(run, x)
                one = formulas.pointwise_bytes(x.numel(), x.element_size())
                moved[name], lengths[name] = one * (count if way == EAGER else 1), count
        how = {"bytes": moved, "limit": "copy", "where": where, "iters": iters}
        table = _compared(cell["op"], calls, exact, budget_s=budget_s, **how)
        origin = table.variant.str.removesuffix(" (again)")
        table = table.assign(way=origin.str.partition(", ")[0])
        return table.assign(operations=[lengths[name] for name in origin])

    variants = [f"{way}, {count}" for way in (EAGER, COMPILED) for count in LENGTHS]
    required = requirements.chains(on, scale)
    return _cells(CHAINS, measure, variants, where, required, ("way", "operations"))


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
    given = tensors(side(SIDE, scale), where)

    def measure(cell: grid.Cell) -> pd.DataFrame:
        each = PATTERNS[cell["op"]]
        inputs = [given[name] for name in each.takes]
        how = {"backend": backend, "where": where, "iters": iters, "budget_s": budget_s}
        table = _fused(cell, each.run, inputs, {COMPILED: each.options}, **how)
        return table.assign(pattern=each.kind)

    (required,) = requirements.patterns(memory.capacity(where), scale)
    needs = [requirements.Requirement(op, required.bytes) for op in PATTERNS]
    return _cells(PATTERNS, measure, _ways, where, needs)


# --8<-- [start:matmuls]
def _epilogue(a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    return torch.relu(a @ b + bias)


def _prologue(a: Tensor, few: Tensor) -> Tensor:
    return a @ few.to(a.dtype)


def _pair(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return a @ b @ c


# --8<-- [end:matmuls]
MATMULS = {
    "relu(a @ b + bias)": (_epilogue, ("a", "b", "bias")),
    "a @ int8.to(bf16)": (_prologue, ("a", "few")),
    "a @ b @ c": (_pair, ("a", "b", "c")),
}


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
    n = side(MATRIX, scale)

    def measure(cell: grid.Cell) -> pd.DataFrame:
        given = {name: torch.randn(n, n, device=where) / n**0.25 for name in "abc"}
        given["bias"] = torch.randn(n, device=where)
        given = {name: each.to(torch.bfloat16) for name, each in given.items()}
        given["few"] = torch.randint(-4, 5, (n, n), device=where, dtype=torch.int8)
        run, takes = MATMULS[cell["op"]]
        inputs = [given[name] for name in takes]
        options = {way: TILES if way == TEMPLATE else {} for way in _ways(cell)[1:]}
        count = 2 if run is _pair else 1
        how = {"flops": count * formulas.matmul_flops(n, n, n), "limit": "matmul bf16"}
        how |= {"backend": backend, "where": where, "iters": iters, "budget_s": budget_s}
        return _fused(cell, run, inputs, options, allowed=2**-5, **how)

    (required,) = requirements.matmuls(memory.capacity(where), scale)
    needs = [requirements.Requirement(op, required.bytes, "bf16") for op in MATMULS]
    return _cells(MATMULS, measure, _ways, where, needs)


def _ways(cell: grid.Cell) -> tuple[str, ...]:
    """All that have rows, whatever becomes of them: pages and claims read them."""
    more = {HALVED: (BF16,)} | {op: (TEMPLATE,) for op in MATMULS if MATMULS[op][0] is not _pair}
    return EAGER, COMPILED, *more.get(cell["op"], ())


def _fused(
    cell: grid.Cell, run: Callable, inputs: Sequence[Tensor], options: dict, *, backend: str, **how
) -> pd.DataFrame:
    """A function eager and compiled with each way's options; a way that is refused says why."""
    calls, notes = {EAGER: functools.partial(run, *inputs)}, {}
    for way, chosen in options.items():
        own = dict(chosen) if backend == "inductor" else None
        made = torch.compile(run, backend=backend, dynamic=False, options=own)
        call = functools.partial(made, *inputs)
        if why := grid.refusal(call):
            notes[way] = why
        else:
            calls[way] = call
    if cell["op"] == HALVED:  # half of the bytes, in place of fewer trips
        calls[BF16] = functools.partial(run, *(each.to(torch.bfloat16) for each in inputs))
    table = _compared(cell["op"], calls, functools.partial(_exact, run, inputs), **how)
    return grid.with_refused(table, cell, notes, quantity=WARM, where=how["where"])


def _exact(run: Callable[..., Outputs], inputs: Sequence[Tensor]) -> Outputs:
    wide = [each.double() if each.is_floating_point() else each for each in inputs]
    return run(*wide)


def _compared(
    op: str, calls: dict, exact: Any, *, where: torch.device, budget_s: float, **how: Any
) -> pd.DataFrame:
    how |= {"reference": exact, "quantity": WARM, "device": where, "budget_s": budget_s}
    return compare(calls, op=op, settle_cap_s=min(SETTLE_S, budget_s), **how).table


def _cells(ops, measure, variants, where: torch.device, required, promised=()) -> pd.DataFrame:
    how = {"quantity": WARM, "where": where, "required": required}
    how |= {"variants": variants, "foreseen": (RuntimeError,), "promised": ("kernels", *promised)}
    with torch.no_grad():
        table = grid.measure_cells([{"op": op} for op in ops], measure, **how)
    return grid.with_counts(table, *(each for each in ("bytes", "flops") if each in table))
