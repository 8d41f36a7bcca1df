"""Chains of layers with graph breaks between them, and what one break adds to a step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.compilation import requirements
from anatomy.chapters.compilation.requirements import (
    CHAINS,
    ELEMENTWISE,
    LAYERS,
    elements,
    side,
)
from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.measure.stopwatch import Stopwatch, compilations
from anatomy.numerics.agreement import ALLOWED
from anatomy.parts import grid, memory, models
from anatomy.parts.compiled import cost_per_break
from anatomy.table import formulas

Layer = Callable[[Tensor, Tensor], Tensor]

BREAKS = (0, 1, 4, 16)
EAGER, NONE = "eager", "0 breaks"
SETTLE_S = 1.0  # of settling, or the budget if that is less; all variants have run before
ALLOWED_CHAIN = 2**-5  # 17 roundings to 16 bits, errors of 2**-9 that add up as random ones do


@dataclass(frozen=True)
class Chain:
    """What a chain is made of."""

    name: str  # as the table has it in the column `chain`
    x: Tensor  # its input
    weights: Sequence[Tensor]  # one for each layer
    layer: Layer  # (input, weight) to the next layer's input
    flops: int | None  # of one step
    bytes: int | None  # the least that one step moves
    allowed: float  # relative error against the chain in float64


def chain(name: str, where: torch.device, scale: float) -> Chain:
    """The chain of that name, one of `requirements.CHAINS` or `ELEMENTWISE`."""
    if name == ELEMENTWISE:
        n = elements(scale)
        weights = [0.9 + 0.2 * torch.rand(1, device=where) for _ in range(LAYERS)]
        moved = formulas.pointwise_bytes(n, 4)
        allowed = 4 * ALLOWED[torch.float32]
        x = torch.randn(n, device=where)
        return Chain(name, x, weights, elementwise_layer, None, moved, allowed)
    kind, n = models.half(where), side(CHAINS[name], scale)
    x = torch.randn(n, n, device=where).to(kind)
    # Of columns whose length is about 1: a layer leaves its input as large as it was.
    weights = [(torch.randn(n, n, device=where) / n**0.5).to(kind) for _ in range(LAYERS)]
    flops = LAYERS * formulas.matmul_flops(n, n, n)
    return Chain(name, x, weights, product_layer, flops, None, ALLOWED_CHAIN)


def product_layer(x: Tensor, weight: Tensor) -> Tensor:
    """A product, and a function of its elements that a compiler may fuse with nothing else."""
    return torch.tanh(x @ weight)


def elementwise_layer(x: Tensor, weight: Tensor) -> Tensor:
    """Two operations for each element; all layers could be one kernel."""
    return torch.relu(x) * weight + x


def written_out(layer: Layer, breaks: int) -> Callable[[Tensor, Sequence[Tensor]], Tensor]:
    """The chain as straight-line code, with so many graph breaks spread evenly between layers. It
    is generated, for torch.compile gives up on a function whose graph breaks inside a loop; each
    chain has code of its own, so that none fills another one's share of the recompile limit."""
    import torch._dynamo  # takes seconds, which listing experiments should not

    after = {round((i + 1) * LAYERS / (breaks + 1)) for i in range(breaks)}
    lines = ["def chain(x, weights):"]
    for i in range(LAYERS):
        lines += ["    graph_break()"] if i in after else []
        lines.append(f"    x = layer(x, weights[{i}])")
    scope = {"layer": layer, "graph_break": torch._dynamo.graph_break}
    source = "\n".join([*lines, "    return x"])
    exec(compile(source, f"<chain with {breaks} breaks>", "exec"), scope)
    return scope["chain"]


def measure(
    where: torch.device, backend: str, scale: float, iters: int, budget_s: float
) -> pd.DataFrame:
    """The table of all chains; one that can't be measured here is a row that says why."""
    watch = stopwatch_for(where)

    def compared(cell: grid.Cell) -> pd.DataFrame:
        return _measured(chain(cell["op"], where, scale), watch, backend, iters, budget_s)

    with torch.no_grad():
        return grid.measure_cells(
            ({"op": name, "chain": name} for name in (*CHAINS, ELEMENTWISE)),
            lambda cell: _measured(
                chain(cell["op"], where, scale), watch, backend, iters, budget_s
            ),
            variants=(NONE, *(_name(breaks) for breaks in BREAKS[1:]), EAGER),
            quantity="step_wall",
            where=where,
            required=requirements.breaks(memory.capacity(where), scale),
            foreseen=(RuntimeError,),
        )


def _measured(chain: Chain, watch: Stopwatch, backend, iters, budget_s) -> pd.DataFrame:
    x, weights = chain.x, chain.weights
    calls, graphs = {}, {}
    for breaks in BREAKS:
        name = _name(breaks)
        run = torch.compile(written_out(chain.layer, breaks), backend=backend, dynamic=False)
        calls[name] = lambda run=run: run(x, weights)
        before = compilations()
        watch.wall([calls[name]])
        graphs[name] = compilations() - before
    plain = written_out(chain.layer, 0)
    calls[EAGER] = lambda: plain(x, weights)

    def exact() -> Tensor:
        return plain(x.double(), [weight.double() for weight in weights])

    table = compare(
        calls,
        control=NONE,
        reference=exact,
        allowed=chain.allowed,
        quantity="step_wall",
        op=chain.name,
        flops=chain.flops,
        bytes=chain.bytes,
        limit=None if chain.flops else "copy",
        device=watch.device,
        iters=iters,
        budget_s=budget_s,
        settle_cap_s=min(SETTLE_S, budget_s),
        profile=False,
    ).table
    origin = [name.removesuffix(" (again)") for name in table.variant]
    lengths = {_name(breaks): breaks for breaks in BREAKS}
    table["chain"] = chain.name
    table["breaks"] = pd.Series([lengths.get(name) for name in origin], dtype=object)
    table["graphs"] = pd.Series([graphs.get(name) for name in origin], dtype=object)
    return table.assign(**_slope_columns(table))


def _name(breaks: int) -> str:
    return f"{breaks} break{'s' * (breaks != 1)}"


def _slope_columns(table: pd.DataFrame) -> dict[str, pd.Series]:
    used = table[table.breaks.notna() & (table.role != "again")]
    slope = cost_per_break([int(n) for n in used.breaks], list(used.blocks_s))
    ends = {"break_s": slope.median, "break_low_s": slope.low, "break_high_s": slope.high}
    last = table.variant == _name(max(BREAKS))
    return {
        column: pd.Series([value if here else None for here in last], dtype=object)
        for column, value in ends.items()
    }
