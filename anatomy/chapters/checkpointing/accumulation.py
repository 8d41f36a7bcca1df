"""Gradient accumulation: whether many small steps give the gradient of a large one, by how their
losses are weighted and how the tokens are spread over them; and what it costs."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from anatomy.chapters.checkpointing import requirements
from anatomy.chapters.checkpointing.checkpointing import SETTLE_CAP_S, granularities
from anatomy.chapters.checkpointing.requirements import STEPS
from anatomy.comparison import compare
from anatomy.numerics import formats
from anatomy.numerics.agreement import ALLOWED
from anatomy.parts import demands, grid, memory, models
from anatomy.parts.models import Layer
from anatomy.record.bounds import Count, Length, Seconds, Several
from anatomy.record.declare import experiment
from anatomy.table import formulas

# Variant -> the steps that it takes.
COUNTS = {"full batch": 1} | {f"{each} steps": each for each in STEPS}
COUNTS |= {"every layer checkpointed": 1}
PADDING = -100  # a label that is no token: the loss leaves it out
FORMATS = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16}
ROUNDINGS = 4  # a sum of up to eight gradients is rounded more often than a product is


@experiment(
    "accumulation.gradients", page="axioms/checkpointing.md", command="accumulation", timeout_s=120
)
def gradients(
    device: str = "cuda:0",
    width: Length = 128,
    layers: Count = 2,
    vocabulary: Several = 512,
    batch: Length = 16,
    sequence: Length = 64,
) -> pd.DataFrame:
    """Compare accumulated gradients with those of the full batch, by how the losses are weighted.

    Args:
        width: Width C of the model, a multiple of 64 or less than it.
        layers: Its layers L.
        vocabulary: Different tokens; the loss is cross-entropy over them.
        batch: Sequences B of the full batch, a multiple of 8.
        sequence: Tokens T of the longest sequence.

    Returns:
        One row per `dtype`, `lengths`, `steps` and `variant`, by what each micro-batch's mean loss
        is multiplied: 1 / steps, its share of all tokens, or nothing. `gradient_error` is ||g -
        g_full|| / ||g_full||, with the full batch in the same format.
    """
    where = formats.torch_device(device)
    demands.width(width)
    demands.multiple(max(STEPS), batch=batch)
    demands.weights(width, layers)
    sizes = width, layers, vocabulary, batch, sequence
    (required,) = requirements.gradients(memory.capacity(where), *sizes)
    why = required.why_not(memory.capacity(where))
    found = None
    if not why:
        found, why = grid.attempt(partial(_gradients, *sizes, where), where)
    ways = [{"variant": each, "steps": steps, "note": why} for steps, each in _ways()]
    return pd.DataFrame(ways if found is None else found)


def _gradients(width, layers, vocabulary, batch, sequence, where) -> list[dict]:
    """One row for each format, way to spread the tokens, number of steps, and factor."""
    rows = []
    with formats.products_in("fp32"):
        for lengths in ("equal", "mixed", "sorted"):
            inputs, labels = _tokens(lengths, vocabulary, batch, sequence)
            batches = inputs.to(where), labels.to(where)
            exact = None
            for dtype, kind in FORMATS.items():
                model = _language_model(width, layers, vocabulary).to(where, kind)
                full = _accumulated(model, *batches, 1, "loss / steps")
                exact = full if exact is None else exact
                rounding = _distance(full, exact)
                place = {"dtype": dtype, "lengths": lengths, "rounding": rounding}
                place["allowed"] = max(ALLOWED[kind], 2 * rounding)
                for steps, variant in _ways():
                    found = _accumulated(model, *batches, steps, variant)
                    rows.append(
                        {"variant": variant if steps > 1 else "full batch", "steps": steps}
                        | place
                        | {"gradient_error": _distance(found, full)}
                        | {"cosine": float(F.cosine_similarity(found, full, dim=0))}
                        | _spread(labels, steps)
                    )
    return rows


def _ways() -> list[tuple[int, str]]:
    ways = ("loss / steps", "weighted by tokens", "mean loss")
    return [(1, ways[0])] + [(steps, way) for steps in STEPS for way in ways]


def _tokens(lengths: str, vocabulary: int, batch: int, sequence: int) -> tuple[Tensor, Tensor]:
    """Inputs and labels (B, T): a few tokens are frequent, and what is too long is padding."""
    draw = torch.Generator().manual_seed(0)
    shares = torch.rand(batch, sequence + 1, generator=draw) ** 3
    tokens = (vocabulary * shares).long()  # (B, T + 1)
    ends = torch.full((batch,), sequence)
    if lengths != "equal":
        least = max(1, sequence // 8)
        ends = torch.randint(least, sequence + 1, (batch,), generator=draw)
        ends[0], ends[-1] = least, sequence  # so that the counts differ however few there are
    if lengths == "sorted":
        ends = ends.sort().values
    labels = tokens[:, 1:].clone()
    labels[torch.arange(sequence) >= ends[:, None]] = PADDING
    return tokens[:, :-1], labels


def _spread(labels: Tensor, steps: int) -> dict[str, int]:
    counts = [int((part != PADDING).sum()) for part in labels.chunk(steps)]
    return {"least_tokens": min(counts), "most_tokens": max(counts)}


def _language_model(width: int, layers: int, vocabulary: int) -> nn.Sequential:
    """Token ids (B, T) to scores (B, T, vocabulary), with the same weights each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        first, last = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
    blocks = models.transformer(width, layers, torch.device("cpu"), torch.float32)
    return nn.Sequential(first, blocks, last)


