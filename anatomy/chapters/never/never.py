"""The list of what never to do: each entry beside what one would do instead, and its cost for one
use: one trip to the CPU, one element of a loop, one line of a log."""

import copy
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from anatomy.chapters.never import requirements
from anatomy.chapters.never.requirements import (
    FIRST,
    INITIALIZED,
    LOOPED,
    first_sizes,
    logged,
    sized,
    travelling,
)
from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import formats
from anatomy.parts import grid, memory, models
from anatomy.parts.grid import with_counts
from anatomy.parts.models import half
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.table import intervals

Call = Callable[[], Tensor]

PATIENCE_STEPS = 50  # steps after which a patient log says something
FIRST_CALLS, WARM_S = 20, 1.0  # timed one by one; then calls for so long, then as many again
BUDGET_S, SETTLE_CAP_S = 1.5, 0.5  # seconds of one comparison, and of settling before it
LONG_BUDGET_S, LONG_ELEMENTS = 4.0, 2**22  # of long calls, whose sampling takes long to decide
ALLOWED_GRADIENTS = 2**-4  # bfloat16, four layers: eight roundings of 2**-8, each way, at worst


@experiment("never.costs", page="axioms/never.md", command="never")
def costs(device: str = "cuda:0", scale: Scale = 1.0, iters: Count = 12) -> pd.DataFrame:
    """Time each entry of the Never list beside what one would do instead.

    Args:
        scale: Share of the widths, tokens and elements that is used; less for a small machine.

    Returns:
        Rows of op `first calls ...`, one sample each, as step_wall: calls 1 to 20 of a fresh
        process, and `warm`, the median of as many a second later. All other ops are comparisons.
    """
    where = formats.torch_device(device)
    watch = stopwatch_for(where)
    looped = max(8, int(LOOPED * min(1.0, scale * 10)))
    # First, or this process would have computed something before.
    entries = {FIRST: partial(first_calls, watch, scale)}
    for elements in travelling(scale):
        entries[f"ping-pong {elements}"] = partial(ping_pong, elements, where, iters)
    entries["loop over elements"] = partial(element_loop, looped, where, iters)
    for width, tokens in logged(scale):
        named = f"logging C={width} T={tokens}"
        entries[named] = partial(logged_step, width, tokens, where, iters)
    entries["initialization"] = partial(initialization, scale, where, iters)
    found = grid.measure_cells(
        [{"op": op} for op in entries],
        lambda cell: entries[cell["op"]](),
        variants=lambda cell: [cell["op"]],
        quantity="step_wall",
        where=where,
        required=requirements.costs(memory.capacity(where), scale),
    )
    several = "needs several GPUs: it is measured with the pages on distributed training"
    rest = pd.DataFrame([{"op": "DataParallel", "variant": "DataParallel", "note": several}])
    found = pd.concat([found, rest], ignore_index=True)
    return with_counts(found, "call", "elements", "uses", "width", "tokens")


def _measured(op: str, calls: dict[str, Call], where, iters: int, **more) -> pd.DataFrame:
    """One comparison of the wall time of a step, the first of `calls` being the control."""
    settings = {"quantity": "step_wall", "profile": False, "budget_s": BUDGET_S} | more
    return compare(
        calls, op=op, device=where, iters=iters, settle_cap_s=SETTLE_CAP_S, **settings
    ).table


def per_use(table: pd.DataFrame, uses: dict[str, float]) -> pd.DataFrame:
    """Add what one use takes more than the control, block by block, where a variant has `uses`."""
    base = np.asarray(table[table.role == "control"].iloc[0].blocks_s)
    found = []
    for row in table.itertuples():
        count = uses.get(row.variant)
        if not count:
            found.append((None, None, None, None))
            continue
        each = intervals.median_interval((np.asarray(row.blocks_s) - base) / count)
        found.append((count, each.median, each.low, each.high))
    names = ("uses", "use_s", "use_low_s", "use_high_s")
    return table.assign(**dict(zip(names, map(list, zip(*found, strict=True)), strict=True)))


def ping_pong(elements: int, where: torch.device, iters: int) -> pd.DataFrame:
    """A chain of three small operations that stays where it is, and one whose middle does not."""
    x = torch.randn(elements, device=where)

    def stay() -> Tensor:
        return (x * 2.0 + 1.0).abs()

    def travel() -> Tensor:
        there = (x * 2.0).to("cpu", copy=True)
        return (there + 1.0).to(where, copy=True).abs()

    def exact() -> Tensor:
        return (x.double() * 2.0 + 1.0).abs()

    ways = {"stay on the GPU": stay, "by way of the CPU": travel}
    budget_s = LONG_BUDGET_S if elements >= LONG_ELEMENTS else BUDGET_S
    op = f"ping-pong {elements}"
    table = _measured(op, ways, where, iters, reference=exact, budget_s=budget_s)
    return per_use(table, {"by way of the CPU": 1}).assign(elements=elements)


def element_loop(elements: int, where: torch.device, iters: int) -> pd.DataFrame:
    """A sum of squares as one expression, and as loops of Python over the elements."""
    x = torch.randn(elements, device=where)

    def loop() -> Tensor:
        total = torch.zeros((), device=where)
        for value in x:
            total = total + value * value
        return total

    def loop_of_items() -> Tensor:
        total = 0.0
        for value in x:
            total += value.item() ** 2
        return torch.full((), total, device=where)

    def list_first() -> Tensor:
        return torch.full((), sum(value * value for value in x.tolist()), device=where)

    ways = {
        "one expression": lambda: (x * x).sum(),
        "loop over the tensor": loop,
        "loop with .item()": loop_of_items,
        ".tolist(), then a loop": list_first,
    }
    table = _measured(
        "loop over elements", ways, where, iters, reference=lambda: x.double().square().sum()
    )
    uses = dict.fromkeys(list(ways)[1:], elements)
    return per_use(table, uses).assign(elements=elements)


