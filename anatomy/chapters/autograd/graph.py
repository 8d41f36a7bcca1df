"""The autograd graph of one transformer layer: its nodes, what they hold, and what they cost."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Literal

import pandas as pd
import torch

from anatomy.chapters.autograd import blocks, requirements
from anatomy.chapters.autograd import census as autograd_census
from anatomy.chapters.autograd import compiled as autograd_compiled
from anatomy.chapters.autograd import costs as autograd_costs
from anatomy.chapters.autograd import nodes as autograd_nodes
from anatomy.chapters.autograd.blocks import Size
from anatomy.numerics import formats
from anatomy.parts import attention, grid, memory
from anatomy.record.bounds import Between, Count, Length, Seconds
from anatomy.record.declare import experiment
from anatomy.record.requirements import Requirement


@experiment(
    "autograd_graph.census",
    page="benchmarks/c03_autograd_inspection.md",
    command="c01 autograd-inspect",
    timeout_s=200,
    files=("snippets/fused_attention_check.py",),
)
def census(
    device: str = "cuda:0",
    dtype: Literal["fp16", "bf16", "fp32"] = "fp16",
    batch: Length = 2,
    seq: Length = 128,
    dmodel: Length = 768,
    nhead: Count = 12,
) -> pd.DataFrame:
    """Walk the backward graph of a transformer layer, with attention written out and fused.

    Returns:
        Rows of several ops, without times. `graph ...`: the nodes of a layer or a part of it, for
        each way to attend. `gradients WAY`: each gradient against float64. `sizes`: the layer over
        batch and sequence. `fused node`: which node stands for attention. `operations`: nodes that
        a line of code adds. `check`: what the page's own check finds.
    """
    where = formats.torch_device(device)
    size, given = Size(batch, seq, dmodel, nhead, dtype), (dtype, batch, seq, dmodel, nhead)
    required = requirements.graphs(memory.capacity(where), *given)
    with formats.products_in("fp32"), attention.switches_kept() as ordinary:
        return _rows(partial(autograd_census.rows, size, ordinary, where), "graph", required, where)


def _rows(
    look: Callable[[], list[dict]], op: str, required: Iterable[Requirement], where: torch.device
) -> pd.DataFrame:
    """What is found as a table with a column `note` in any case, whose counts stay whole numbers;
    or a row for each way to attend that says why nothing is."""
    why = "; ".join(filter(None, (each.why_not(memory.capacity(where)) for each in required)))
    rows = None
    if not why:
        rows, why = grid.attempt(look, where)
    names = (blocks.MANUAL, blocks.DEFAULT)
    refused = [{"op": op, "variant": name, "attention": name, "note": why} for name in names]
    table = pd.DataFrame(refused if rows is None else rows, dtype=object)
    return table if "note" in table else table.assign(note=None)


@experiment(
    "autograd_graph.nodes",
    page="benchmarks/autograd_inspection_deep_dive.md",
    command="autograd-nodes",
    timeout_s=200,
)
def nodes(
    device: str = "cuda:0",
    dtype: Literal["fp16", "bf16", "fp32"] = "fp16",
    batch: Length = 2,
    seq: Length = 128,
    dmodel: Length = 768,
    nhead: Count = 12,
    repeats: Count = 20,
) -> pd.DataFrame:
    """See what every node of a transformer layer's backward graph holds, launches and takes.

    Args:
        repeats: Backward passes that are profiled.

    Returns:
        For each graph (`op`: `manual`, `default`) one row per node, with the kernels and the median
        times of its backward function; and rows of op `memory`: what the layer holds for the
        backward pass.
    """
    where = formats.torch_device(device)
    size, given = Size(batch, seq, dmodel, nhead, dtype), (dtype, batch, seq, dmodel, nhead)
    required = requirements.graphs(memory.capacity(where), *given)
    with formats.products_in("fp32"), attention.switches_kept() as ordinary:
        look = partial(autograd_nodes.rows, size, ordinary, where, repeats)
        return _rows(look, "memory", required, where)


@experiment(
    "autograd_graph.costs",
    page="benchmarks/c03_autograd_inspection.md",
    command="autograd-costs",
    timeout_s=400,
)
def costs(
    device: str = "cuda:0",
    dtype: Literal["fp16", "bf16", "fp32"] = "fp16",
    batch: Length = 2,
    dmodel: Length = 768,
    nhead: Count = 12,
    longest: Length = 8192,
    side: Length = 4096,
    scale: Annotated[float, Between(0.1, 16)] = 1.0,  # the chains differ in length
    iters: Count = 12,
    budget_s: Seconds = 1.5,
    full: bool = False,
) -> pd.DataFrame:
    """Time fused attention against attention written out, and what a view costs on the way back.

    Args:
        longest: Longest sequence T; the others are fourths of it, down to 128.
        side: Side of the square matrix that single shape operations are tried on.
        scale: Factor on the number of views in a chain.

    Returns:
        Comparisons in step_wall, because what a node costs is mostly the host's work. `attention
        T=...` and `layer T=...`: forward and backward pass, written out (control) and by each
        backend. `views`: back through chains of views; the longest has `view_s`. `forward of one
        operation`, and `backward`: single operations on a matrix, beside a view.
    """
    where = formats.torch_device(device)
    size = Size(batch, longest, dmodel, nhead, dtype)
    settings = autograd_costs.Settings(where, iters, budget_s)
    sizes = dtype, batch, dmodel, nhead, longest, side, full
    required = list(requirements.costs(memory.capacity(where), *sizes))
    measure = {"views": lambda: autograd_costs.chain_of_views(settings, scale)}
    for op in requirements.SINGLE:
        measure[op] = partial(autograd_costs.single_operation, settings, op, dtype, side)
    with formats.products_in("fp32"), attention.switches_kept() as ordinary:
        long = autograd_costs.over_length(size, ordinary, settings, full, required)
        short = grid.measure_cells(
            [{"op": op} for op in measure],
            lambda cell: measure[cell["op"]](),
            variants=lambda cell: [cell["op"]],
            quantity="step_wall",
            where=where,
            required=required,
            foreseen=(RuntimeError,),
        )
    return autograd_costs.joined([long, short])


@experiment(
    "autograd_graph.traced",
    page="benchmarks/autograd_inspection_deep_dive.md",
    command="autograd-traced",
    timeout_s=200,
)
def traced(
    device: str = "cuda:0",
    dtype: Literal["fp16", "bf16", "fp32"] = "fp16",
    batch: Length = 2,
    seq: Length = 128,
    dmodel: Length = 768,
    nhead: Count = 12,
) -> pd.DataFrame:
    """See the backward graph that AOTAutograd hands to a compiler, beside autograd's own.

    Returns:
        A row per way to attend and `stage`: `autograd`, without a compiler; `traced`, cut out of a
        joint graph where the forward operations saved something; `traced, recomputing`, cut where
        least must be kept.
    """
    where = formats.torch_device(device)
    size, given = Size(batch, seq, dmodel, nhead, dtype), (dtype, batch, seq, dmodel, nhead)
    required = requirements.steps(memory.capacity(where), *given)
    with formats.products_in("fp32"):
        return _rows(partial(autograd_compiled.graphs, size, where), "graph", required, where)


@experiment(
    "autograd_graph.compiled",
    page="benchmarks/autograd_inspection_deep_dive.md",
    command="autograd-compiled",
    timeout_s=400,
)
def compiled(
    device: str = "cuda:0",
    dtype: Literal["fp16", "bf16", "fp32"] = "fp16",
    batch: Length = 2,
    seq: Length = 128,
    dmodel: Length = 768,
    nhead: Count = 12,
    backend: Literal["inductor", "aot_eager"] = "inductor",
    iters: Count = 12,
    budget_s: Seconds = 3.0,
) -> pd.DataFrame:
    """See what compiling makes of a training step of the layer, with attention both ways.

    Args:
        backend: What torch.compile hands its graphs to; aot_eager runs them as they are, for tests.

    Returns:
        A comparison `step`, in step_wall, of forward and backward pass: `manual`, the control, and
        `default`, eager and compiled; the control of `default, compiled` is `default`. Rows of op
        `first call` hold what compiling took, one sample each.
    """
    where = formats.torch_device(device)
    size, given = Size(batch, seq, dmodel, nhead, dtype), (dtype, batch, seq, dmodel, nhead)
    settings = autograd_costs.Settings(where, iters, budget_s)
    with formats.products_in("fp32"):
        return grid.measure_cells(
            [{"op": "step"}],
            lambda cell: autograd_compiled.steps(size, settings, backend),
            variants=autograd_compiled.WAYS,
            quantity="step_wall",
            where=where,
            required=requirements.steps(memory.capacity(where), *given),
        )
