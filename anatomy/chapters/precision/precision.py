"""Number formats: what 16 and 8 bits save in time and memory, and what they cost in digits."""

import pandas as pd
import torch

from anatomy.chapters.precision import fp8 as precision_fp8
from anatomy.chapters.precision import gradients as precision_gradients
from anatomy.chapters.precision import requirements
from anatomy.chapters.precision import training as precision_training
from anatomy.chapters.precision.requirements import SEQUENCE
from anatomy.comparison import compare
from anatomy.numerics import formats
from anatomy.parts import demands, grid, memory, models
from anatomy.parts.compiled import without_caches
from anatomy.record.bounds import Count, Length, Scale
from anatomy.record.declare import experiment
from anatomy.table import formulas

KINDS = {"bf16": torch.bfloat16, "fp16": torch.float16}  # of `inference`, the control first
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
    budget_s = 2.0 * min(1.0, scale)
    required = list(requirements.training(memory.capacity(where), scale, full))
    how = where, iters, budget_s, required
    found = precision_training.maps(requirements.training_cells(scale, full), *how)
    waits = precision_training.scaler_waits(*requirements.waiting_cell(scale, full), *how)
    return _joined([found, waits])


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
    demands.weights(width, 2)
    rows = precision_gradients.formats()
    (required,) = requirements.gradients(memory.capacity(where), width, tokens)
    why = required.why_not(memory.capacity(where))
    for op, count in (
        ("gradients", precision_gradients.gradients),
        ("overflow", precision_gradients.overflow),
    ):
        found = None
        if not why:
            found, why = grid.attempt(lambda count=count: list(count(width, tokens, where)), where)
        rows += found if found is not None else [{"op": op, "variant": op, "note": why}]
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
    sides = requirements.fp8_sides(scale, full)
    required = list(requirements.fp8(memory.capacity(where), scale, full))
    cells = [
        {"op": f"linear {m} x {n} x {k}", "m": m, "n": n, "k": k}
        | {"side": m if m == n == k else None, "shape": "square" if m == n == k else "mlp"}
        for m, n, k in sides
    ]
    tokens, between, width = sides[-1]
    mlp = {"op": f"mlp C={width} T={tokens}", "m": tokens, "n": between, "k": width, "shape": "mlp"}
    budget_s = 0.8 * min(1.0, scale)
    how = {"where": where, "required": required}
    with torch.inference_mode(), without_caches():
        linear = grid.measure_cells(
            cells,
            lambda cell: precision_fp8.product_of(cell, where, iters, budget_s),
            variants=precision_fp8.WAYS,
            quantity=precision_fp8.QUANTITIES,
            **how,
        )
        two = grid.measure_cells(
            [mlp],
            lambda cell: precision_fp8.perceptron(cell, where, iters, 2 * budget_s),
            variants=precision_fp8.MLP_WAYS,
            quantity="step_wall",
            **how,
        )
    return _joined([linear, two])


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
    cells = [
        {"op": f"forward C={width} T={tokens}", "width": width, "tokens": tokens}
        for width, tokens in requirements.inference_cells(scale, full)
    ]
    table = grid.measure_cells(
        cells,
        lambda cell: _forward(cell, where, iters, 2.0 * min(1.0, scale)),
        variants=tuple(KINDS),
        quantity="gpu_warm",
        where=where,
        required=requirements.inference(memory.capacity(where), scale, full),
    )
    return _joined([table])


def _forward(cell: grid.Cell, where: torch.device, iters: int, budget_s: float) -> pd.DataFrame:
    """The block in both formats, from the same float32 weights, against float64."""
    width, count = cell["width"], cell["tokens"]
    sequence = min(count, SEQUENCE)
    absent = memory.without_formats({name: name for name in KINDS}, where)
    kinds = {name: kind for name, kind in KINDS.items() if name not in absent}
    model = models.transformer(width, 1, where, torch.float32)
    with torch.inference_mode():
        x = torch.randn(count // sequence, sequence, width, device=where)  # (B, T, C)
        double = precision_training.copied(model, torch.float64)
        exact = torch.cat([double(each) for each in x.double().split(1)])
        blocks = {name: precision_training.copied(model, kind) for name, kind in kinds.items()}
        inputs = {name: x.to(kind) for name, kind in kinds.items()}
        table = compare(
            {name: lambda n=name: blocks[n](inputs[n]) for name in kinds},
            reference=lambda: exact,
            allowed=ALLOWED_BLOCK,
            quantity="gpu_warm",
            op=cell["op"],
            flops=formulas.layer_flops(width, count, sequence),
            limit={name: f"matmul {name}" for name in kinds},
            device=where,
            iters=iters,
            budget_s=budget_s,
            settle_cap_s=min(1.0, budget_s),
        ).table
    return grid.with_refused(table, cell, absent, quantity="gpu_warm", where=where)


def _joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """All rows in one table; columns that a comparison lacks are empty there."""
    # Columns that are empty in one of the tables would otherwise decide the others' types.
    return pd.concat([each.astype(object) for each in tables], ignore_index=True)
