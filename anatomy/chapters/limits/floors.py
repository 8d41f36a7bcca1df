"""What it costs to ask a GPU for anything at all: launches, waits, readbacks, and graphs of them.
The work is an addition on one element, or nothing: what is timed is the way there and back."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.parts.repeats import least_calls

Call = Callable[[], Tensor]

GRAPHS = (1, 10, 100, 1000)  # kernels: cost over length is a line, its slope that of one more
# Operation -> the quantities in which it is measured.
QUANTITIES = {
    "launch": ("host_enqueue", "step_wall", "gpu_warm"),
    "wait": ("host_enqueue",),
    "graph": ("host_enqueue", "step_wall", "gpu_warm"),
}
IDLE = ("record event", "nothing")  # calls that launch no kernel
BUDGET_S = 4.0  # of one table; the seven take half a minute at the most


def costs(where: torch.device, iters: int) -> Iterator[pd.DataFrame]:
    """One table for each operation and quantity; on a CPU rows without times that say why."""
    if where.type != "cuda":
        names = {"launch": ("add",), "wait": ("synchronize",), "graph": map(_graph_name, GRAPHS)}
        for op, variants in names.items():
            told = {"op": op, "role": "variant", "device": where.type, "kernel_count": None}
            told |= {"note": f"needs a GPU that is asked for work; this is {where.type}"}
            yield pd.DataFrame(
                [
                    told | {"variant": name, "quantity": quantity}
                    for name in variants
                    for quantity in QUANTITIES[op][:1]
                ]
            )
        return
    x = torch.randn(1, device=where)
    graphs = graph_replays(x, GRAPHS)
    # The kernels of one call, where the cost of one kernel more is asked for.
    lengths = dict(zip(graphs, GRAPHS, strict=True))
    for op, calls, exact in (
        ("launch", *launches(x)),
        ("wait", *waits(x)),
        ("graph", graphs, dict.fromkeys(graphs, lambda: x.double() + 1)),
    ):
        least = least_calls(iters, calls.values(), stopwatch_for(where))
        for quantity in QUANTITIES[op]:
            # On the GPU there is nothing to time of a call that gives it nothing to do.
            idle = IDLE if quantity == "gpu_warm" else ()
            table = compare(
                {name: call for name, call in calls.items() if name not in idle},
                reference=exact,
                quantity=quantity,
                op=op,
                device=where,
                iters=least,
                budget_s=BUDGET_S,
                profile=False,
            ).table
            origin = [name.removesuffix(" (again)") for name in table.variant]
            yield table.assign(kernel_count=[lengths.get(name) for name in origin])


def launches(x: Tensor) -> tuple[dict[str, Call], dict[str, Call]]:
    """Ways to ask for one small thing, none of which waits for it, and what each must return.
    `empty kernel` is the cheapest that PyTorch has (`torch.cuda._sleep` of one cycle), `record
    event` launches none, and `nothing` is the cost of calling Python."""
    y, event = torch.empty_like(x), torch.cuda.Event()

    def then(act: Callable[[], object]) -> Call:
        def call() -> Tensor:
            act()
            return x

        return call

    calls = {
        "add": lambda: torch.add(x, 1.0, out=y),
        "add, new result": lambda: x + 1.0,
        "empty kernel": then(lambda: torch.cuda._sleep(1)),
        "record event": then(event.record),
        "nothing": then(lambda: None),
    }
    exact = {way: (lambda: x.double() + 1) if way.startswith("add") else x.double for way in calls}
    return calls, exact


def waits(x: Tensor) -> tuple[dict[str, Call], dict[str, Call]]:
    """Ways to wait for the GPU, from an empty queue, and what each must return: `synchronize` with
    nothing to wait for, after one kernel, and one element brought to the host in two ways."""
    y = torch.empty_like(x)
    there = np.zeros(x.shape, dtype=np.float32)
    read = torch.from_numpy(there)  # shares its memory, so that storing costs next to nothing

    def synchronize() -> Tensor:
        torch.cuda.synchronize(x.device)
        return x

    def after_add() -> Tensor:
        torch.add(x, 1.0, out=y)
        torch.cuda.synchronize(x.device)
        return y

    def item() -> Tensor:
        there[0] = x.item()
        return read

    calls = {"synchronize": synchronize, "add, synchronize": after_add, "item": item, "cpu": x.cpu}
    exact = {
        "synchronize": x.double,
        "add, synchronize": lambda: x.double() + 1,
        "item": lambda: x.cpu().double(),
        "cpu": lambda: x.cpu().double(),
    }
    return calls, exact


def graph_replays(x: Tensor, lengths: Sequence[int]) -> dict[str, Call]:
    """Replays of CUDA graphs that add to one element so many times, one kernel after the other."""
    return {_graph_name(length): _replay(x, length) for length in lengths}


def _graph_name(length: int) -> str:
    return f"graph of {length}"


def _replay(x: Tensor, length: int) -> Call:
    y, graph = torch.empty_like(x), torch.cuda.CUDAGraph()
    torch.add(x, 1.0, out=y)  # what is loaded at the first call is not loaded while capturing
    torch.cuda.synchronize(x.device)
    with torch.cuda.graph(graph):
        for _ in range(length):
            torch.add(x, 1.0, out=y)

    def call() -> Tensor:
        graph.replay()
        return y

    return call
