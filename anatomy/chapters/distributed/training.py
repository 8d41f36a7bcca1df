"""One training step in every way, weak and strong scaling, accumulation, and a layer in parts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor, distributed, nn

from anatomy.chapters.distributed import requirements as of
from anatomy.chapters.distributed import ways
from anatomy.chapters.distributed.requirements import Size
from anatomy.chapters.distributed.ways import Way
from anatomy.numerics import agreement
from anatomy.parts import memory, models, ranks
from anatomy.parts.ranks import Group
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.table.errors import MeasurementError

LIMIT_S = 420
MICRO_BATCHES = 4
# bfloat16's rounding, by ways that add up in another order; and one that has weights in it, too.
ALLOWED, ALLOWED_HALF = 2**-5, 2**-4
Rows = list[dict[str, Any]]


@experiment(
    "distributed.training", page="axioms/distributed.md", timeout_s=LIMIT_S, on_request=True
)
def training(
    device: str = "cuda:0", world_size: Count = 2, scale: Scale = 1.0, blocks: Count = 12
) -> pd.DataFrame:
    """Time a training step of a model that fits: alone, and in each way that several GPUs have.

    Args:
        blocks: Blocks of steps in which each way is timed.

    Returns:
        Rows of op `weak scaling` (the same batch for each GPU), `strong scaling` (one batch shared
        out), `accumulation`, `tensor parallel block` and `forward of DataParallel`; of each also
        what every rank took.
    """
    wanted = partial(of.training, scale=scale, world_size=world_size)
    how = {"scale": scale, "blocks": blocks, "promised": of.FIGURES}
    return ranks.table(of_rank, world_size, device, LIMIT_S, wanted, **how)


def of_rank(device: str, left: dict[str, str], scale: float, blocks: int) -> list[Rows]:
    """What each rank measured, by rank."""
    rows: Rows = []
    with ranks.joined(device) as group:
        left = group.gathered(left)[0]
        parts = {of.WEAK: _scaling, of.TENSOR: _tensor_parallel, of.PARTS: _data_parallel}
        for op, measure in parts.items():
            if why := left.get(op):
                rows.append({"op": op, "variant": of.ONE, "note": why, "gpus": group.size})
            else:
                rows += measure(group, scale, partial(ranks.timed, group, blocks=blocks))
            memory.give_back(group.where)
        return group.gathered(rows)


def _scaling(group: Group, scale: float, timed: Callable[..., Rows]) -> Rows:
    """All ways on the same batch for each GPU; some of them on one batch that is shared out, and
    with gradients accumulated over micro-batches."""
    size = of.STEP.scaled(scale, group.size)
    mine = next(ways.batches(size, group, group.rank))
    group.agree("the shape of a batch", list(mine.shape))
    shared = next(ways.batches(size, group, 0))
    own, of_all = _references(group, size)
    part = shared.split(size.batch // group.size)[group.rank].contiguous()
    pieces = mine.split(max(1, size.batch // MICRO_BATCHES))
    built, rows = {}, []
    for name in of.TRAINED:
        every = name == of.DATA_PARALLEL and group.rank == 0
        x = torch.cat(list(ways.batches(size, group))) if every else mine
        expected = own if name == of.COMPILED else of_all
        made, why = group.attempt(partial(_built, group, size, name, x, expected))
        if why:
            rows.append({"op": of.WEAK, "variant": name, "note": why, "gpus": group.size})
        else:
            way, facts = made
            built[name] = Run(way, (x,), facts=facts)
    alone, several = built[of.ONE].way, {n: built[n].way for n in (of.DDP, of.FSDP) if n in built}
    on_shared = alone.gradients(shared)
    strong = {n: (Run(way, (part,)), on_shared) for n, way in several.items()}
    accumulated = {
        f"{name}, {said}": (Run(way, pieces, late), of_all)
        for name, way in several.items()
        for late, said in ((False, "every time"), (True, "at the end"))
    }
    comparisons = {of.WEAK: built, of.STRONG: {of.ONE: Run(alone, (shared,))}, of.ACCUMULATED: {}}
    for op, tried in ((of.STRONG, strong), (of.ACCUMULATED, accumulated)):
        for name, (run, expected) in tried.items():
            error, why = group.attempt(partial(check, group, name, run, expected))
            run.facts["error"] = error
            comparisons[op] |= {} if why else {name: run}
            rows += [{"op": op, "variant": name, "note": why, "gpus": group.size}] if why else []
    del own, of_all, on_shared
    against = {of.DDP_COMPILED: of.COMPILED, f"{of.FSDP}, at the end": f"{of.FSDP}, every time"}
    for op, runs in comparisons.items():
        calls = {name: run.step for name, run in runs.items()}
        over = {n: control for n, control in against.items() if {n, control} <= {*runs}}
        for row in timed(calls, cell={"op": op, **size.columns}, against=over) if calls else []:
            name = row["variant"].removesuffix(" (again)")
            gpus = 1 if name in ALONE else group.size
            tokens = size.tokens * (1 if op == of.STRONG else gpus)
            more = {"gpus": gpus, "tokens": tokens, "batch": size.batch}
            rows.append(row | runs[name].facts | more)
    return rows


ALONE = (of.ONE, of.COMPILED)


@dataclass
class Run:
    """A way with the micro-batches of a step, and whether gradients are sent with the last."""

    way: Way
    batches: tuple[Tensor, ...]
    late: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    def step(self) -> None:
        """One training step."""
        self.way.step(*self.batches, late=self.late)


def _references(group: Group, size: Size) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Loss and gradients of the plain model over this rank's batch; and their means over all."""
    plain = ways.build(of.ONE, group, size)
    total = own = None
    for rank, x in enumerate(ways.batches(size, group)):
        found = plain.gradients(x)
        own = found if rank == group.rank else own
        total = found if total is None else tuple(a + b for a, b in zip(total, found, strict=True))
    return own, tuple(each / group.size for each in total)


