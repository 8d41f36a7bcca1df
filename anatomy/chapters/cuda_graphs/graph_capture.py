"""CUDA graphs: how short kernels must be for replaying a recorded list to beat launching them. What
a graph saves is the host's part of each launch, which the GPU's own clock does not see."""

import functools
import gc
from collections.abc import Iterator, Sequence
from math import isqrt

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.cuda_graphs import requirements
from anatomy.chapters.cuda_graphs.requirements import BATCHES
from anatomy.numerics import formats
from anatomy.parts import demands, grid, memory, models
from anatomy.parts.graphs import (
    COPIED,
    EAGER,
    GRAPH,
    Call,
    capture,
    compared,
    held_before,
    warm_up,
    why_not,
)
from anatomy.record.bounds import Count, Length, Scale
from anatomy.record.declare import experiment
from anatomy.table import formulas
from anatomy.table.errors import DeviceError

FACTOR = 0.9  # of each link of a pointwise chain; 30 of them stay far from the least bf16
ALLOWED_CHAIN = 2**-5  # each link rounds to bf16, which 20 of them do to about 2**-7
ALLOWED_STEP = 2**-6  # of an answer from the eager one: attention's backward adds up in any order
WAYS = ("own pools", "one pool")
# Quantities of every cell, and of the smallest and the largest: what a graph saves is the host's,
# and a clock that hides the host does not see it.
WALL = ("step_wall",)
ALL = ("step_wall", "host_enqueue", "gpu_warm")
# Columns of the tables that `compare` does not have.
COSTS = ("kernel_s", "replays", "pool_bytes", "peak_bytes", "reserved_bytes")


@experiment("graph_capture.map", page="axioms/cuda-graphs.md", command="graph-capture")
def map(
    device: str = "cuda:0",
    links: Count = 20,
    scale: Scale = 1.0,
    iters: Count = 12,
    full: bool = False,
) -> pd.DataFrame:
    """Find out how long a kernel may be for a CUDA graph of it to pay.

    Args:
        device: Where to run, such as cuda:0; a CPU has no CUDA graphs, and the rows say so.
        links: Kernels in a chain.

    Returns:
        One comparison per cell, its `op` such as `pointwise 1048576` or `products 256`; the
        smallest and the largest pointwise cell also have `host_enqueue` and `gpu_warm`.
    """
    where = formats.torch_device(device)
    cells = requirements.chain_cells(links, scale, full)
    points = [cell["op"] for cell in cells if cell["work"] == "pointwise"]

    def quantities(cell: grid.Cell) -> tuple[str, ...]:
        return ALL if cell["op"] in (points[0], points[-1]) else WALL

    def measure(cell: grid.Cell) -> pd.DataFrame:
        return _chain(cell, links, where, quantities(cell), iters)

    required = requirements.map(memory.capacity(where), links, scale, full)
    return _measured(cells, measure, quantities, where, required)


def _measured(cells, measure, quantity, where, required) -> pd.DataFrame:
    """The table of all cells; of what is reserved only a cell's own counts."""

    def alone(cell: grid.Cell) -> pd.DataFrame:
        if where.type != "cuda":
            raise DeviceError(why_not(where))
        before = held_before(where)  # it would hide in the stopwatch's buffers
        table = measure(cell)
        return table.assign(reserved_bytes=pd.to_numeric(table.reserved_bytes) - before)

    return grid.measure_cells(
        cells,
        alone,
        variants=(EAGER, GRAPH, COPIED),
        quantity=quantity,
        where=where,
        required=required,
        foreseen=(RuntimeError,),
        promised=COSTS,
    )


def _chain(told, links, where, quantities, iters) -> pd.DataFrame:
    """One chain, eager and captured. Its links allocate their results, as ordinary code does."""
    size = told["elements"]
    if told["work"] == "pointwise":
        x = torch.randn(size, dtype=torch.bfloat16, device=where)

        def link(y: Tensor) -> Tensor:
            return y * FACTOR

        def exact() -> Tensor:
            return x.double() * FACTOR**links

        flops = None
    else:
        size = isqrt(size)
        x = torch.randn(size, size, dtype=torch.bfloat16, device=where)
        # Divided by the root of the side, it leaves the size of what it multiplies as it is.
        factor = torch.randn(size, size, dtype=torch.bfloat16, device=where) / size**0.5

        def link(y: Tensor) -> Tensor:
            return y @ factor

        def exact() -> Tensor:
            y, wide = x.double(), factor.double()
            for _ in range(links):
                y = y @ wide
            return y

        flops = links * formulas.matmul_flops(size, size, size)

    def over(start: Tensor) -> Call:
        def call() -> Tensor:
            y = start
            for _ in range(links):
                y = link(y)
            return y

        return call

    with torch.inference_mode():
        return compared(
            over,
            x,
            where,
            told,
            quantities,
            reference=exact,
            allowed=ALLOWED_CHAIN,
            iters=iters,
            flops=flops,
        )


