"""Training loops that read their loss each step, seldom, or never, of models of three sizes."""

import math

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.sync_points import requirements
from anatomy.chapters.sync_points.lines import Call
from anatomy.chapters.sync_points.requirements import Size
from anatomy.chapters.sync_points.synchronizations import with_wait
from anatomy.comparison import compare
from anatomy.judge import gates
from anatomy.parts import grid, memory, models

NONE, EACH = "no readback", "item each step"
WAITS = ("wait_s", "wait_low_s", "wait_high_s")
# Seconds of one comparison after which no piece is begun that was not asked for, some six of first
# calls among them; without time left after these, three blocks would be all.
BUDGET_S, SETTLE_CAP_S = 10.0, 0.6
QUEUE_BUDGET_S = 1.0


def loops(where: torch.device, steps: int, every: int, scale: float, full: bool) -> pd.DataFrame:
    """Two comparisons for each size of the model: queueing one step, and pieces of training."""
    sizes = {each.model: each for each in requirements.models(scale, full)}
    cells = (
        {"op": name, "model": name, "width": each.width, "tokens": each.batch * each.tokens}
        | {"layers": each.layers}
        for name, each in sizes.items()
    )
    return grid.measure_cells(
        cells,
        lambda cell: pd.concat(trained(sizes[cell["op"]], where, steps, every)),
        variants=tuple(ways(lambda: None, where, every)),
        quantity="step_wall",
        where=where,
        required=requirements.training_loop(memory.capacity(where), scale, full),
        promised=("wait_s", "bound_by"),
    )


def trained(size: Size, where: torch.device, steps: int, every: int) -> tuple[pd.DataFrame, ...]:
    """Of one model what queueing a step takes the host, and pieces of its training in all ways."""
    kind = torch.bfloat16 if where.type == "cuda" else torch.float32
    tokens = size.batch * size.tokens
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
