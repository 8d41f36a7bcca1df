"""What one call costs the CPU: one addition by each way into the dispatcher.

A way is called in a loop of 20 and in one of 120, timed in the same blocks. What the longer loop
takes more, over a hundred, is one call: entering a context, the loop's own beginning and the clock
are in both."""

from collections.abc import Callable
from contextlib import ContextDecorator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from anatomy.chapters.dispatch import requirements
from anatomy.chapters.dispatch.keys import keys_of
from anatomy.comparison import compare
from anatomy.numerics import formats
from anatomy.parts import grid, memory, own_blocks
from anatomy.record.bounds import Count
from anatomy.record.declare import experiment

SHORT, LONG = 20, 120  # calls of a loop: far fewer than the queue of launches holds
QUANTITY = "host_enqueue"
HOW = {"quantity": QUANTITY, "profile": False, "budget_s": 6.0, "settle_cap_s": 1.0}
SIDE = 8  # of the matrices: a multiple of 16 bytes, and next to no work

Body = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Way:
    """One way to call: `call` is done in a loop, by a function that `wrap` puts into its context.
    `op` and `given` tell the dispatcher's tables which keys that takes."""

    call: Callable[..., Any]
    exact: Callable[[], Tensor]
    op: str = "aten::add.Tensor"  # or empty, where there is no operator
    given: tuple[Tensor, ...] = ()
    wrap: Callable[[Body], Body] = lambda body: body
    enters: str | None = None
    at_once: bool = False  # whether `call` is given the number of calls, and does them in one

    def loop(self, x: Tensor, count: int) -> Callable[[], Tensor]:
        """So many calls."""

        def body(x: Tensor) -> Tensor:
            if self.at_once:
                return self.call(count)
            for _ in range(count):
                out = self.call(x)
            return out if isinstance(out, Tensor) else x

        wrapped = self.wrap(body)
        return lambda: wrapped(x).detach()

    def keys(self, x: Tensor) -> str | None:
        """The keys of the first call, as in the column; None where there is no operator."""
        found: list[str | None] = [None]

        def body(x: Tensor) -> Tensor:
            found[0] = keys_of(self.op, *(self.given or (x,)))
            return x

        if self.op:
            self.wrap(body)(x)
        return found[0]


class PassOn(TorchDispatchMode, ContextDecorator):
    """A mode that sees every operator below autograd, and only calls it; a decorator, too."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Plain(Tensor):
    """A subclass that adds nothing."""


@torch.library.custom_op("anatomy::own_add", mutates_args=())
def own_add(a: Tensor, b: Tensor) -> Tensor:
    """An operator of our own whose body is one addition."""
    return torch.add(a, b)


@experiment("dispatch.calls", page="curriculum/day_09.md")
def calls(device: str = "cuda:0", iters: Count = 12) -> pd.DataFrame:
    """Measure what one call costs the CPU: an addition plain, recorded, in contexts, by Python.

    Returns:
        One row per way: the host's time of one call, the slope between loops of two lengths; and
        the dispatch keys of that call.
    """
    where = formats.torch_device(device)
    makers = {"one call": additions, "one matmul": matmuls}
    return grid.measure_cells(
        [{"op": op} for op in makers],
        lambda cell: _slopes(cell["op"], *makers[cell["op"]](where), where, iters),
        variants=lambda cell: list(makers[cell["op"]](where)[1]),
        quantity=QUANTITY,
        where=where,
        required=requirements.calls(memory.capacity(where)),
        promised=("keys", "enters"),
    )


def additions(where: torch.device) -> tuple[Tensor, dict[str, Way]]:
    """Ways to add two tensors of one element, the control first, and calls that add nothing."""
    x, y = torch.randn(2, 1, device=where)
    z, graded, own = torch.empty_like(x), x.clone().requires_grad_(), x.as_subclass(Plain)
    many = [[each.clone() for _ in range(LONG)] for each in (x, y)]
    same = partial(Way, exact=x.double)
    add = partial(Way, exact=lambda: x.double() + y)
    within = partial(add, lambda x: torch.add(x, y))
    return x, {
        "torch.add": within(),
        "a Python function": same(lambda x: x, op=""),
        "x.size(0)": same(lambda x: x.size(0), op=""),
        "x.view(1)": same(lambda x: x.view(1), op="aten::view"),
        "torch.add, out=": add(lambda x: torch.add(x, y, out=z), op="aten::add.out"),
        "torch._foreach_add": add(
            lambda count: torch._foreach_add(many[0][:count], many[1][:count])[-1],
            op="aten::_foreach_add.List",
            at_once=True,
        ),
        "inference_mode": within(wrap=torch.inference_mode()),
        "no_grad": within(wrap=torch.no_grad()),
        "requires_grad": add(lambda _: torch.add(graded, y), given=(graded, y)),
        "autocast": within(wrap=torch.autocast(where.type, torch.bfloat16)),
        "vmap": within(wrap=lambda body: lambda x: torch.vmap(body)(x[None])[0]),
        "subclass": add(lambda _: torch.add(own, y), given=(own, y), enters="__torch_function__"),
        "dispatch mode": within(wrap=PassOn()),
        "custom op": add(lambda x: own_add(x, y), op="anatomy::own_add", enters="torch.library"),
    }


def matmuls(where: torch.device) -> tuple[Tensor, dict[str, Way]]:
    """A matmul that autocast has nothing to cast of, in and out of it."""
    a, b = torch.randn(2, SIDE, SIDE, device=where).to(torch.bfloat16)
    mm = partial(Way, lambda a: torch.mm(a, b), lambda: a.double() @ b.double(), op="aten::mm")
    cast = mm(wrap=torch.autocast(where.type, torch.bfloat16))
    return a, {"matmul": mm(), "matmul, autocast": cast}


def _slopes(
    op: str, x: Tensor, ways: dict[str, Way], where: torch.device, iters: int
) -> pd.DataFrame:
    """The rows of all ways, the control twice: in each block, what a call more takes."""
    control = next(iter(ways))
    ways = {**ways, own_blocks.again(control): ways[control]}
    loops = {(name, n): f"{name}, {n}" for name in ways for n in (SHORT, LONG)}
    calls = {loop: ways[name].loop(x, n) for (name, n), loop in loops.items()}
    exact = {loop: ways[name].exact for (name, _), loop in loops.items()}
    how = HOW | {"op": op, "device": where, "iters": iters}
    table = compare(calls, reference=exact, **how).table
    timed = {row["variant"]: row for row in table.to_dict("records")}
    blocks, columns = {}, {}
    for name, way in ways.items():
        short, long = (timed[loops[name, n]] for n in (SHORT, LONG))
        pairs = zip(long["blocks_s"], short["blocks_s"], strict=True)
        blocks[name] = [(above - below) / (LONG - SHORT) for above, below in pairs]
        columns[name] = {"error": long["error"], "enters": way.enters, "keys": way.keys(x)}
        columns[name] |= {"samples": short["samples"] + long["samples"]}
        columns[name] |= {"method": f"{long['method']}; slope from {SHORT} to {LONG} calls"}
    return own_blocks.compared(blocks, columns, op=op, quantity=QUANTITY, device=where.type)
