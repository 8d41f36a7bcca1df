"""Training loops that read their loss each step, seldom, or never, of models of three sizes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.sync_points.lines import Call
from anatomy.chapters.sync_points.synchronizations import with_wait
from anatomy.comparison import compare
from anatomy.judge import gates
from anatomy.machine import host
from anatomy.parts import models
from anatomy.table.errors import BadParameter

NONE, EACH = "no readback", "item each step"
WAITS = ("wait_s", "wait_low_s", "wait_high_s")
# Seconds of one comparison after which no piece is begun that was not asked for, some six of first
# calls among them; without time left after these, three blocks would be all.
BUDGET_S, SETTLE_CAP_S = 10.0, 0.6
QUEUE_BUDGET_S = 1.0


@dataclass(frozen=True)
class Size:
    """A model by its name: width C, sequences B of `tokens` tokens T, and layers."""

    model: str
    width: int
    batch: int
    tokens: int
    layers: int


# The small model is bound by its host, which queues a hundred short kernels a step. Those of the
# medium one take about as long as queueing them, on an H200; of the large one, twice as long.
SIZES = (
    Size("small", 256, 1, 256, 2),
    Size("medium", 2048, 1, 2048, 2),
    Size("large", 2048, 2, 2048, 2),
)
FULL_SIZES = (Size("smallest", 64, 1, 64, 1), *SIZES, Size("largest", 4096, 2, 2048, 2))


def loops(
    where: torch.device, steps: int, every: int, scale: float, full: bool
) -> Iterator[pd.DataFrame]:
    """Two tables for each size of the model: queueing one step, and pieces of training."""
    if every < 1:
        raise BadParameter(f"every={every} steps are no piece of training; try every=25.")
    for size in FULL_SIZES if full else SIZES:
        yield from trained(_scaled(size, scale), where, steps, every)


def _scaled(size: Size, scale: float) -> Size:
    heads = models.HEAD_WIDTH
    width = max(heads, int(size.width * scale) // heads * heads)
    return Size(size.model, width, size.batch, max(16, int(size.tokens * scale)), size.layers)


def trained(size: Size, where: torch.device, steps: int, every: int) -> tuple[pd.DataFrame, ...]:
    """Of one model what queueing a step takes the host, and pieces of its training in all ways."""
    kind = torch.bfloat16 if where.type == "cuda" else torch.float32
    parameters = 12 * size.layers * size.width**2
    tokens = size.batch * size.tokens
    # Weights, gradients and both moments; some 34 values of width C for each token of a layer.
    need = (4 * parameters + 34 * size.layers * tokens * size.width) * kind.itemsize
    host.require_bytes(where, need, f"training the {size.model} model")
    step = step_of(size, where, kind)
    given = {
        "device": where,
        "settle_cap_s": SETTLE_CAP_S,
        "profile": False,
    }
    told = {"model": size.model, "width": size.width, "tokens": tokens, "layers": size.layers}
    queued = compare(
        {"one step": step},
        quantity="host_enqueue",
        op=f"one step, {size.model}",
        iters=12,
        budget_s=QUEUE_BUDGET_S,
        **given,
    ).table.assign(**told)
    table = compare(
        ways(step, where, every),
        quantity="step_wall",
        op=size.model,
        iters=max(1, math.ceil(steps / every)),
        budget_s=BUDGET_S,
        **given,
    ).table
    table = with_wait(table)
    each = {name: table[name].astype("float64") / every for name in WAITS}
    return queued, table.assign(
        **told,
        **each,
        steps_each=every,
        steps_timed=table.samples * every,  # a sample of short pieces holds several: at the least
        step_s=table.median_s / every,
        step_low_s=table.low_s / every,
        step_high_s=table.high_s / every,
        bound_by=bound_by(table, where),
    )


def bound_by(table: pd.DataFrame, where: torch.device) -> str | None:
    """What sets the pace of a loop without a wait; None on a CPU, where both are one."""
    if where.type != "cuda":
        return None
    control = table[table.role == "control"].iloc[0]
    # As `gates.regime` says: a period that is the host's time to queue the step is the host's.
    return "host" if control.enqueue_s >= gates.LAUNCH_BOUND_SHARE * control.median_s else "GPU"


def step_of(size: Size, where: torch.device, kind: torch.dtype) -> Call:
    """One step, which returns its loss; at a learning rate of 0 each computes the same."""
    model = models.transformer(size.width, size.layers, where, kind)
    fused = where.type == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, fused=fused)
    x = torch.randn(size.batch, size.tokens, size.width, device=where, dtype=kind)  # (B, T, C)

    def step() -> Tensor:
        loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


def ways(step: Call, where: torch.device, every: int) -> dict[str, Call]:
    """A piece of `every` steps in three ways, each of which returns the last loss."""
    seen: list[float] = []  # as a logger keeps it
    total = torch.zeros((), device=where)

    def never() -> Tensor:
        for _ in range(every):
            loss = step()
        return loss

    def each() -> Tensor:
        for _ in range(every):
            loss = step()
            seen[:] = [loss.item()]
        return loss

    def seldom() -> Tensor:
        total.zero_()
        for _ in range(every):
            loss = step()
            total.add_(loss)
        seen[:] = [total.item() / every]
        return loss

    return {NONE: never, EACH: each, f"mean each {every} steps": seldom}
