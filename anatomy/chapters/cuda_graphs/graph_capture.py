"""CUDA graphs: how short kernels must be for replaying a recorded list to beat launching them. What
a graph saves is the host's part of each launch, which the GPU's own clock does not see."""

import functools
import gc
from collections.abc import Iterator, Sequence

import pandas as pd
import torch
from torch import Tensor

from anatomy.machine import host
from anatomy.numerics import formats
from anatomy.parts import demands, memory, models
from anatomy.parts.graphs import Call, capture, compared, guarded, held_before, warm_up, why_not
from anatomy.parts.grid import joined
from anatomy.record.bounds import Count, Length, Scale
from anatomy.record.declare import experiment
from anatomy.table import formulas

# Elements of a pointwise chain's tensor, and sides of a product chain's matrices: kernels from
# about a microsecond to a few hundred. The finer map has the ones between as well.
ELEMENTS = (2**10, 2**16, 2**20, 2**22, 2**23, 2**24, 2**26, 2**29)
FINER_ELEMENTS = tuple(2**power for power in (10, 13, 16, 18, 20, 21, 22, 23, 24, 25, 26, 28, 30))
SIDES = (64, 256, 1024, 2048, 4096)
FINER_SIDES = (64, 128, 256, 512, 768, 1024, 1536, 2048, 4096)
FACTOR = 0.9  # of each link of a pointwise chain; 30 of them stay far from the least bf16
ALLOWED_CHAIN = 2**-5  # each link rounds to bf16, which 20 of them do to about 2**-7
# Width and tokens of the training steps: the first are bound by launches, the last by kernels.
STEPS = ((128, 1024), (512, 1024), (1024, 4096), (2048, 4096))
FINER_STEPS = (*STEPS[:2], (1024, 1024), *STEPS[2:], (4096, 8192))
ALLOWED_STEP = 2**-6  # of an answer from the eager one: attention's backward adds up in any order
BATCHES = (16, 8, 4, 2)  # whose graphs lie in pools, largest first: what comes later then fits
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
    demands.positive(links=links, scale=scale, iters=iters)
    elements = [max(16, int(scale * n)) for n in (FINER_ELEMENTS if full else ELEMENTS)]
    sides = [max(4, int(scale**0.5 * n)) for n in (FINER_SIDES if full else SIDES)]
    cells = [("pointwise", n, n) for n in dict.fromkeys(elements)]
    cells += [("products", side, side * side) for side in dict.fromkeys(sides)]
    ends = (cells[0], ("pointwise", elements[-1], elements[-1]))
    tables = []
    for work, size, count in cells:
        quantities = ALL if (work, size, count) in ends else WALL
        told = {"op": f"{work} {size}", "work": work, "elements": count, "links": links}
        cell = functools.partial(_chain, work, size, links, where, told, quantities, iters)
        tables.append(guarded(told, where, quantities, cell))
    return joined(tables, COSTS)


def _chain(work, size, links, where, told, quantities, iters) -> pd.DataFrame:
    """One chain, eager and captured. Its links allocate their results, as ordinary code does."""
    if work == "pointwise":
        host.require_bytes(where, size * 2 * 16, f"a chain over {size} elements and its check")
        x = torch.randn(size, dtype=torch.bfloat16, device=where)

        def link(y: Tensor) -> Tensor:
            return y * FACTOR

        def exact() -> Tensor:
            return x.double() * FACTOR**links

        flops = None
    else:
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
    demands.positive(layers=layers, sequence=sequence, scale=scale, iters=iters)
    demands.weights(models.HEAD_WIDTH, layers)
    tables = []
    for wide, many in FINER_STEPS if full else STEPS:
        width = max(models.HEAD_WIDTH, int(scale * wide) // models.HEAD_WIDTH * models.HEAD_WIDTH)
        tokens = max(sequence, int(scale * many) // sequence * sequence)
        told = {"op": f"training C={width} tokens={tokens}", "work": "training"}
        told |= {"width": width, "tokens": tokens, "layers": layers}
        if told["op"] in {table.op.iloc[0] for table in tables}:
            continue  # scaled down, two cells can be one
        cell = functools.partial(_step, width, tokens, layers, sequence, where, told, iters)
        tables.append(guarded(told, where, WALL, cell))
    return joined(tables, COSTS)


def _step(width, tokens, layers, sequence, where, told, iters) -> pd.DataFrame:
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
        flops=3 * layers * models.layer_flops(width, tokens, sequence),  # backward is twice forward
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
    demands.positive(layers=layers, sequence=sequence)
    rows = []
    if where.type != "cuda":
        for n in range(1, len(BATCHES) + 1):
            rows += [_pool_row(n, way, note=why_not(where)) for way in ("own pools", "one pool")]
        return pd.DataFrame(rows).assign(pool_bytes=None, output_bytes=None)
    need = layers * 12 * width * width * 6 + 64 * BATCHES[0] * sequence * width * 2
    host.require_bytes(where, need, f"a transformer of width {width} and its graphs")
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
    return pd.DataFrame(rows)


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
