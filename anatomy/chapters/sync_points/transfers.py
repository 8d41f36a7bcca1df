"""Copies between host and GPU: what they cost the host, when they wait, and go wrong."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Annotated

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.sync_points import requirements
from anatomy.chapters.sync_points.lines import Call
from anatomy.chapters.sync_points.requirements import DIRECTIONS, copied_bytes, copy_op
from anatomy.chapters.sync_points.synchronizations import waits_for_gpu
from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import formats
from anatomy.parts import grid, memory
from anatomy.record.bounds import Between, Count, Scale
from anatomy.record.declare import experiment
from anatomy.table.errors import DisagreementError

# Name of a way -> whether the host's memory is pinned, and whether non_blocking is asked for.
WAYS = {
    "pageable": (False, False),
    "pageable, non_blocking": (False, True),
    "pinned": (True, False),
    "pinned, non_blocking": (True, True),
}
QUANTITIES = ("host_enqueue", "step_wall")
BESIDE = "beside a product"
BESIDE_WAYS = ("pinned, one stream", "pinned, two streams")
BESIDE_WAYS += ("pageable, one stream", "pageable, two streams", "the product alone")
BUDGET_S, SETTLE_CAP_S = 0.6, 0.3  # seconds of each of 21 comparisons, and of settling before it
# From so many bytes on it takes more: the few calls that only decide how to sample them take a
# second, and what is left must do for twelve blocks.
LARGE_BYTES, LARGE_BUDGET_S = 2**27, 4.0
HELD_S = 0.02  # sleep before the copies that are watched; long against what the host does
EIGHT = range(8)  # blocks of memory
BEFORE, COPIED, AFTER = -1.0, 1.0, 2.0  # in memory before a copy, in what is copied, and after it


@experiment("transfers.to_device", page="axioms/syncs.md", command="transfers", timeout_s=300)
def to_device(
    device: str = "cuda:0", scale: Scale = 1.0, iters: Count = 6, full: bool = False
) -> pd.DataFrame:
    """Time copies from the host and back, with pinned memory and without, asked to wait or not.

    Args:
        device: Where to copy to, such as cuda:0.
        scale: Share of the bytes that is copied; less for a small machine.

    Returns:
        For each `direction` and `bytes` rows for each way of memory (`pinned`) and call
        (`non_blocking`), with `pageable` as control: as host_enqueue, the time until the call
        returns; as step_wall, of the largest, that of one copy in a row of them. `beside a
        product`, as step_wall: a product and a copy to the GPU in one stream (control), and in two.
    """
    where = formats.torch_device(device)
    sizes = copied_bytes(scale, full)
    cells = [
        {"op": copy_op(direction, size), "direction": direction, "bytes": size}
        for direction in DIRECTIONS
        for size in sizes
    ]

    def quantities(cell: grid.Cell) -> Sequence[str]:
        # How fast a bus copies, the largest copies tell.
        return QUANTITIES if full or cell["bytes"] == sizes[-1] else QUANTITIES[:1]

    how = {
        "where": where,
        "required": list(requirements.to_device(memory.capacity(where), scale, full)),
        "foreseen": (RuntimeError,),  # as of page-locked memory that the host has not
    }
    if where.type != "cuda":
        note = f"needs a GPU to copy to and from; this is {where.type}"
        notes = dict.fromkeys(WAYS, note)
        refused = partial(grid.unmeasured, notes=notes, quantity="step_wall", where=where)
        return grid.joined([refused(cell) for cell in cells])
    watch = stopwatch_for(where)
    copied = grid.measure_cells(
        cells,
        lambda cell: pd.concat(
            copies(cell["direction"], cell["bytes"], watch, iters, quantities(cell))
        ),
        variants=tuple(WAYS),
        quantity=quantities,
        **how,
    )
    both = grid.measure_cells(
        [{"op": BESIDE}],
        lambda cell: beside(where, scale, iters),
        variants=BESIDE_WAYS,
        quantity="step_wall",
        **how,
    )
    return pd.concat([copied, both], ignore_index=True)


def copies(
    direction: str,
    size: int,
    watch: Stopwatch,
    iters: int,
    quantities: Sequence[str] = QUANTITIES,
) -> Iterator[pd.DataFrame]:
    """A table of each of these quantities: copies of `size` bytes, a multiple of 4, one way."""
    calls, exact = ways_of(direction, size, watch.device)
    watch.wall([*calls.values()] * 2)  # first calls allocate, which may wait by itself
    waits = {name: waits_for_gpu(watch, call) for name, call in calls.items()}
    for quantity in quantities:
        table = compare(
            calls,
            reference=exact,
            quantity=quantity,
            op=copy_op(direction, size),
            device=watch.device,
            iters=iters,
            budget_s=LARGE_BUDGET_S if size >= LARGE_BYTES else BUDGET_S,
            settle_cap_s=SETTLE_CAP_S,
            profile=False,
        ).table
        names = [name.removesuffix(" (again)") for name in table.variant]
        yield table.assign(
            direction=direction,
            bytes=size,  # after the comparison: no ceiling of the GPU's own memory bounds a bus
            pinned=[WAYS[name][0] for name in names],
            non_blocking=[WAYS[name][1] for name in names],
            waits=[waits[name] for name in names],
        )


def ways_of(direction: str, size: int, where: torch.device) -> tuple[dict[str, Call], Call]:
    """The four ways to copy `size` bytes, and what they return in higher precision. A copy to the
    host goes into memory that is there already, and returns its source: what it copied can't be
    looked at before a synchronization, so it is checked here (DisagreementError)."""
    x = torch.randn(size // 4, device=where)
    calls: dict[str, Call] = {}
    for name, (pinned, non_blocking) in WAYS.items():
        host = torch.empty(size // 4, pin_memory=pinned and where.type == "cuda")
        if direction == DIRECTIONS[0]:
            host.copy_(x)
            calls[name] = _uploaded(host, where, non_blocking)
            continue
        calls[name] = _downloaded(x, host, non_blocking)
        host.fill_(float("nan"))
        calls[name]()
        if where.type == "cuda":
            torch.cuda.synchronize(where)
        if not torch.equal(host, x.cpu()):
            raise DisagreementError(f"{name}: the copy to the host brought something else.")
    return calls, x.double


def _uploaded(host: Tensor, where: torch.device, non_blocking: bool) -> Call:
    return lambda: host.to(where, non_blocking=non_blocking, copy=True)


def _downloaded(x: Tensor, host: Tensor, non_blocking: bool) -> Call:
    def call() -> Tensor:
        host.copy_(x, non_blocking=non_blocking)
        return x

    return call


def beside(where: torch.device, scale: float, iters: int) -> pd.DataFrame:
    """A product and a copy to the GPU that do not need each other: in one stream, and in two."""
    side, count = requirements.beside_sizes(scale)
    a, b = (torch.randn(side, side, device=where, dtype=torch.bfloat16) for _ in range(2))
    y = torch.empty(count, device=where)
    pageable = torch.randn(count)
    hosts = {"pageable": pageable, "pinned": pageable.pin_memory()}
    second = torch.cuda.Stream(where)

    def one(host: Tensor) -> Callable[[], tuple[Tensor, Tensor]]:
        def call() -> tuple[Tensor, Tensor]:
            y.copy_(host, non_blocking=True)
            return a @ b, y

        return call

    def two(host: Tensor) -> Callable[[], tuple[Tensor, Tensor]]:
        def call() -> tuple[Tensor, Tensor]:
            first = torch.cuda.current_stream(where)
            second.wait_stream(first)  # y is free only when the call before is done with it
            with torch.cuda.stream(second):
                y.copy_(host, non_blocking=True)
            product = a @ b
            first.wait_stream(second)
            return product, y

        return call

    def alone() -> tuple[Tensor, Tensor]:
        return a @ b, y

    exact_y = pageable.to(where).double()
    y.copy_(pageable)
    calls = one(hosts["pinned"]), two(hosts["pinned"]), one(pageable), two(pageable), alone
    return compare(
        dict(zip(BESIDE_WAYS, calls, strict=True)),
        reference=lambda: (a.double() @ b.double(), exact_y),
        quantity="step_wall",
        op=BESIDE,
        flops=2 * side**3,
        limit="matmul bf16",
        device=where,
        iters=iters,
        budget_s=3 * BUDGET_S,
        settle_cap_s=2 * SETTLE_CAP_S,
        profile=False,
    ).table.assign(bytes=4 * count)


@experiment("transfers.hazard", page="axioms/syncs.md", command="transfers-hazard", timeout_s=120)
def hazard(
    device: str = "cuda:0", elements: Annotated[int, Between(1, 1_073_741_824)] = 1048576
) -> pd.DataFrame:
    """See what is read by a host that does not wait for a copy, and what an early reuse sends.

    The GPU is kept busy in front of each copy, so that what happens does not depend on luck.

    Args:
        device: Where to copy to and from, such as cuda:0.
        elements: Elements of the tensor that is copied.

    Returns:
        One row per `variant`, without times.
    """
    where = formats.torch_device(device)
    (required,) = requirements.hazard(memory.capacity(where), elements)
    if where.type != "cuda":
        why = f"needs a GPU to copy to and from; this is {where.type}"
    else:
        why = required.why_not(memory.capacity(where))
    rows = None
    if not why:
        rows, why = grid.attempt(partial(_hazards, elements, where), where, (RuntimeError,))
    return pd.DataFrame(rows or [{"variant": name, "note": why} for name in HAZARDS])


def _hazards(elements: int, where: torch.device) -> list[dict]:
    watch = stopwatch_for(where)
    x = torch.full((elements,), COPIED, device=where)
    return [{"variant": name} | _seen(way, x, watch) for name, way in HAZARDS.items()]


def _seen(way: Callable[[Tensor, Stopwatch], tuple], x: Tensor, watch: Stopwatch) -> dict:
    read, later = way(x, watch)
    told = {"before": BEFORE, "copied": COPIED, "read": read, "later": later}
    return told | {"stale": read not in (COPIED, None) or later != COPIED}


def _read_into(pinned: bool, non_blocking: bool) -> Callable[[Tensor, Stopwatch], tuple]:
    """Copy `x` into memory of the host that is there already, and look at it at once."""

    def way(x: Tensor, watch: Stopwatch) -> tuple[float, float]:
        host = torch.full(x.shape, BEFORE, dtype=x.dtype, pin_memory=pinned)
        watch.drain()
        watch.hold(HELD_S)
        host.copy_(x, non_blocking=non_blocking)
        read = float(host[-1])
        watch.drain()
        return read, float(host[-1])

    return way


def _to_cpu(non_blocking: bool) -> Callable[[Tensor, Stopwatch], tuple]:
    """`.to("cpu")`, into memory that PyTorch hands out: with luck, that of the tensor before it."""

    def way(x: Tensor, watch: Stopwatch) -> tuple[float, float]:
        for pinned in {False, x.is_cuda}:
            # Several, so that no block is left in which an earlier copy still stands.
            stale = [torch.full(x.shape, BEFORE, dtype=x.dtype, pin_memory=pinned) for _ in EIGHT]
            del stale
        watch.drain()
        watch.hold(HELD_S)
        host = x.to("cpu", non_blocking=non_blocking)
        read = float(host[-1])
        watch.drain()
        return read, float(host[-1])

    return way


def _overwritten(pinned: bool) -> Callable[[Tensor, Stopwatch], tuple]:
    """Copy to the GPU without waiting, and use the source's memory for something else at once."""

    def way(x: Tensor, watch: Stopwatch) -> tuple[None, float]:
        host = torch.full(x.shape, COPIED, dtype=x.dtype, pin_memory=pinned)
        y = torch.full_like(x, BEFORE)
        watch.drain()
        watch.hold(HELD_S)
        y.copy_(host, non_blocking=True)
        host.fill_(AFTER)
        watch.drain()
        return None, float(y[-1])

    return way


HAZARDS = {
    "pinned.copy_(t)": _read_into(True, False),
    "pinned.copy_(t, non_blocking=True)": _read_into(True, True),
    "pageable.copy_(t, non_blocking=True)": _read_into(False, True),
    't.to("cpu")': _to_cpu(False),
    't.to("cpu", non_blocking=True)': _to_cpu(True),
    "t.copy_(pinned, non_blocking=True); pinned.fill_(2)": _overwritten(True),
    "t.copy_(pageable, non_blocking=True); pageable.fill_(2)": _overwritten(False),
}
