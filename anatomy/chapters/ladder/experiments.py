"""The ladder's experiments. All rungs have equal weights and one input, and are timed in the same
blocks, so that a drifting clock favours none."""

from typing import Annotated, Literal

import pandas as pd

from anatomy.chapters.ladder import ceilings, comparison, copies, gates, requirements, rungs, steps
from anatomy.chapters.ladder import graphs as ladder_graphs
from anatomy.chapters.ladder import inference as ladder_inference
from anatomy.chapters.ladder import regimes as ladder_regimes
from anatomy.chapters.ladder.requirements import FORWARD_BACKWARD, WITH_OPTIMIZER, Size
from anatomy.chapters.ladder.traffic import traffic as ladder_traffic
from anatomy.measure import stopwatch_for
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import formats
from anatomy.parts import grid, memory
from anatomy.record.bounds import Between, Count, Length, Scale, Seconds
from anatomy.record.declare import experiment

OPS = (FORWARD_BACKWARD, WITH_OPTIMIZER)
# What pages show is what is measured.
RUNGS = (
    "snippets/ladder/0_baseline.py",
    "snippets/ladder/1_cublas.py",
    "snippets/ladder/2_sdpa.py",
    "snippets/ladder/3_compile.py",
    "snippets/ladder/4_transformer_engine.py",
    "snippets/ladder/5_fastest.py",
)


@experiment("ladder.training", page="ladder/index.md", command="ladder", timeout_s=600, files=RUNGS)
def training(
    device: str = "cuda:0",
    width: Length = 1024,
    layers: Count = 2,
    batch: Annotated[int, Between(0, 1_048_576)] = 0,
    sequence: Length = 1024,
    backend: Literal["inductor", "eager"] = "inductor",
    iters: Count = 12,
    budget_s: Seconds = 10.0,
) -> pd.DataFrame:
    """Time one training step on every rung, and say where its time goes.

    Args:
        batch: Sequences B of a step; 0 takes 8 up to width 1024 and 4 beyond, so that rung 0 lets
            the others have their time, and fewer where these do not fit.
        budget_s: Seconds of timed blocks of both comparisons together.

    Returns:
        Two comparisons in step_wall, a row for each way of each rung, named like `2 amp bf16`; the
        control is rung 0. Op `forward and backward` has all ways, op `with AdamW` those that count;
        ops `ceiling bf16` and the like, in gpu_warm, are the card's best products. With CUDA graphs
        memory is null, and kernels are those of the same step without.
    """
    where = formats.torch_device(device)
    copies.require_width(width)
    size = requirements.training_size(memory.capacity(where), width, layers, batch, sequence)
    with copies.apart(where), gates.compiled_by(backend):
        return _measured(size, where, backend, iters, budget_s)


def _measured(size: Size, where, backend, iters, budget_s) -> pd.DataFrame:
    watch = stopwatch_for(where)
    tables = []
    if where.type == "cuda":
        tables.append(ceilings.measured(requirements.model_products(size), where, iters))
        steps.give_back(where)
    if why := requirements.all_ways(OPS[0], size).why_not(memory.capacity(where)):
        refused = {way.label: why for way in rungs.TRAINING}
        tables += [pd.DataFrame(comparison.refused_rows(op, refused)) for op in OPS]
    else:
        highest = ceilings.highest(tables[0] if tables else None)
        tables += _compared(size, watch, backend, iters, budget_s, highest)
    table = grid.joined([each for each in tables if len(each)])
    return table.assign(**size.columns, device=where.type)


def _compared(size: Size, watch: Stopwatch, backend, iters, budget_s, highest) -> list:
    """The tables of both comparisons, behind what the compiler's start took."""
    tables = [pd.DataFrame([_first_call(watch, backend)])]
    x, target = rungs.problem(size.width, size.batch, size.sequence, watch.device)
    wanted = rungs.reference(size.layers, size.width, x, target)
    bench = steps.Bench(size, x, target, wanted, watch, gates.switches())
    ready, refused = steps.prepared(bench)
    bench.wanted = rungs.Answer(wanted.loss, [])  # as large as a model
    del wanted
    for op in OPS:
        table, absent = comparison.compared(op, ready, bench, highest, iters, budget_s / len(OPS))
        if table is not None:
            tables.append(table)
        tables.append(pd.DataFrame(comparison.refused_rows(op, refused | absent)))
    return tables


def _first_call(watch: Stopwatch, backend: str) -> dict:
    """What the compiler takes before it compiles anything of ours, and what it writes."""
    import torch._inductor.config as config  # takes seconds, which listing experiments should not

    return ladder_inference.first_compilation(watch) | {
        "gpu_code": config.cuda_backend if backend == "inductor" else None,
        "cpu_code": config.cpu_backend if backend == "inductor" else None,
    }


@experiment("ladder.traffic", page="ladder/index.md", command="ladder-traffic", timeout_s=180)
def traffic(
    device: str = "cuda:0",
    heads: Count = 8,
    head_width: Length = 128,
    longest: Length = 8192,
    limit_s: Seconds = 40.0,
) -> pd.DataFrame:
    """Count the bytes of device memory that attention moves, written out and fused.

    The counts on paper need no GPU. The card's counters are read by Nsight Compute, one call after
    the other in one process, each with an empty cache before it.

    Args:
        heads: Fewest heads H; short sequences are also counted with as many heads as give the
            longest one's tokens.
        longest: Longest sequence T, in tokens; the others are fourths of it, down to 512.
        limit_s: Seconds after which the counters are not read any further.

    Returns:
        A row for each length, number of heads, direction and way: `written out` is rung 1's
        attention, `written out, all in bf16` has no mask and no casts, `fused` is rung 2's.
    """
    where = formats.torch_device(device)
    return ladder_traffic.measure(
        heads, head_width, longest, where, limit_s, memory.capacity(where)
    )