def _built(
    group: Group, size: Size, name: str, x: Tensor, expected: tuple[Tensor, Tensor]
) -> tuple[Way, dict[str, Any]]:
    """A way whose loss and gradients are the plain model's, and what is known of it."""
    before = _allocated(group)
    way = ways.build(name, group, size)
    error = 0.0 if name == of.ONE else check(group, name, Run(way, (x,)), expected)
    peak = memory.peak(lambda: [way.step(x) for _ in range(2)], group.where)
    facts = {"error": error, "predicted_bytes": of.predicted(name, size, group.size)}
    if peak:
        facts["total_peak_bytes"] = peak.total_bytes - before
    return way, facts


def _allocated(group: Group) -> int:
    return torch.cuda.memory_allocated(group.where) if group.where.type == "cuda" else 0


def check(group: Group, name: str, run: Run, expected: tuple[Tensor, Tensor]) -> float:
    """How far mean loss and gradients of all ranks stray from those expected, relative, in norm;
    MeasurementError on all of them where it is too far on one."""

    def found() -> tuple[Tensor, Tensor]:
        if run.way.idle:
            return expected
        loss, gradients = run.way.gradients(*run.batches, late=run.late)
        if name not in (*ALONE, of.DATA_PARALLEL):
            distributed.all_reduce(loss)
            loss /= group.size
        return loss, gradients

    allowed = ALLOWED_HALF if name in (of.HALF, of.COMPILED, of.DDP_COMPILED) else ALLOWED
    judge = partial(agreement.check, {name: found}, {name: lambda: expected}, allowed)
    errors, why = group.attempt(judge)
    if why:  # not on one rank alone: the others would begin a step that it takes no part in
        raise MeasurementError(why)
    return errors[name]


def _tensor_parallel(group: Group, scale: float, timed: Callable[..., Rows]) -> Rows:
    """Forward and backward pass of one layer on one GPU, and in parts over all of them."""
    size = of.BLOCK.scaled(scale, group.size)
    x = next(ways.batches(size, group, 0))  # the same for all
    cell = {"op": of.TENSOR, **size.columns, "batch": size.batch, "tokens": size.tokens}

    def make() -> tuple[dict[str, Callable], dict[str, float]]:
        calls = {}
        for name, parallel in ((of.ONE, False), ("tensor parallel", True)):
            block = ways.parted(size, group, parallel=parallel)
            calls[name] = models.gradients_of(block, list(block.parameters()), x)
        flat = {name: partial(_flat, call) for name, call in calls.items()}
        # All of it is in bfloat16.
        return calls, agreement.check(flat, dict.fromkeys(flat, flat[of.ONE]), ALLOWED_HALF)

    made, why = group.attempt(make)
    if why:
        return [{**cell, "variant": "tensor parallel", "note": why, "gpus": group.size}]
    calls, errors = made
    rows = timed(calls, cell=cell)
    for row in rows:
        name = row["variant"].removesuffix(" (again)")
        row |= {"error": errors[name], "gpus": 1 if name == of.ONE else group.size}
    return rows


def _flat(call: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, Tensor]:
    loss, *gradients = map(ways.whole, call())
    return loss, torch.cat([each.flatten() for each in gradients])


def _data_parallel(group: Group, scale: float, timed: Callable[..., Rows]) -> Rows:
    """The parts of DataParallel's forward pass, which rank 0 drives alone; the others watch."""
    size = of.STEP.scaled(scale, group.size)
    cell = {"op": of.PARTS, **size.columns, "batch": size.batch, "gpus": group.size}
    names = (of.FORWARD, of.COPIES, "share out the batch", "run the copies", "gather")
    if group.where.type != "cuda":
        why = "not supported: it is for GPUs"
        return [{**cell, "variant": name, "note": why} for name in names]
    calls: dict[str, Callable[[], object]] = dict.fromkeys(names, lambda: None)
    if group.rank == 0:
        first = group.where.index
        gpus = list(range(first, first + group.size))
        model = ways.Model(size, group.where)
        x = torch.cat(list(ways.batches(size, group)))
        parallel = nn.DataParallel(model, gpus)
        copies = nn.parallel.replicate(model, gpus)
        inputs = nn.parallel.scatter((x,), gpus)
        outputs = nn.parallel.parallel_apply(copies, inputs)
        parts = (
            lambda: parallel(x),
            lambda: nn.parallel.replicate(model, gpus),
            lambda: nn.parallel.scatter((x,), gpus),
            lambda: nn.parallel.parallel_apply(copies, inputs),
            lambda: nn.parallel.gather(outputs, gpus[0]),
        )
        calls = {name: _all_done(part, gpus) for name, part in zip(names, parts, strict=True)}
    return timed(calls, cell=cell)


def _all_done(part: Callable[[], object], gpus: list[int]) -> Callable[[], None]:
    """A call that waits for every GPU, for the clock waits for its own alone."""

    def call() -> None:
        part()
        for gpu in gpus:
            torch.cuda.synchronize(gpu)

    return call
