"""Attention over the length of the sequence: written out, and by each backend that PyTorch has."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import pandas as pd
import torch

from anatomy.chapters.attention import requirements
from anatomy.chapters.attention.requirements import BOTH
from anatomy.comparison import compare
from anatomy.numerics import formats
from anatomy.parts import attention, grid, memory
from anatomy.parts.attention import ALLOWED, BACKENDS, WAYS, Problem, Size
from anatomy.record.bounds import Count, Length
from anatomy.record.declare import experiment
from anatomy.table import formulas
from anatomy.table.errors import MeasurementError

BUDGET_S, SETTLE_CAP_S = 2.0, 1.0  # of one comparison: ten of them take half a minute
LONG_BUDGET_S, LONG_SEQUENCE = 5.0, 16384  # from where checks and listing kernels take that long


@experiment("attention.backends", page="axioms/attention.md", command="attention", timeout_s=900)
def backends(
    device: str = "cuda:0",
    dtype: Literal["bf16", "fp16", "fp32"] = "bf16",
    heads: Count = 8,
    head_width: Length = 64,
    longest: Length = 32768,
    causal: bool = False,
    full: bool = False,
    iters: Count = 12,
) -> pd.DataFrame:
    """Time attention written out, and fused by each backend, over the length of the sequence.

    Args:
        dtype: Number format of q, k and v; fp32 products do not use TF32.
        heads: Heads H of the one sequence.
        longest: Longest sequence N, in tokens; the others are halves down to 2048, then fourths.
        causal: Let a token see only itself and those before it, at every length.
        full: Measure a finer map, by halves; takes minutes.

    Returns:
        A row in step_wall for each `sequence`, `direction` and `backend`: `manual`, written out, is
        the control; `math`, `efficient`, `flash` and `cudnn` have all others switched off;
        `default` is the call as it is. Where `manual` can't run, there are no ratios. A fourth and
        a sixteenth of the longest sequence are also timed with a causal mask, as directions of
        their own.
    """
    where = formats.torch_device(device)
    cells = requirements.cells(longest, causal, full)
    needs = requirements.backends(
        memory.capacity(where), dtype, heads, head_width, longest, causal, full
    )
    with formats.products_in(dtype), attention.switches_kept() as ordinary:

        def measure(cell: grid.Cell) -> pd.DataFrame:
            backward = cell["direction"].startswith(BOTH)
            size = Size(heads, cell["sequence"], head_width, dtype, backward, cell["causal"])
            return _measured(size, where, ordinary, cell["op"], iters)

        table = grid.measure_cells(
            cells, measure, variants=WAYS, quantity="step_wall", where=where, required=needs
        )
    return table.assign(backend=table.variant.str.removesuffix(" (again)"))


def _measured(size: Size, where, ordinary, op: str, iters: int) -> pd.DataFrame:
    refused = attention.too_large(size, where)
    if len(refused) == len(WAYS):
        return _refused(op, where, refused)
    given = attention.problem(size, where)
    expected = attention.exact(given)
    every = attention.calls(given, ordinary)
    with _mode(given):
        for name in (name for name in WAYS if name not in refused):
            if reason := attention.why_not(name, every[name], expected):
                refused[name] = reason
        there = {name: call for name, call in every.items() if name not in refused}
        if not there:
            return _refused(op, where, refused)
        peaks = {name: memory.columns(memory.peak(call, where)) for name, call in there.items()}
        try:
            table = compare(
                there,
                reference=lambda: expected,
                allowed=ALLOWED[given.q.dtype],
                quantity="step_wall",
                op=op,
                **_work(size, there),
                device=where,
                iters=iters,
                budget_s=LONG_BUDGET_S if size.sequence >= LONG_SEQUENCE else BUDGET_S,
                settle_cap_s=SETTLE_CAP_S,
            ).table
        except MeasurementError as error:  # the other cells can be measured all the same
            return _refused(op, where, refused | dict.fromkeys(there, f"not measured: {error}"))
        chosen, by = chosen_backend(table, given, ordinary)
    ran = table.variant == "default"
    table = table.assign(
        chosen=ran.map({True: chosen, False: None}),
        chosen_by=ran.map({True: by, False: None}),
        **{
            column: [peaks.get(name, {}).get(column) for name in table.variant]
            for column in memory.columns(None)
        },
    )
    if "manual" in refused:
        table = _without_ratios(table)
    tables = [table, _refused(op, where, refused)] if refused else [table]
    return pd.concat(tables, ignore_index=True)


def _work(size: Size, there: Iterable[str]) -> dict[str, Any]:
    """Operations, bytes and ceilings of a cell, as arguments of `compare`."""
    shape, item = (size.heads, size.sequence, size.width), formats.itemsize(size.dtype)
    # In fp32 a fused kernel may put its products together of several in TF32, on tensor cores.
    fused = "tf32" if size.dtype == "fp32" else size.dtype
    return {
        "flops": formulas.attention_flops(*shape, backward=size.backward, causal=size.causal),
        "bytes": formulas.attention_bytes(*shape, item, backward=size.backward),
        "limit": {n: f"matmul {size.dtype if n in attention.SCORES else fused}" for n in there},
    }


def _mode(given: Problem) -> AbstractContextManager:
    """Without autograd where no gradient is wanted; that may change PyTorch's choice."""
    return torch.inference_mode() if given.grad is None else nullcontext()