def _accumulated(model: nn.Sequential, inputs, labels, steps: int, way: str) -> Tensor:
    """The gradient of all parameters in one vector of float64, summed over so many micro-batches in
    the model's format, as `backward` does it."""
    model.zero_grad(set_to_none=True)
    everything = int((labels != PADDING).sum())
    for some, wanted in zip(inputs.chunk(steps), labels.chunk(steps), strict=True):
        scores = model(some).flatten(0, 1)  # (B T, vocabulary)
        # In float32 at least, as mixed precision does it.
        scores = scores if scores.dtype == torch.float64 else scores.float()
        loss = F.cross_entropy(scores, wanted.flatten(), ignore_index=PADDING)
        share = int((wanted != PADDING).sum()) / everything
        factor = {"loss / steps": 1 / steps, "weighted by tokens": share, "mean loss": 1.0}[way]
        (loss * factor).backward()
    return torch.cat([each.grad.double().flatten() for each in model.parameters()])


def _distance(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


@experiment("accumulation.steps", page="axioms/checkpointing.md", command="accumulation-steps")
def steps(
    device: str = "cuda:0",
    dtype: Literal["bf16", "fp32", "tf32"] = "bf16",
    width: Length = 1024,
    layers: Count = 4,
    batch: Length = 32,
    sequence: Length = 1024,
    full: bool = False,
    iters: Count = 12,
    budget_s: Seconds = 8.0,
) -> pd.DataFrame:
    """Weigh time against memory of one batch in several micro-batches, beside checkpointing it.

    Args:
        dtype: Number format of weights and activations; tf32 means float32 tensors whose products
            may use TF32.
        width: Width C of the model, a multiple of 64 or less than it.
        layers: Its layers L.
        batch: Sequences B of the full batch, a multiple of 8.
        sequence: Tokens T of the longest sequence; other cells have a quarter and a sixteenth.
        budget_s: Seconds of one cell, settling apart.

    Returns:
        One row per cell and variant: `full batch`; `2`, `4` and `8 steps`; `every layer
        checkpointed`, the full batch again. Times are step_wall of all steps, forward and backward,
        no optimizer.
    """
    where = formats.torch_device(device)
    demands.width(width)
    demands.multiple(max(STEPS), batch=batch)
    demands.weights(width, layers)
    sizes = width, layers, batch, sequence, dtype, full
    on = memory.capacity(where)
    cells = (
        {"op": each.in_steps, "batch": each.batch, "sequence": each.sequence}
        | {"width": width, "tokens": each.tokens, "dtype": dtype}
        for each in requirements.step_cells(on, *sizes)
    )
    table = grid.measure_cells(
        cells,
        partial(_cell, layers=layers, where=where, iters=iters, budget_s=budget_s),
        variants=tuple(COUNTS),
        quantity="step_wall",
        where=where,
        required=requirements.steps(on, *sizes),
        foreseen=(RuntimeError,),
    ).drop(columns=["batch", "sequence"])
    steps_of = [COUNTS[name.removesuffix(" (again)")] for name in table.variant]
    each = [tokens // n for tokens, n in zip(table.tokens, steps_of, strict=True)]
    return table.assign(steps=steps_of, step_tokens=each)


def _cell(cell: grid.Cell, layers, where, iters, budget_s) -> pd.DataFrame:
    """One cell: memory first, then times."""
    width, length, dtype = cell["width"], cell["sequence"], cell["dtype"]
    kind = formats.storage(dtype)
    calls, costs = {}, {}
    with formats.products_in(dtype):
        model = models.transformer(width, layers, where, kind)
        x = torch.randn(cell["batch"], length, width, dtype=kind, device=where)  # (B, T, C)
        checkpointed = granularities(model)["every layer"]
        for name, each in COUNTS.items():
            forward = checkpointed if "checkpointed" in name else model
            calls[name] = accumulated(forward, list(model.parameters()), x.chunk(each))
            calls[name]()  # what the first call loads and allocates for good is not the step's
            costs[name] = memory.columns(memory.peak(calls[name], where))
        table = compare(
            calls,
            allowed=ROUNDINGS * ALLOWED[kind],
            quantity="step_wall",
            op=cell["op"],
            flops=3 * layers * formulas.layer_flops(width, cell["tokens"], length),
            limit=f"matmul {dtype}",
            device=where,
            iters=iters,
            budget_s=budget_s,
            settle_cap_s=min(SETTLE_CAP_S, budget_s),
            profile=False,
        ).table
    origin = [row.removesuffix(" (again)") for row in table.variant]
    more = [costs[name] | _beside(costs[name], costs["full batch"]) for name in origin]
    return pd.concat([table, pd.DataFrame(more)], axis=1)


def _beside(costs: dict, control: dict) -> dict[str, float | None]:
    known = costs["peak_bytes"] and control["peak_bytes"]
    return {"memory_ratio": costs["peak_bytes"] / control["peak_bytes"] if known else None}


def accumulated(
    forward: Layer, parameters: Sequence[Tensor], chunks: Sequence[Tensor]
) -> Callable[[], tuple[Tensor, ...]]:
    """A call that adds up gradients of equal micro-batches (B / steps, T, C): the loss and them."""

    def call() -> tuple[Tensor, ...]:
        total = 0.0
        for chunk in chunks:
            loss = forward(chunk).float().square().mean() / len(chunks)
            loss.backward()
            total = total + loss.detach()
        found = [each.grad for each in parameters]
        for each in parameters:
            each.grad = None  # the next call begins anew, and what it returns is its own
        return total, *found

    return call
