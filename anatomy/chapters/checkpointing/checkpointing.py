"""Activation checkpointing: of the part of a step between the beginning and the end of a checkpoint
only the input is kept, and the backward pass runs it forward a second time."""

import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import isqrt
from typing import Literal

import pandas as pd
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode

from anatomy.chapters.checkpointing import requirements
from anatomy.chapters.checkpointing.requirements import Cell
from anatomy.comparison import compare
from anatomy.numerics import formats
from anatomy.numerics.agreement import ALLOWED
from anatomy.parts import demands, grid, memory, models
from anatomy.parts.models import Layer
from anatomy.record.bounds import Count, Length, Seconds, Several
from anatomy.record.declare import experiment
from anatomy.table import formulas
from anatomy.table.errors import DisagreementError, MeasurementError

NONE = "none"  # the ordinary way, which the others are compared with
# What the selective policy keeps, as far as this PyTorch has it: the results of products and of
# attention, which take most of the operations. All else is computed again.
SAVED = (
    *("mm", "addmm", "bmm", "baddbmm"),
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_fused_attention_overrideable",
)
# Where checkpoints may be, as `granularities` has them.
NAMES = (NONE, "every layer", "every second layer", "first half", "halves of a layer", "segments")
NAMES += ("whole model", "selective")
# In cells other than the deepest: what is on the frontier there, and what people use.
BRIEF = (NONE, "every layer", "every second layer", "halves of a layer", "selective")
# A shallower cell has one of so many parts of the deepest one's seconds. Asking how long each step
# takes, before any block, is more than half of them; with fewer there would be too few blocks.
SHALLOWER = 3
FINER = 2.5  # a finer map takes so many times the seconds in each cell
SETTLE_CAP_S = 0.7  # settling takes at most so long, and no longer than the cell itself


@experiment(
    "checkpointing.frontier", page="axioms/checkpointing.md", command="checkpointing", timeout_s=900
)
def frontier(
    device: str = "cuda:0",
    dtype: Literal["bf16", "fp32", "tf32"] = "bf16",
    width: Length = 2048,
    depth: Count = 8,
    batch: Length = 8,
    sequence: Length = 1024,
    full: bool = False,
    iters: Count = 12,
    budget_s: Seconds = 12.0,
) -> pd.DataFrame:
    """Weigh the time of a training step against its memory, by where the checkpoints are.

    Args:
        dtype: Number format of weights and activations; tf32 means float32 tensors whose products
            may use TF32.
        width: Width C, a multiple of 64 or less than it; one cell has half of it.
        depth: Layers L of the deepest cell; others have a half and a quarter of them.
        batch: Sequences B of a step; one cell has a single, short one.
        budget_s: Seconds of the deepest cell, settling apart; others have a third.

    Returns:
        One row per cell and `granularity`: `none` keeps everything; `every layer`, `segments` (of
        the square root of the depth in layers) and so on make a checkpoint of each; `selective`
        keeps the results of products and attention. Times are step_wall: forward and backward, no
        optimizer; their `flops` count no repetition.
    """
    where = formats.torch_device(device)
    demands.width(width)
    demands.weights(width, depth)
    sizes = width, depth, batch, sequence, dtype, full
    on = memory.capacity(where)
    points = {cell.op: cell for cell in requirements.frontier_cells(on, *sizes)}

    def names(cell: grid.Cell) -> tuple[str, ...]:
        # All granularities where the frontier is drawn with all of them: seconds are few.
        return NAMES if full or (cell["width"], cell["depth"]) == (width, depth) else BRIEF

    def measure(cell: grid.Cell) -> pd.DataFrame:
        seconds = budget_s / (1 if names(cell) == NAMES else SHALLOWER) * (FINER if full else 1)
        return _measured(points[cell["op"]], dtype, where, iters, seconds, names(cell))

    cells = (
        {"op": op, "width": each.width, "depth": each.depth, "tokens": each.tokens, "dtype": dtype}
        for op, each in points.items()
    )
    table = grid.measure_cells(
        cells,
        measure,
        variants=names,
        quantity="step_wall",
        where=where,
        required=requirements.frontier(on, *sizes),
        foreseen=(RuntimeError,),
    )
    return table.assign(granularity=table.variant.str.removesuffix(" (again)"))


