"""Times around the graph: attention written out and fused, chains of views, single operations."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.autograd import blocks
from anatomy.chapters.autograd.blocks import CORE, MANUAL, Size
from anatomy.chapters.autograd.requirements import LAYER_LONGEST, SINGLE, lengths
from anatomy.comparison import compare
from anatomy.numerics import formats
from anatomy.parts import attention, grid, memory
from anatomy.parts.attention import ALLOWED, WAYS
from anatomy.parts.compiled import cost_per_break
from anatomy.record.requirements import Requirement
from anatomy.table import formulas

LONG_BUDGETS = 4  # times the budget beyond it: blocks take so long there that few would fit
VIEWS = (0, 32, 128, 512)  # views in the chains
CHAIN_ELEMENTS = 64  # a side of the chain's tensor: its arithmetic takes no time beside the views
SETTLE_CAP_S = 0.5
# How far a layer's output or gradient may stray from the float64 result: rounded some ten times
# on the way there, and as often on the way back.
ALLOWED_LAYER = {"bf16": 2**-5, "fp16": 2**-8, "fp32": 2**-12}
CONTROL = "view"


@dataclass(frozen=True)
class Settings:
    """How everything here is timed."""

    where: torch.device
    iters: int  # timed samples of each variant, at the least
    budget_s: float  # seconds of timed blocks for each comparison

    def compare(self, calls: Mapping[str, Callable], **more: Any) -> pd.DataFrame:
        """The table of one comparison, in step_wall."""
        return compare(
            calls,
            quantity="step_wall",
            device=self.where,
            iters=self.iters,
            budget_s=self.budget_s,
            settle_cap_s=min(SETTLE_CAP_S, self.budget_s),
            **more,
        ).table


def joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """All comparisons in one table."""
    return grid.joined(tables, ("peak_bytes", "views", "view_s"))


def over_length(
    size: Size,
    ordinary: Mapping[str, bool],
    settings: Settings,
    full: bool,
    required: Iterable[Requirement] = (),
) -> pd.DataFrame:
    """Attention alone and in its layer, for that length and fractions of it."""
    patient = replace(settings, budget_s=LONG_BUDGETS * settings.budget_s)

    def measure(cell: grid.Cell) -> pd.DataFrame:
        length = cell["sequence"]
        this = Size(size.batch, length, size.width, size.heads, size.dtype)
        each = _core if cell["scope"] == CORE else _layer
        return each(this, ordinary, patient if length > LAYER_LONGEST else settings, cell["op"])

    return grid.measure_cells(
        (
            {"op": op, "scope": scope, "sequence": length}
            for op, scope, length in lengths(size.sequence, full)
        ),
        measure,
        variants=WAYS,
        quantity="step_wall",
        where=settings.where,
        required=required,
        foreseen=(RuntimeError,),
    )


def _refused(op: str, why: Mapping[str, str]) -> pd.DataFrame:
    told = {"op": op, "role": "variant", "quantity": "step_wall"}
    return pd.DataFrame([told | {"variant": name, "note": note} for name, note in why.items()])


def _core(size: Size, ordinary: Mapping[str, bool], settings: Settings, op: str) -> pd.DataFrame:
    """Attention alone, forward and backward, all heads of the batch side by side."""
    where = settings.where
    heads, width = size.batch * size.heads, size.width // size.heads
    given_size = attention.Size(heads, size.sequence, width, size.dtype, True, True)
    refused = attention.too_large(given_size, where)
    if len(refused) == len(WAYS):
        return _refused(op, refused)
    given = attention.problem(given_size, where)
    expected = attention.exact(given)
    calls = attention.calls(given, ordinary)
    for name in WAYS:
        if name not in refused and (why := attention.why_not(name, calls[name], expected)):
            refused[name] = why
    item = formats.itemsize(size.dtype)
    return timed(
        {name: call for name, call in calls.items() if name not in refused},
        refused,
        settings,
        op,
        reference=lambda: expected,
        allowed=ALLOWED[given.q.dtype],
        flops=formulas.attention_flops(heads, size.sequence, width, backward=True, causal=True),
        bytes=formulas.attention_bytes(heads, size.sequence, width, item, backward=True),
        limit=f"matmul {size.dtype}",
    )


def _layer(size: Size, ordinary: Mapping[str, bool], settings: Settings, op: str) -> pd.DataFrame:
    where = settings.where
    ways = blocks.attends(size.sequence, ordinary)
    refused = blocks.refused(size, ways, where)
    given = problem(size, where)
    calls = {name: given.step(way) for name, way in ways.items() if name not in refused}
    table = timed(
        calls,
        refused,
        settings,
        op,
        reference=lambda: given.exact,
        allowed=ALLOWED_LAYER[size.dtype],
    )
    # Their names are most of the recording; how many there are and how long they run is kept, and
    # `autograd_graph.compiled` has the names for a layer.
    return table.assign(kernels=None)


@dataclass(frozen=True)
class Problem:
    """One step of a layer, to be run in several ways."""

    size: Size
    x: Tensor  # the layer's input, which wants a gradient
    grad: Tensor  # of its output
    exact: tuple[Tensor, ...]  # output and gradients in float64, with attention written out

    def step(self, way: torch.nn.Module) -> Callable[[], tuple[Tensor, ...]]:
        """The step with one way to attend."""
        model = blocks.layer(self.size, way, self.x.device)
        return blocks.step(model, self.x, self.grad)


def problem(size: Size, where: torch.device) -> Problem:
    """A random input, a random gradient, and what they lead to."""
    x = blocks.drawn(size, where)
    grad = torch.randn_like(x)
    plain = blocks.Manual(size.sequence)
    wide = blocks.layer(size, plain, where).double()
    exact = blocks.step(wide, x.detach().double().requires_grad_(), grad.double())()
    return Problem(size, x, grad, exact)


def timed(
    calls: dict[str, Callable], refused: dict[str, str], settings: Settings, op: str, **more: Any
) -> pd.DataFrame:
    """A comparison with what each call needs of memory, and rows that say why others can't run."""
    if not calls:
        return _refused(op, refused)
    for call in calls.values():
        call()
    peaks = {n: memory.columns(memory.peak(call, settings.where)) for n, call in calls.items()}
    table = settings.compare(calls, op=op, **more)
    origin = table.variant.str.removesuffix(" (again)")
    for column in memory.columns(None):
        values = [peaks[name][column] for name in origin]
        table[column] = pd.Series(values, table.index, dtype=object)
    if MANUAL in refused:  # ratios would be over something else
        columns = ["ratio", "ratio_low", "ratio_high", "verdict", "control"]
        table[columns] = table[columns].astype(object)
        table.loc[table.role == "variant", columns] = None
    return pd.concat([table, _refused(op, refused)], ignore_index=True) if refused else table