@experiment(
    "graph_capture.training", page="axioms/cuda-graphs.md", command="graph-capture-training"
)
def training(
    device: str = "cuda:0",
    layers: Count = 2,
    sequence: Length = 256,
    scale: Scale = 1.0,
    iters: Count = 12,
    full: bool = False,
) -> pd.DataFrame:
    """Capture the forward and backward pass of a transformer as one graph.

    Args:
        device: Where to run, such as cuda:0; a CPU has no CUDA graphs, and the rows say so.
        sequence: Tokens T of one sequence; attention is within it.
        scale: Factor on widths and tokens; 1 for a GPU.

    Returns:
        As `map`, its `op` such as `training C=512 tokens=1024`. What is timed is the loss and all
        gradients in bf16; the optimizer is not in it.
    """
    where = formats.torch_device(device)
    demands.weights(models.HEAD_WIDTH, layers)
    sizes = layers, sequence, scale, full
    return _measured(
        requirements.step_cells(*sizes),
        functools.partial(_step, sequence=sequence, where=where, iters=iters),
        WALL,
        where,
        requirements.training(memory.capacity(where), *sizes),
    )


def _step(told, sequence, where, iters) -> pd.DataFrame:
    width, tokens, layers = (told[name] for name in ("width", "tokens", "layers"))
    model = models.transformer(width, layers, where, torch.bfloat16)
    parameters = list(model.parameters())
    x = torch.randn(tokens // sequence, sequence, width, dtype=torch.bfloat16, device=where)
    return compared(
        lambda start: models.gradients_of(model, parameters, start),
        x,
        where,
        told,
        WALL,
        allowed=ALLOWED_STEP,
        iters=iters,
        flops=3 * layers * formulas.layer_flops(width, tokens, sequence),  # backward: twice
        limit="matmul bf16",
    )


@experiment(
    "graph_capture.pools",
    page="axioms/cuda-graphs.md",
    command="graph-capture-pools",
    timeout_s=200,
)
def pools(
    device: str = "cuda:0", width: Length = 1024, layers: Count = 2, sequence: Length = 256
) -> pd.DataFrame:
    """Count what one to four graphs hold, each in a pool of its own or all in one.

    Args:
        device: Where to run, such as cuda:0; a CPU has no CUDA graphs, and the rows say so.
        width: Width C of the transformer whose forward pass is captured, in bf16.
        layers: Its layers.
        sequence: Tokens T of one sequence; each graph has another batch of them.

    Returns:
        One row per number of `graphs` and `way` (`eager`, `own pools`, `one pool`), without times.
        Results are counted in every row, the model and the inputs in none.
    """
    where = formats.torch_device(device)
    demands.width(width)
    (required,) = requirements.pools(memory.capacity(where), width, layers, sequence)
    why = why_not(where) if where.type != "cuda" else required.why_not(memory.capacity(where))
    if not why:
        counted = functools.partial(_counted, width, layers, sequence, where)
        rows, why = grid.attempt(counted, where, (RuntimeError,))
    if why:
        counts = range(1, len(BATCHES) + 1)
        rows = [_pool_row(n, way, note=why) for n in counts for way in WAYS]
        return pd.DataFrame(rows).assign(pool_bytes=None, output_bytes=None)
    return pd.DataFrame(rows)


def _counted(width: int, layers: int, sequence: int, where: torch.device) -> list[dict]:
    """Rows of what is held, on a GPU."""
    rows = []
    model = models.transformer(width, layers, where, torch.bfloat16).eval()
    with torch.inference_mode():
        inputs = [
            torch.randn(batch, sequence, width, dtype=torch.bfloat16, device=where)
            for batch in BATCHES
        ]
        for x in inputs:
            model(x)
        for n in range(1, len(inputs) + 1):
            for way, held, outputs in _held(model, inputs[:n], where):
                rows.append(_pool_row(n, way, pool_bytes=held, output_bytes=outputs))
    return rows


def _held(model, inputs: Sequence[Tensor], where) -> Iterator[tuple[str, int, int]]:
    """For each way its name, the bytes that it holds, and those of the results."""
    calls = [functools.partial(model, x) for x in inputs]
    outputs = sum(x.nbytes for x in inputs)  # a transformer's output is as large as its input
    warm_up(calls[0], where)
    before = held_before(where)
    eager = memory.peak(lambda: [call() for call in calls], where)
    yield "eager", eager.reserved_bytes - before, outputs
    for way in WAYS:
        pool = torch.cuda.graph_pool_handle() if way == "one pool" else None
        captured = [capture(call, where, pool) for call in calls]
        yield way, sum(each.pool_bytes for each in captured), outputs
        del captured
        gc.collect()
        torch.cuda.empty_cache()


def _pool_row(count: int, way: str, **found: object) -> dict[str, object]:
    name = f"{count} graph{'s' if count > 1 else ''}, {way}" if way != "eager" else f"{count} eager"
    role = "control" if way == "eager" else "variant"
    return {"op": "memory", "variant": name, "role": role, "graphs": count, "way": way} | found
