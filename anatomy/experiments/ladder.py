"""The ladder: one training step of one transformer, made faster rung by rung.

All rungs have equal weights and one input. A rung whose loss or gradients stray from those of rung
0, or whose work is another, is void; the others are timed in the same blocks, so that a drifting
clock favours none.
"""

from typing import Literal

import pandas as pd
import torch

from anatomy import tensors
from anatomy.experiment import experiment
from anatomy.experiments import (
    demands,
    ladder_ceilings,
    ladder_comparison,
    ladder_gates,
    ladder_rungs,
    ladder_steps,
)
from anatomy.experiments.compilation_cells import without_caches
from anatomy.measuring import stopwatch_for
from anatomy.measuring.stopwatch import Stopwatch

# The row of the first compilation of all, which pays the compiler's own imports.
FIRST_CALL, COMPILER = "first call", "compiler, first call"


@experiment(
    page="ladder/index.md",
    command="ladder",
    timeout_s=600,
    files=(
        "snippets/ladder/0_baseline.py",
        "snippets/ladder/1_cublas.py",
        "snippets/ladder/2_sdpa.py",
        "snippets/ladder/3_compile.py",
        "snippets/ladder/4_transformer_engine.py",
        "snippets/ladder/5_fastest.py",
    ),
)
def training(
    device: str = "cuda:0",
    width: int = 1024,
    layers: int = 2,
    batch: int = 0,
    sequence: int = 1024,
    backend: Literal["inductor", "eager"] = "inductor",
    iters: int = 12,
    budget_s: float = 4.0,
) -> pd.DataFrame:
    """Time one training step on every rung, and say where its time goes.

    Args:
        device: Where to run, such as cuda:0 or cpu.
        width: Width C of a token.
        layers: Layers of the transformer.
        batch: Sequences B of a step; 0 takes 8 at width 1024 and half as many at twice the width,
            so that rung 0 lets the others have their time.
        sequence: Tokens T of a sequence.
        backend: What torch.compile hands its graphs to; eager runs them as they are, for tests.
        iters: Least number of timed samples of each way.
        budget_s: Seconds of timed blocks for each comparison.

    Returns:
        Two comparisons in step_wall, one row for each way of each rung, named like `2 amp bf16`;
        the control is rung 0. Op `forward and backward` has all ways, op `with AdamW` those that
        count. `rung`, `way`, `products` (the number format); the gates: `loss_error` and
        `gradient_error` against rung 0 in float32 (relative, of all gradients together),
        `parameters`, `counted_flops` by `counted_by`, of which `recomputed_flops` are scores that a
        fused backward pass makes anew; `backend` of attention, known by `backend_by`. `setup_s` is
        the seconds of the first step, with compiling and capturing, and `graphs` what was compiled.
        Against the rung before (`before`): `ratio_before` with its interval and `verdict_before`,
        and `uses` with its interval, steps after which what setting up takes longer is paid back;
        null where `pays` is false (not faster) or null (undecided). `share_of_ceiling`, with its
        interval, is the rate over the highest of op `ceiling *`. `peak_bytes` of a step and
        `total_peak_bytes` with the weights, null for CUDA graphs, and `reserved_bytes` of the card.
        On a GPU seconds of kernels by what they do: `product_s`, `attention_s`, `pointwise_s`,
        `other_s`, and `gap_s`, the rest of the step; `kernels_per_call`, and `kernel_seconds`,
        [name, kind, launches, seconds] of a step. These of a way with CUDA graphs are those of the
        same step without. A way that can't run here, or that is void, has a `note` and no time. Ops
        `ceiling bf16` and the like, in gpu_warm: what the card multiplies at best. Op `first call`:
        seconds of compiling an addition, before all else; `gpu_code` and `cpu_code`, what
        torch.compile writes its kernels in.

    Raises:
        BadParameter: A number is not above 0, or the width is no whole number of heads.
        DeviceError: The device is not there.
        OutOfMemory: The model and its activations do not fit.
    """
    where = tensors.torch_device(device)
    demands.positive(width=width, layers=layers, sequence=sequence, iters=iters)
    demands.positive(budget_s=budget_s)
    demands.at_least(0, "0 lets the width decide", batch=batch)
    head = ladder_rungs.load(ladder_rungs.BASELINE).HEAD
    if width > head:
        demands.multiple(head, width=width)
    size = ladder_steps.Size(width, layers, batch or batch_of(width), sequence)
    ladder_steps.require_memory(size, where)
    switches = ladder_gates.switches()
    try:
        with (
            torch.random.fork_rng(devices=[where] if where.type == "cuda" else []),
            tensors.products_in("fp32"),
            without_caches(),
            ladder_gates.compiled_by(backend),
        ):
            return _measured(size, where, backend, iters, budget_s)
    finally:
        torch.compiler.reset()
        ladder_gates.left_set(switches)


def batch_of(width: int) -> int:
    """Sequences of a step, where nobody says how many."""
    return max(1, 8 * 1024 // max(width, 1024))


def _measured(
    size: ladder_steps.Size, where: torch.device, backend: str, iters: int, budget_s: float
) -> pd.DataFrame:
    """The table of all rungs."""
    watch = stopwatch_for(where)
    tables = []
    if where.type == "cuda":
        tokens, C = size.tokens, size.width
        own = ((tokens, 4 * C, C), (tokens, C, 4 * C))
        tables.append(ladder_ceilings.measured(own, where, iters))
        ladder_steps.let_go(where)
    ceilings = ladder_ceilings.highest(tables[0] if tables else None)
    torch.compiler.reset()  # what this process compiled before is not the rungs'
    tables.append(pd.DataFrame([_first_call(watch, backend)]))
    x, target = ladder_rungs.problem(size.width, size.batch, size.sequence, where)
    wanted = ladder_rungs.reference(size.layers, size.width, x, target)
    bench = ladder_steps.Bench(size, x, target, wanted, watch, ladder_gates.switches())
    ready, refused = ladder_steps.prepared(bench)
    bench.wanted = ladder_rungs.Answer(wanted.loss, [])  # as large as a model
    del wanted
    for op in (ladder_comparison.FORWARD_BACKWARD, ladder_comparison.WITH_OPTIMIZER):
        table, absent = ladder_comparison.compared(op, ready, bench, ceilings, iters, budget_s)
        if table is not None:
            tables.append(table)
        tables.append(pd.DataFrame(ladder_comparison.refused_rows(op, refused | absent)))
    table = pd.concat([each for each in tables if len(each)], ignore_index=True)
    return table.assign(**size.columns, device=where.type)


def _first_call(watch: Stopwatch, backend: str) -> dict:
    """What the compiler takes before it compiles anything of ours, and what it writes."""
    import torch._inductor.config as config

    x = torch.ones(8, device=watch.device)
    run = torch.compile(torch.add)
    seconds = watch.wall([lambda: run(x, x)])
    return {
        "op": FIRST_CALL,
        "variant": COMPILER,
        "role": "variant",
        "quantity": ladder_comparison.QUANTITY,
        "median_s": seconds,
        "samples": 1,
        "blocks_s": [seconds],
        "method": "host clock around one call and a synchronize",
        "gpu_code": config.cuda_backend if backend == "inductor" else None,
        "cpu_code": config.cpu_backend if backend == "inductor" else None,
    }