def logged_step(width: int, tokens: int, where: torch.device, iters: int) -> pd.DataFrame:
    """A layer's training step that says nothing, its loss each time, or a mean now and then."""
    model = models.transformer(width, 1, where, half(where))
    x = torch.randn(1, tokens, width, device=where, dtype=half(where))  # (B, T, C)
    step = models.gradients_of(model, list(model.parameters()), x)
    lines: list[str] = []

    def say(text: str) -> None:  # as a logger does, without a terminal
        lines[:] = [text]

    def silent() -> Tensor:
        return step()[0]

    def every() -> Tensor:
        loss = step()[0]
        say(f"loss {loss.item():.4f}")
        return loss

    total, seen = torch.zeros((), device=where), 0

    def patient() -> Tensor:
        nonlocal seen
        loss = step()[0]
        total.add_(loss)
        seen += 1
        if seen == PATIENCE_STEPS:
            say(f"mean loss {total.item() / seen:.4f}")
            total.zero_()
            seen = 0
        return loss

    ways = {"no log": silent, "each step": every, f"each {PATIENCE_STEPS} steps": patient}
    table = _measured(f"logging C={width} T={tokens}", ways, where, iters)
    return per_use(table, {"each step": 1}).assign(width=width, tokens=tokens)


def initialization(scale: float, where: torch.device, iters: int) -> pd.DataFrame:
    """One training step of a stack of linear layers from different first weights."""
    width, tokens = (sized(full, scale) for full in INITIALIZED[:2])
    x = torch.randn(tokens, width, device=where, dtype=half(where))  # (tokens, C)
    default = nn.Sequential(*(nn.Linear(width, width) for _ in range(INITIALIZED[2])))
    ways: dict[str, Callable[[Tensor], object]] = {
        "default": lambda weight: weight,
        "xavier": nn.init.xavier_uniform_,
        "normal, 0.02": lambda weight: nn.init.normal_(weight, std=0.02),
        "all equal": lambda weight: nn.init.constant_(weight, 1.0 / width),
        "zeros": nn.init.zeros_,
    }
    calls, exact = {}, {}
    for name, fill in ways.items():
        model = copy.deepcopy(default)
        for layer in model:
            fill(layer.weight)
            if name != "default":
                nn.init.zeros_(layer.bias)
        model.to(where, half(where))
        calls[name] = _loss_and_first(model, x)
        exact[name] = _in_double(model, x)
    table = _measured(
        "initialization",
        calls,
        where,
        iters,
        reference=exact,
        allowed=ALLOWED_GRADIENTS,
        quantity="gpu_warm",
        budget_s=LONG_BUDGET_S,
        profile=True,
        # Forward once and backward twice; the first layer's input needs no gradient.
        flops=2 * tokens * width**2 * (3 * INITIALIZED[2] - 1),
        # Of the products: what is returned first is the loss, which is float32.
        limit=f"matmul {formats.number_format(half(where))}",
    )
    return table.assign(width=width, tokens=tokens)


def _loss_and_first(model: nn.Sequential, x: Tensor) -> Callable[[], tuple[Tensor, ...]]:
    step = models.gradients_of(model, list(model.parameters()), x)
    return lambda: step()[:2]


def _in_double(model: nn.Sequential, x: Tensor) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: _loss_and_first(copy.deepcopy(model).double(), x.double())()


def first_calls(watch: Stopwatch, scale: float) -> pd.DataFrame:
    """Calls 1 to 20 of things that this process has not done yet, and calls a second later."""
    where, kind = watch.device, half(watch.device)
    side, width, tokens = first_sizes(scale)
    a = torch.randn(side, side, device=where, dtype=kind)
    model = models.transformer(width, 1, where, kind)
    parameters = list(model.parameters())
    inputs = [
        torch.randn(1, n, width, device=where, dtype=kind)  # (B, T, C)
        for n in (tokens, tokens + 16)
    ]
    step, other = (models.gradients_of(model, parameters, x) for x in inputs)
    rows = []
    for op, call in {
        "first calls, product": lambda: a @ a,
        "first calls, training step": step,
        "first calls, another shape": other,
    }.items():
        rows += _curve(op, call, watch)
    return pd.DataFrame(rows)


def _curve(op: str, call: Callable[[], object], watch: Stopwatch) -> list[dict]:
    """The time of each of the first calls, and of calls a second later, each timed alone."""
    first = [watch.wall([call]) for _ in range(FIRST_CALLS)]
    until = watch.now() + WARM_S
    while watch.now() < until:
        watch.wall([call] * 10)
    later = [watch.wall([call]) for _ in range(FIRST_CALLS)]
    warm = intervals.median_interval(later)
    told = {"op": op, "role": "variant", "quantity": "step_wall", "device": watch.device.type}
    told |= {"method": "host clock around one call and a synchronize"}
    rows = [
        told
        | {"variant": f"call {number}", "call": number, "median_s": seconds, "samples": 1}
        | {"blocks_s": [seconds], "over_warm": seconds / warm.median}
        for number, seconds in enumerate(first, start=1)
    ]
    mean_s = sum(first) / len(first)  # what a benchmark would report that averages all of them
    return [
        *rows,
        told
        | {"variant": "warm", "median_s": median(later), "low_s": warm.low, "high_s": warm.high}
        | {"samples": len(later), "blocks_s": later, "over_warm": 1.0}
        | {"mean_first_s": mean_s, "mean_over_warm": mean_s / warm.median},
    ]
