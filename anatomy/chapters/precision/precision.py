"""Number formats: what 16 and 8 bits save in time and memory, and what they cost in digits."""

import os

import pandas as pd
import torch

from anatomy.chapters.precision import fp8 as precision_fp8
from anatomy.chapters.precision import gradients as precision_gradients
from anatomy.chapters.precision import training as precision_training
from anatomy.comparison import compare
from anatomy.numerics import formats
from anatomy.parts import demands, models
from anatomy.record.bounds import Count, Length, Scale
from anatomy.record.declare import experiment
from anatomy.table.errors import DisagreementError, MeasurementError

# Cells of the site's map, and of a finer one.
WIDTHS, TOKENS = (256, 1024, 2048), (1024, 8192)
FULL_WIDTHS, FULL_TOKENS = (256, 512, 1024, 2048, 4096), (512, 1024, 2048, 4096, 8192, 16384)
SIDES = (256, 1024, 2048, 4096, 8192)
FULL_SIDES = (256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288)
MLP = (8192, 16384, 4096)  # rows, width between, width of the model, in a large transformer
ALLOWED_BLOCK = {"bf16": 2**-6, "fp16": 2**-8}  # of a forward pass, relative, against float64


@experiment(
    "precision.training", page="axioms/precision.md", command="precision-training", timeout_s=400
)
def training(
    device: str = "cuda:0", scale: Scale = 1.0, full: bool = False, iters: Count = 12
) -> pd.DataFrame:
    """Time a training step in fp32, TF32, mixed precision and pure bf16, and account its memory.

    Args:
        scale: Factor on width and tokens; 1 for a GPU, less for a CPU.

    Returns:
        One row per width, tokens and way (`fp32`, the control; `tf32`; `amp fp16`; `amp bf16`;
        `bf16`), in step_wall. Errors are against float64. Rows of an op `host ...` give the host's
        time of a step with a loss scale and without it, by optimizer.
    """
    where = formats.torch_device(device)
    demands.positive(scale=scale, iters=iters)
    widths, tokens = (FULL_WIDTHS, FULL_TOKENS) if full else (WIDTHS, TOKENS)
    widths, tokens = _widths(widths, scale), _sizes(tokens, scale, 16)
    budget_s = 2.0 * min(1.0, scale)
    tables = list(precision_training.maps(widths, tokens, where, iters, budget_s))
    middle = widths[len(widths) // 2]
    tables.append(precision_training.scaler_waits(middle, tokens[-1], where, iters, budget_s))
    return _joined(tables)


@experiment(
    "precision.gradients", page="axioms/precision.md", command="precision-gradients", timeout_s=200
)
def gradients(device: str = "cuda:0", width: Length = 128, tokens: Length = 256) -> pd.DataFrame:
    """Count gradients that vanish or overflow in fp16, bf16 and fp32, with loss scaling or without.

    Args:
        width: Width C of the small transformer, two layers of it.
        tokens: Length of the one sequence.

    Returns:
        No times. Rows of op `finfo`: the limits of each format. `gradients ordinary`, `small` and
        `large`, by a factor on the loss: what the format makes of the gradients. `overflow`: a
        block whose output is beyond fp16's largest number.
    """
    where = formats.torch_device(device)
    demands.width(width)
    demands.positive(tokens=tokens)
    demands.weights(width, 2)
    rows = precision_gradients.formats()
    rows += precision_gradients.gradients(width, tokens, where)
    rows += precision_gradients.overflow(width, tokens, where)
    return pd.DataFrame(rows)


@experiment("precision.fp8", page="axioms/precision.md", command="precision-fp8", timeout_s=500)
def fp8(
    device: str = "cuda:0", scale: Scale = 1.0, full: bool = False, iters: Count = 12
) -> pd.DataFrame:
    """Time linear layers in FP8 against bf16: factors ready, quantised in each call, and compiled.

    Returns:
        One row per size and variant, in step_wall and gpu_warm; `bf16` is the control. `error` is
        against float64 before quantising. Rows of op `mlp ...` are a transformer's perceptron,
        where the compiled FP8 one has the compiled bf16 one as its control.
    """
    where = formats.torch_device(device)
    demands.positive(scale=scale, iters=iters)
    sides = [(s, s, s) for s in _sizes(FULL_SIDES if full else SIDES, scale, 16)]
    sides.append(_sizes(MLP, scale, 16))
    tables = []
    # Read when the compiler is imported, by the first compilation of this process.
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    budget_s = 0.8 * min(1.0, scale)
    with torch.inference_mode():
        tables += precision_fp8.products(sides, where, iters, budget_s)
        tokens, _, width = sides[-1]
        tables += precision_fp8.perceptron(width, tokens, where, iters, 2 * budget_s)
    return _joined(tables)


@experiment(
    "precision.inference", page="axioms/precision.md", command="precision-inference", timeout_s=200
)
def inference(
    device: str = "cuda:0", scale: Scale = 1.0, full: bool = False, iters: Count = 12
) -> pd.DataFrame:
    """Time the forward pass of a transformer block in fp16 against bf16, with their errors.

    Args:
        scale: Factor on width and tokens; 1 for a GPU, less for a CPU.

    Returns:
        One row per width, tokens and format, in gpu_warm: the host does the same for either format.
        `bf16` is the control; `error` is against float64.
    """
    where = formats.torch_device(device)
    demands.positive(scale=scale, iters=iters)
    widths, tokens = (FULL_WIDTHS, FULL_TOKENS) if full else (WIDTHS[1:], TOKENS)
    tables = []
    for width in _widths(widths, scale):
        model = models.transformer(width, 1, where, torch.float32)
        for count in _sizes(tokens, scale, 16):
            tables.append(_forward(model, width, count, where, iters, 2.0 * min(1.0, scale)))
    return _joined(tables)


def _forward(model, width, count, where, iters, budget_s) -> pd.DataFrame:
    """The block in both formats, from the same float32 weights, against float64."""
    op, quantity = f"forward C={width} T={count}", "gpu_warm"
    sequence = min(count, precision_training.SEQUENCE)
    told = {"width": width, "tokens": count}
    kinds = {"bf16": torch.bfloat16, "fp16": torch.float16}
    with torch.inference_mode():
        try:
            x = torch.randn(count // sequence, sequence, width, device=where)  # (B, T, C)
            double = precision_training.copied(model, torch.float64)
            exact = torch.cat([double(each) for each in x.double().split(1)])
            blocks = {name: precision_training.copied(model, kind) for name, kind in kinds.items()}
            inputs = {name: x.to(kind) for name, kind in kinds.items()}
            return compare(
                {name: lambda n=name: blocks[n](inputs[n]) for name in kinds},
                reference=lambda: exact,
                allowed=ALLOWED_BLOCK,
                quantity=quantity,
                op=op,
                flops=models.layer_flops(width, count, sequence),
                limit={name: f"matmul {name}" for name in kinds},
                device=where,
                iters=iters,
                budget_s=budget_s,
                settle_cap_s=min(1.0, budget_s),
            ).table.assign(**told)
        except (DisagreementError, MeasurementError, torch.OutOfMemoryError) as error:
            row = {"op": op, "quantity": quantity, "role": "variant", "device": where.type}
            why = f"not measured: {str(error).splitlines()[0][:160]}"
            return pd.DataFrame([row | told | {"variant": name, "note": why} for name in kinds])


def _sizes(sizes: tuple[int, ...], scale: float, step: int) -> tuple[int, ...]:
    """Sizes times `scale` as multiples of `step`; two that differ never become one."""
    grown: list[int] = []
    for size in sizes:
        scaled = max(1, round(scale * size / step)) * step
        while scaled in grown:
            scaled += step
        grown.append(scaled)
    return tuple(grown)


def _widths(widths: tuple[int, ...], scale: float) -> tuple[int, ...]:
    """Widths of transformers times `scale`: multiples of 16, and of a head where they have one."""
    small = tuple(width for width in widths if scale * width < models.HEAD_WIDTH)
    return _sizes(small, scale, 16) + _sizes(widths[len(small) :], scale, models.HEAD_WIDTH)


def _joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """All rows in one table; columns that a comparison lacks are empty there. MeasurementError,
    with the first row's reason, where nothing at all could be timed."""
    # Columns that are empty in one of the tables would otherwise decide the others' types.
    table = pd.concat([each.astype(object) for each in tables], ignore_index=True)
    if "median_s" not in table or table.median_s.isna().all():
        raise MeasurementError(str(table.note.iloc[0]))
    return table