def _refused(op: str, where: torch.device, refused: Mapping[str, str]) -> pd.DataFrame:
    told = {"op": op, "role": "variant", "quantity": "step_wall", "device": where.type}
    return pd.DataFrame(
        [told | {"variant": name, "note": refused[name]} for name in WAYS if name in refused]
    )


def _without_ratios(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a cell that has no `manual`: their ratios would be over something else."""
    others = table.role == "variant"
    columns = [name for name in ("ratio", "ratio_low", "ratio_high", "verdict") if name in table]
    table[columns] = table[columns].astype(object)
    table.loc[others, [*columns, "control"]] = None
    return table


def chosen_backend(
    table: pd.DataFrame, given: Problem, ordinary: Mapping[str, bool]
) -> tuple[str | None, str | None]:
    """The backend that `default` ran, and how that is known: the one that launched the same kernels
    in the same order, or else, where not exactly one did, the one that PyTorch names."""
    if "default" not in set(table.variant):
        return None, None
    listed = dict(zip(table.variant, table.kernels, strict=True)) if "kernels" in table else {}
    ran = listed.get("default")
    same = [name for name in BACKENDS if ran and listed.get(name) == ran]
    if len(same) == 1:
        return same[0], "its kernels"
    asked = (given.q, given.k, given.v, None, 0.0, given.causal)
    named = attention.choice(lambda: torch._fused_sdp_choice(*asked), ordinary)
    return named, "PyTorch's word" if named else None


@contextmanager
def _reasons_told() -> Iterator[None]:
    """Let PyTorch say why a backend does not run. One more backend, for devices of other makers,
    comes last: where no other fits, it fails with "Invalid backend" before the reasons are told."""
    asked = getattr(torch._C, "_get_overrideable_sdp_enabled", None)
    switch = getattr(torch._C, "_set_sdp_use_overrideable", None)
    if not asked or not switch:
        yield
        return
    before = asked()
    switch(False)
    try:
        yield
    finally:
        switch(before)


@experiment(
    "attention.choices", page="axioms/attention.md", command="attention-choices", timeout_s=200
)
def choices(
    device: str = "cuda:0",
    dtype: Literal["bf16", "fp16", "fp32"] = "bf16",
    heads: Count = 8,
    head_width: Length = 64,
    sequence: Length = 1024,
) -> pd.DataFrame:
    """See which backend PyTorch chooses for other forms of the call, and which could run it.

    Args:
        dtype: Number format of q, k and v.
        heads: Heads H of the one sequence.
        sequence: Tokens N.

    Returns:
        One row per form of the call, without times; `plain` is the one that the others change in
        one thing.
    """
    where = formats.torch_device(device)
    sizes = dtype, heads, head_width, sequence
    on, rows = memory.capacity(where), []
    with formats.products_in(dtype), attention.switches_kept() as ordinary:
        for required in requirements.choices(on, *sizes):
            row = requirements.form(required.op, dtype, head_width, sequence)
            row |= {"variant": required.op, "chosen": None}
            if why := required.why_not(on):
                rows.append(row | dict.fromkeys((*BACKENDS, "note"), why))
                continue
            call, ask = attention.form(row, heads, sequence, where)
            row["chosen"] = attention.choice(ask, ordinary)
            for name in BACKENDS:
                attention.throw({other: other == name for other in BACKENDS})
                with _reasons_told():
                    row[name] = attention.refusal(name, call, where) or "runs"
            rows.append(row)
    return pd.DataFrame(rows)