@experiment(
    "ladder.inference",
    page="ladder/index.md",
    command="ladder-inference",
    timeout_s=300,
    files=RUNGS,
)
def inference(
    device: str = "cuda:0",
    width: Length = 1024,
    layers: Count = 2,
    batch: Length = 8,
    sequence: Length = 1024,
    backend: Literal["inductor", "eager"] = "inductor",
    budget_s: Seconds = 5.0,
) -> pd.DataFrame:
    """Time the forward pass alone on every rung.

    Args:
        batch: Sequences B of a call.

    Returns:
        One comparison in step_wall, op `forward`, with the rows of `ladder.training`; the control
        is rung 0. `uses` are the calls after which `setup_s`, the seconds of the first three, is
        paid back over rung 0. Rung 5 in fp8 has put its weights into 8 bits before.
    """
    task = ladder_inference.Task(requirements.FORWARD, width, layers, batch, sequence)
    return ladder_inference.measure(task, formats.torch_device(device), backend, budget_s)


@experiment(
    "ladder.decoding", page="ladder/index.md", command="ladder-decoding", timeout_s=300, files=RUNGS
)
def decoding(
    device: str = "cuda:0",
    width: Length = 1024,
    layers: Count = 6,
    context: Length = 2048,
    backend: Literal["inductor", "eager"] = "inductor",
    budget_s: Seconds = 4.0,
) -> pd.DataFrame:
    """Time one step of decoding on every rung: one new token, with keys and values kept.

    Args:
        layers: Layers of the transformer; a few of them would fit into the GPU's cache.
        context: Tokens S that keys and values are kept of, the new one among them.

    Returns:
        As `ladder.inference`, op `decoding`. Keys and values are kept in the number format of the
        products, or in bfloat16 where that is FP8; `bytes` is these and the weights as they are
        stored.
    """
    task = ladder_inference.Task(requirements.DECODING, width, layers, 1, 1, context)
    return ladder_inference.measure(task, formats.torch_device(device), backend, budget_s)


@experiment(
    "ladder.regimes", page="ladder/index.md", command="ladder-regimes", timeout_s=900, files=RUNGS
)
def regimes(
    device: str = "cuda:0",
    backend: Literal["inductor", "eager"] = "inductor",
    scale: Scale = 1.0,
    budget_s: Seconds = 3.0,
    full: bool = False,
) -> pd.DataFrame:
    """Time compiled bf16 and FP8 over the model's width and the tokens of a step.

    Returns:
        A comparison in step_wall for each cell, of a training step (forward, loss, backward) of one
        layer. Control: `3 default`, compiled bf16. Variants: `5 bf16`, `5 fp8` and `5 fp8 delayed`,
        each one CUDA graph, the first two also `without a graph`; `4 current`, and it `in a graph`.
    """
    where = formats.torch_device(device)
    cells = requirements.regime_cells(scale, full)
    return ladder_regimes.measure(cells, where, backend, budget_s)


@experiment(
    "ladder.graphs", page="ladder/3_compile.md", command="ladder-graphs", timeout_s=300, files=RUNGS
)
def graphs(
    device: str = "cuda:0",
    width: Length = 1024,
    layers: Count = 1,
    batch: Length = 1,
    sequence: Length = 1024,
    backend: Literal["inductor", "eager"] = "inductor",
    budget_s: Seconds = 3.0,
) -> pd.DataFrame:
    """Ask what rung 3's compiler makes of a step: its graphs, its kernels, and who made them.

    Args:
        layers: Layers of the transformer; with one layer, the kernels are those of one block.
        batch: Sequences B of a step.
        backend: What torch.compile hands its graphs to; eager makes no code, for tests.

    Returns:
        Rows of several kinds, by `part`; see `anatomy.chapters.ladder.graphs`.
    """
    size = Size(width, layers, batch, sequence)
    where = formats.torch_device(device)
    return ladder_graphs.measure(ladder_graphs.MODES, size, where, backend, budget_s)


@experiment(
    "ladder.autotuned",
    page="ladder/3_compile.md",
    command="ladder-autotuned",
    timeout_s=1800,
    files=RUNGS,
    on_request=True,
)
def autotuned(
    device: str = "cuda:0",
    width: Length = 1024,
    layers: Count = 2,
    batch: Length = 8,
    sequence: Length = 1024,
    backend: Literal["inductor", "eager"] = "inductor",
    budget_s: Seconds = 5.0,
) -> pd.DataFrame:
    """Time rung 3 in max-autotune, which tries kernels for minutes before its first step.

    Args:
        batch: Sequences B of a step.
        backend: What torch.compile hands its graphs to; eager knows no modes, for tests.

    Returns:
        The parts `time` and `code` of `ladder.graphs`, of the modes `3 default`, the control, `3
        reduce-overhead` and `3 max-autotune`.
    """
    size = Size(width, layers, batch, sequence)
    where = formats.torch_device(device)
    return ladder_graphs.measure(ladder_graphs.TUNED_MODES, size, where, backend, budget_s)
