"""Workloads that are each built so that one thing holds them back."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from anatomy.chapters.bottlenecks.requirements import sized
from anatomy.diagnosis.bottleneck import COMPUTE, INPUT, LAUNCH, MEMORY, SYNC
from anatomy.parts.models import half

Call = Callable[[], Any]

LAUNCHES, ROUNDS = 200, 30  # kernels of what is all launches; rounds of those that wait in each


@dataclass
class Workload:
    """A step, and the bottleneck that it was built to have."""

    name: str
    expected: str  # the bottleneck
    call: Call  # one step; it returns what it computes
    step: Callable[..., Any] | None = None  # the same for `diagnose`, where it is given its input
    inputs: Callable[[], Iterator[Any]] | None = None  # by this
    without: Call | None = None  # the same result without what holds it back, where possible
    missing: str = ""  # why there is none, although there should be


def _matmul(where: torch.device, scale: float) -> Workload:
    side = sized(8192, scale)
    a, b = (torch.randn(side, side, dtype=half(where), device=where) for _ in range(2))
    return Workload("matmul", COMPUTE, lambda: a @ b)


def _attention(where: torch.device, scale: float) -> Workload:
    size = (4, 16, sized(4096, scale), 128)  # (B, H, T, D)
    q, k, v = (torch.randn(size, dtype=half(where), device=where) for _ in range(3))

    def call() -> Tensor:
        with torch.inference_mode():
            return F.scaled_dot_product_attention(q, k, v)

    return Workload("attention", COMPUTE, call)


def _copy(where: torch.device, scale: float) -> Workload:
    x = torch.randn(sized(2**27, scale), device=where)
    y = torch.empty_like(x)
    return Workload("copy", MEMORY, lambda: y.copy_(x))


def _layer_norm(where: torch.device, scale: float) -> Workload:
    x = torch.randn(sized(2**16, scale), sized(4096, scale), dtype=half(where), device=where)
    width = x.shape[1:]

    def call() -> Tensor:
        with torch.inference_mode():
            return F.layer_norm(x, width)

    return Workload("layer_norm", MEMORY, call)


def _embedding(where: torch.device, scale: float) -> Workload:
    table = torch.randn(sized(2**20, scale), 256, device=where)
    rows = torch.randint(len(table), (sized(2**19, scale),), device=where)

    def call() -> Tensor:
        with torch.inference_mode():
            return F.embedding(rows, table)

    return Workload("embedding", MEMORY, call)


def _additions(where: torch.device, scale: float) -> Workload:
    x = torch.randn(1024, device=where)
    y = torch.empty_like(x)

    def call() -> Tensor:
        torch.add(x, 1.0, out=y)
        for _ in range(LAUNCHES - 1):
            torch.add(y, 1.0, out=y)
        return y

    return _with_graph(Workload("200 additions", LAUNCH, call), where)


def _training(where: torch.device, scale: float) -> Workload:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU())
    model.append(nn.Linear(256, 64)).to(where)
    # A rate of 0 runs every kernel of the optimizer and leaves the answer as it is.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    x, target = (torch.randn(64, 64, device=where) for _ in range(2))

    def call() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return _with_graph(Workload("small training step", LAUNCH, call), where)


def _with_graph(workload: Workload, where: torch.device) -> Workload:
    """The workload with its CUDA graph as the same work without the host's launches."""
    if where.type != "cuda":
        return workload
    try:
        workload.without = _replay(workload.call)
    except (RuntimeError, KeyError) as error:
        workload.missing = f"{workload.name}: no CUDA graph: {str(error).splitlines()[0]}"
    return workload


def _replay(call: Call) -> Call:
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):  # what is made at the first calls is not made while capturing
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(beside)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call()

    def replay() -> Tensor:
        graph.replay()
        return out

    return replay


def _item(where: torch.device, scale: float) -> Workload:
    # A kernel about as long as the way to the host and back: a longer one would hide the wait that
    # is to be seen, and with a shorter one the launches would be what takes the time.
    x = torch.randn(sized(2**22, scale), device=where)
    y, total = torch.empty_like(x), [0.0]
    head = y[:1]

    def call(read: bool) -> Tensor:
        for _ in range(ROUNDS):
            torch.add(x, 1.0, out=y)
            if read:
                total[0] = head.item()
        return y

    return Workload("item in every round", SYNC, partial(call, True), without=partial(call, False))


def _nonzero(where: torch.device, scale: float) -> Workload:
    x = (torch.randn(sized(2**22, scale), device=where) > 1.0).float()
    size = int(x.count_nonzero())

    def call() -> Tensor:
        for _ in range(ROUNDS):
            found = torch.nonzero(x)
        return found

    def without() -> Tensor:
        for _ in range(ROUNDS):
            found = torch.nonzero_static(x, size=size)
        return found

    workload = Workload("nonzero in every round", SYNC, call)
    try:
        without()
        workload.without = without
    except (RuntimeError, AttributeError) as error:
        workload.missing = f"nonzero: no static variant: {str(error).splitlines()[0]}"
    return workload


def _loading(where: torch.device, scale: float) -> Workload:
    side, rows = 1024, sized(1024, scale)
    raw = np.random.default_rng(0).standard_normal((rows, side), dtype=np.float32)
    weight = torch.randn(side, side, device=where)

    def batches() -> Iterator[Tensor]:
        while True:
            yield torch.from_numpy(np.sort(raw, axis=1)).to(where)

    stream, ready = batches(), torch.from_numpy(np.sort(raw, axis=1)).to(where)

    def step(batch: Tensor) -> Tensor:
        return batch @ weight

    return Workload(
        "batches sorted by the host",
        INPUT,
        lambda: step(next(stream)),
        step=step,
        inputs=batches,
        without=lambda: step(ready),
    )


def _transfer(where: torch.device, scale: float) -> Workload:
    host = torch.randn(sized(2**25, scale))  # ordinary memory, which the driver must stage
    there = host.to(where)
    return Workload(
        "batches copied from pageable memory",
        INPUT,
        # On a CPU there is nowhere to copy to; a copy stands in, and is not diagnosed as one.
        lambda: (host.to(where) if where.type == "cuda" else host.clone()).square(),
        without=lambda: there.square(),
    )


WORKLOADS = (
    *(_matmul, _attention, _copy, _layer_norm, _embedding, _additions, _training),
    *(_item, _nonzero, _loading, _transfer),
)
