"""The autograd graph of one transformer layer: its nodes, what they hold, and what they cost."""

from typing import Annotated, Literal

import pandas as pd

from anatomy.chapters.autograd import census as autograd_census
from anatomy.chapters.autograd import compiled as autograd_compiled
from anatomy.chapters.autograd import costs as autograd_costs
from anatomy.chapters.autograd import nodes as autograd_nodes
from anatomy.chapters.autograd.blocks import Size
from anatomy.machine import host
from anatomy.numerics import formats
from anatomy.parts import attention, demands
from anatomy.record.bounds import Between, Count, Length, Seconds
from anatomy.record.declare import experiment


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
    size = Size(batch, seq, dmodel, nhead, dtype)
    host.require_bytes(where, size.bytes, f"a layer of width {dmodel} and its activations")
    with formats.products_in("fp32"), attention.switches_kept() as ordinary:
        rows = autograd_census.rows(size, ordinary, where)
    return _noted(rows)


def _noted(rows: list[dict]) -> pd.DataFrame:
    """Rows as a table with a column `note` in any case, whose counts stay whole numbers."""
    table = pd.DataFrame(rows, dtype=object)
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
    demands.positive(repeats=repeats)
    where = formats.torch_device(device)
    size = Size(batch, seq, dmodel, nhead, dtype)
    host.require_bytes(where, size.bytes, f"a layer of width {dmodel} and its activations")
    with formats.products_in("fp32"), attention.switches_kept() as ordinary:
        rows = autograd_nodes.rows(size, ordinary, where, repeats)
    return _noted(rows)


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
    demands.positive(longest=longest, side=side, scale=scale, iters=iters, budget_s=budget_s)
    where = formats.torch_device(device)
    size = Size(batch, longest, dmodel, nhead, dtype)
    settings = autograd_costs.Settings(where, iters, budget_s)
    tables = []
    with formats.products_in("fp32"), attention.switches_kept() as ordinary:
        tables += autograd_costs.over_length(size, ordinary, settings, 2 if full else 4)
        tables.append(autograd_costs.chain_of_views(settings, scale))
        tables += autograd_costs.single_operations(settings, dtype, side)
    return autograd_costs.joined(tables)


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
    size = Size(batch, seq, dmodel, nhead, dtype)
    host.require_bytes(where, size.exact_bytes // 2, f"a layer of {seq} tokens with its scores")
    with formats.products_in("fp32"):
        return _noted(autograd_compiled.graphs(size, where))


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
    demands.positive(iters=iters, budget_s=budget_s)
    where = formats.torch_device(device)
    size = Size(batch, seq, dmodel, nhead, dtype)
    host.require_bytes(where, size.exact_bytes, f"a layer of {seq} tokens in float64")
    settings = autograd_costs.Settings(where, iters, budget_s)
    with formats.products_in("fp32"):
        return autograd_compiled.steps(size, settings, backend)
