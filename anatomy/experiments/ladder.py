"""The ladder: one training step of one transformer, made faster rung by rung.

All rungs have equal weights and one input. A rung whose loss or gradients stray from those of rung
0 is void; the others are timed in the same blocks, so that a drifting clock favours none.
"""

import pandas as pd
import torch

from anatomy import tensors
from anatomy.experiment import experiment
from anatomy.experiments import demands, ladder_rungs, ladder_steps, ladder_traffic


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
    layers: int = 4,
    batch: int = 8,
    sequence: int = 1024,
    iters: int = 12,
    budget_s: float = 15.0,
) -> pd.DataFrame:
    """Time one training step on every rung, and say where its time goes.

    Args:
        device: Where to run, such as cuda:0 or cpu.
        width: Width C of a token.
        layers: Layers of the transformer.
        batch: Sequences B of a step.
        sequence: Tokens T of a sequence.
        iters: Least number of timed samples of each way.
        budget_s: Seconds of timed blocks for each comparison.

    Returns:
        Two comparisons in step_wall, of op `forward and backward` and of op `with AdamW`, one row
        for each way of each rung, named like `2 amp bf16`; the control is rung 0. `rung`, `way`;
        `loss_error` and `gradient_error` against rung 0 in float32 (relative, of all gradients
        together), `parameters`; `setup_s`, the seconds of the first step, with compiling;
        `peak_bytes` of a step and `total_peak_bytes` with the weights, null for CUDA graphs, and
        `reserved_bytes`; on a GPU seconds of kernels by what they do: `product_s`, `attention_s`,
        `pointwise_s`, `other_s`, and `gap_s`, the rest of the step. A way that can't run here, or
        that is void, has a `note` and no time. Of op `ceiling`, in gpu_warm, products of bfloat16
        matrices as large as this model's and larger: what the same card multiplies at best.

    Raises:
        BadParameter: A number is not above 0, or the width is no whole number of heads.
        DeviceError: The device is not there.
        OutOfMemory: The model and its activations do not fit.
    """
    where = tensors.torch_device(device)
    demands.positive(layers=layers, batch=batch, sequence=sequence, iters=iters, budget_s=budget_s)
    demands.positive(width=width)
    if width > ladder_rungs.load(ladder_rungs.BASELINE).HEAD:
        demands.multiple(ladder_rungs.load(ladder_rungs.BASELINE).HEAD, width=width)
    size = ladder_steps.Size(width, layers, batch, sequence)
    ladder_steps.require_memory(size, where)
    with torch.random.fork_rng(devices=[where] if where.type == "cuda" else []):
        return ladder_steps.measure(size, where, iters, budget_s)


@experiment(page="ladder/index.md", command="ladder-traffic", timeout_s=180)
def traffic(
    device: str = "cuda:0",
    heads: int = 8,
    head_width: int = 128,
    longest: int = 8192,
    limit_s: float = 40.0,
) -> pd.DataFrame:
    """Count the bytes of device memory that attention moves, written out and fused.

    The counts on paper need no GPU. The card's counters are read by Nsight Compute, one call after
    the other in one process, each with an empty cache before it.

    Args:
        device: Where to run, such as cuda:0 or cpu.
        heads: Fewest heads H; short sequences are also counted with as many heads as give the
            longest one's tokens.
        head_width: Width D of a head.
        longest: Longest sequence T, in tokens; the others are halves of it, down to 512.
        limit_s: Seconds after which the counters are not read any further.

    Returns:
        A row for each length, number of heads, direction and way: `written out` is rung 1's
        attention, `written out, all in bf16` has no mask and no casts, `fused` is rung 2's.
        `passes` over the scores; `formula_read_bytes`, `formula_written_bytes` and their sum
        `formula_bytes`, as if no cache held anything between two operators; `formula_over_fused`.
        From the counters `read_bytes`, `written_bytes`, `dram_bytes` with `dram_low_bytes` and
        `dram_high_bytes` over the repeats, `late_bytes` (what of the written left the cache after
        the call), `kernels`; `over_fused` and `over_formula` as ratios of `dram_bytes`. Where they
        could not be read `note` says why. `score_bytes` of one bfloat16 tensor of scores, and
        `cache_bytes` of the last-level cache.

    Raises:
        BadParameter: A number is not above 0.
        DeviceError: The device is not there.
    """
    where = tensors.torch_device(device)
    demands.positive(heads=heads, head_width=head_width, longest=longest, limit_s=limit_s)
    return ladder_traffic.measure(heads, head_width, longest, where, limit_s)