def granularities(model: nn.Sequential) -> dict[str, Layer]:
    """The model's forward pass by where its checkpoints are; `none`, the model itself, is first."""
    layers = list(model)
    count = len(layers)
    length = isqrt(count)
    segments = [nn.Sequential(*layers[at : at + length]) for at in range(0, count, length)]
    halves = [half for layer in layers for half in _halves(layer)]
    contexts = partial(create_selective_checkpoint_contexts, kept_operations())
    return {
        NONE: model,
        "every layer": _through([(layer, True) for layer in layers]),
        "every second layer": _through([(layer, not at % 2) for at, layer in enumerate(layers)]),
        "first half": _through([(layer, at < count // 2) for at, layer in enumerate(layers)]),
        "halves of a layer": _through([(half, True) for half in halves]),
        "segments": _through([(segment, True) for segment in segments]),
        "whole model": _through([(model, True)]),
        "selective": _through([(layer, True) for layer in layers], context_fn=contexts),
    }


def kept_operations() -> list:
    """The operations of `SAVED` that this PyTorch has."""
    aten = torch.ops.aten
    return [getattr(aten, name).default for name in SAVED if hasattr(aten, name)]


def _through(parts: Sequence[tuple[Layer, bool]], **how) -> Layer:
    """One part after the other, those marked each in a checkpoint of its own."""

    def forward(x: Tensor) -> Tensor:  # (B, T, C) to (B, T, C)
        for part, again in parts:
            x = checkpoint(part, x, use_reentrant=False, **how) if again else part(x)
        return x

    return forward


def _halves(layer: models.Block) -> tuple[Layer, Layer]:
    """What `Block.forward` does, in its two steps."""
    return (
        lambda x: x + layer.attention(layer.before(x)),
        lambda x: x + layer.perceptron(layer.between(x)),
    )


def _measured(cell: Cell, dtype, where, iters, budget_s, names) -> pd.DataFrame:
    """One cell: its memory first, then its times; rows without times where that is impossible."""
    kind = formats.storage(dtype)
    place = {"width": cell.width, "depth": cell.depth, "tokens": cell.tokens, "dtype": dtype}
    blank = {"op": cell.op, "role": "variant", "quantity": "step_wall", "device": where.type}
    model = models.transformer(cell.width, cell.depth, where, kind)
    x = torch.randn(cell.batch, cell.sequence, cell.width, dtype=kind, device=where)
    parameters = list(model.parameters())
    resident = sum(each.nbytes for each in parameters) + x.nbytes
    calls, costs, refused = {}, {}, []
    with formats.products_in(dtype):
        for name, forward in granularities(model).items():
            if name not in names:
                continue
            call = models.gradients_of(forward, parameters, x)
            try:
                costs[name] = _costs(call, partial(forward, x), where, resident)
                calls[name] = call
            except RuntimeError as error:
                refused.append((name, why(error)))
        useful = 3 * cell.depth * formulas.layer_flops(cell.width, cell.tokens, cell.sequence)
        table = pd.DataFrame()
        if NONE in calls:
            try:
                table = compare(
                    calls,
                    allowed=ALLOWED[kind],  # the loss too: it stands on activations of that format
                    quantity="step_wall",
                    op=cell.op,
                    flops=useful,
                    limit=f"matmul {dtype}",
                    device=where,
                    iters=iters,
                    budget_s=budget_s,
                    settle_cap_s=min(SETTLE_CAP_S, budget_s),
                    profile=False,  # thousands of kernels a step, whose names nobody reads
                ).table
            except (RuntimeError, DisagreementError, MeasurementError) as error:
                refused += [(name, why(error)) for name in calls]
        else:
            refused += [(name, f"{NONE} is not possible here") for name in calls]
    if len(table):
        origin = table.variant.str.removesuffix(" (again)")
        found = [costs[name] | _over(costs[name], costs[NONE]) for name in origin]
        table = pd.concat([table.assign(granularity=origin), pd.DataFrame(found)], axis=1)
    lost = [blank | {"variant": name, "granularity": name, "note": told} for name, told in refused]
    return pd.concat([table, pd.DataFrame(lost)], ignore_index=True).assign(**place)


def _costs(
    call: Callable[[], object], forward: Callable[[], Tensor], where: torch.device, resident: int
) -> dict[str, int | None]:
    """What one step needs and runs, outside of anything timed."""
    call()  # what the first call loads and allocates for good is not the step's
    found = memory.peak(call, where)
    # What else lies in memory depends on what ran before; weights and input are always there.
    total = None if found is None else {"total_peak_bytes": found.bytes + resident}
    return {
        **memory.columns(found),
        **(total or {}),
        "activation_bytes": held(forward, where),
        "run_flops": _run_flops(call),
    }


def _run_flops(call: Callable[[], object]) -> int | None:
    """Operations of the products in one call; None where PyTorch can't count one of them."""
    counter = FlopCounterMode(display=False)
    try:
        with counter:
            call()
    except Exception:  # a formula that does not know an operation: the step itself has just run
        return None
    return counter.get_total_flops() or None


def held(forward: Callable[[], Tensor], where: torch.device) -> int | None:
    """Bytes that are allocated after a forward pass and were not before it; None on a CPU."""
    if where.type != "cuda":
        return None
    gc.collect()
    before = torch.cuda.memory_allocated(where)
    kept = forward()
    found = torch.cuda.memory_allocated(where) - before
    del kept
    gc.collect()  # what the graph held in a ring would else be in the next variant's figures
    return found


def _over(costs: dict, control: dict) -> dict[str, float | None]:
    pairs = {
        "memory_ratio": "peak_bytes",
        "total_memory_ratio": "total_peak_bytes",
        "activation_ratio": "activation_bytes",
        "product_ratio": "run_flops",
    }
    return {
        name: costs[column] / control[column] if costs[column] and control[column] else None
        for name, column in pairs.items()
    }


def why(error: Exception) -> str:
    """An error as a row's note: its first line, without the paths that may stand in it."""
    if isinstance(error, torch.OutOfMemoryError):
        return "it does not fit into the memory of this device"
    first = (str(error).splitlines() or [""])[0]
    words = " ".join(word for word in first.split() if "/" not in word and "\\" not in word)
    return f"not possible here: {type(error).__name__}: {words[:160]}"


@experiment(
    "checkpointing.traps",
    page="axioms/checkpointing.md",
    command="checkpointing-traps",
    timeout_s=120,
)
def traps(device: str = "cuda:0", width: Length = 64, batch: Several = 8) -> pd.DataFrame:
    """See what running a part of the model twice does beside the gradients.

    Args:
        width: Width C of the two layers that are run.
        batch: Rows B of the input.

    Returns:
        One row per `variant`, each compared with the same step without a checkpoint, in float32
        from the same random state. `gradient_error` is ||g - g_without|| / ||g_without||.
    """
    where = formats.torch_device(device)
    return pd.DataFrame(list(_traps(where, width, batch)))


def _traps(where: torch.device, width: int, batch: int) -> Iterator[dict]:
    """One row for each trap, and for each control of one."""
    safe, old = {"use_reentrant": False}, {"use_reentrant": True}
    with formats.products_in("fp32"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one of the traps warns; what it leaves is in its row
        for name, inside, how, by_grad, wants in (
            ("plain", nn.GELU, safe, False, False),
            ("dropout", nn.Dropout, safe, False, False),
            (
                "dropout, state not kept",
                nn.Dropout,
                safe | {"preserve_rng_state": False},
                False,
                False,
            ),
            ("batch norm", partial(nn.BatchNorm1d, width), safe, False, False),
            ("reentrant", nn.GELU, old, False, True),
            ("reentrant, input without gradient", nn.GELU, old, False, False),
            ("reentrant, autograd.grad", nn.GELU, old, True, True),
            ("autograd.grad", nn.GELU, safe, True, False),
        ):
            step = partial(_trap, inside, width, batch, where, by_grad=by_grad, wants=wants)
            yield {"variant": name} | _against(step(None), step(how))


@dataclass
class _Seen:
    """What one step left: a gradient or None for each parameter, and how often parts ran."""

    gradients: list[Tensor | None]
    forwards: int
    updates: int | None
    raised: str | None


def _trap(inside, width, batch, where, how, *, by_grad, wants) -> _Seen:
    """One step of two linear layers with `inside` between them, checkpointed as `how` says."""
    with torch.random.fork_rng(devices=[where] if where.type == "cuda" else []):
        torch.manual_seed(0)
        between = inside()
        model = nn.Sequential(nn.Linear(width, width), between, nn.Linear(width, width)).to(where)
        ran = []
        model.register_forward_pre_hook(lambda *_: ran.append(1))
        x = torch.randn(batch, width, device=where).requires_grad_(wants)  # (B, C)
        parameters = list(model.parameters())
        raised, gradients = None, [None] * len(parameters)
        try:
            y = model(x) if how is None else checkpoint(model, x, **how)
            loss = y.square().mean()
            if by_grad:
                gradients = list(torch.autograd.grad(loss, parameters))
            else:
                loss.backward()
                gradients = [each.grad for each in parameters]
        except RuntimeError as error:
            raised = type(error).__name__
    updates = getattr(between, "num_batches_tracked", None)
    told = None if updates is None else int(updates)
    return _Seen([None if g is None else g.clone() for g in gradients], len(ran), told, raised)


def _against(without: _Seen, found: _Seen) -> dict:
    missing = sum(each is None for each in found.gradients)
    error = None
    if not missing:
        square = [
            (float((g - w).double().square().sum()), float(w.double().square().sum()))
            for g, w in zip(found.gradients, without.gradients, strict=True)
        ]
        error = (sum(e for e, _ in square) / sum(n for _, n in square)) ** 0.5
    return {
        "forwards": found.forwards,
        "gradient_error": error,
        "gradients_missing": missing,
        "updates": found.updates,
        "updates_without": without.updates,
        "raised": found.raised,
    }