def chain_of_views(settings: Settings, scale: float) -> pd.DataFrame:
    """The backward pass through chains of transposes, and what one of them adds."""
    chains = {f"{n} views": n for n in (2 * int(v * scale / 2) for v in VIEWS)}
    leaf = torch.randn(CHAIN_ELEMENTS, CHAIN_ELEMENTS, device=settings.where).requires_grad_()
    grad = torch.randn_like(leaf)

    def backward(views: int) -> Callable[[], Tensor]:
        y = leaf * 2
        for _ in range(views):
            y = y.t()
        return lambda: torch.autograd.grad(y, leaf, grad, retain_graph=True)[0]

    exact = 2 * grad.double()
    calls = {name: backward(views) for name, views in chains.items()}
    table = settings.compare(calls, op="views", reference=lambda: exact)
    table["views"] = table.variant.str.removesuffix(" (again)").map(chains)
    used = table[table.role != "again"]
    slope = cost_per_break(list(used.views), list(used.blocks_s))
    ends = {"view_s": slope.median, "view_low_s": slope.low, "view_high_s": slope.high}
    last = table.views == max(chains.values())
    for column, value in ends.items():
        table[column] = pd.Series([value if here else None for here in last], dtype=object)
    return table


def shape_operations(x: Tensor) -> dict[str, Callable[[Tensor], Tensor | tuple[Tensor, ...]]]:
    """Operations that change no number of a square matrix, the plainest first."""
    n = x.shape[0]
    return {
        CONTROL: lambda a: a.view(-1),
        "transpose": lambda a: a.t(),
        "unsqueeze": lambda a: a.unsqueeze(0),
        "expand to the same": lambda a: a.expand(n, n),
        "expand of a column": lambda a: a[:, :1].expand(n, n),
        "slice": lambda a: a[:, : n // 2],
        "select": lambda a: a[0],
        "unbind": lambda a: a.view(2, -1).unbind(),
        "clone": lambda a: a.clone(),
        "contiguous of a transpose": lambda a: a.t().contiguous(),
        "reshape of a transpose": lambda a: a.t().reshape(-1),
    }


def single_operation(settings: Settings, op: str, dtype: str, side: int) -> pd.DataFrame:
    """One shape operation at a time beside a view, in one direction: an `op` of `SINGLE`."""
    x = torch.randn(side, side, device=settings.where).to(formats.storage(dtype)).requires_grad_()
    calls, exact = {}, {}
    for name, operation in shape_operations(x).items():
        wide = x.detach().double().requires_grad_()
        if op == SINGLE[0]:
            calls[name] = lambda operation=operation: _detached(operation(x))
            exact[name] = lambda operation=operation, wide=wide: _detached(operation(wide))
            continue
        out = operation(x)
        grads = [torch.randn_like(each) for each in _several(out)]
        calls[name] = _back(out, x, grads)
        exact[name] = _back(operation(wide), wide, [each.double() for each in grads])
    table = settings.compare(calls, op=op, reference=exact)
    return table.assign(operation=table.variant.str.removesuffix(" (again)"))


def _several(out: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (out,) if isinstance(out, Tensor) else out


def _detached(out: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(each.detach() for each in _several(out))


def _back(out: Tensor | tuple[Tensor, ...], x: Tensor, grads: list[Tensor]) -> Callable[[], Tensor]:
    found = _several(out)
    return lambda: torch.autograd.grad(found, x, grads, retain_graph=True)[0]
