"""One training step in every way, weak and strong scaling, accumulation, and a layer in parts."""

import gc
from collections.abc import Callable, Sequence
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
from anatomy.parts.ranks import Group, Rows
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.table.errors import DeviceError, MeasurementError

MICRO_BATCHES = 4
# bfloat16's rounding, by ways that add up in another order; and one that has weights in it, too.
ALLOWED, ALLOWED_HALF = 2**-5, 2**-4
ALONE = (of.ONE, of.COMPILED)
Timed = Callable[..., Rows]
Answer = tuple[Tensor, Tensor]  # loss, and all gradients as one vector


@experiment("distributed.training", page="axioms/distributed.md", timeout_s=300, on_request=True)
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
    how = {"budget_s": 170, "promised": of.FIGURES, "scale": scale, "blocks": blocks}
    return ranks.table(of_rank, world_size, device, wanted, **how)


def of_rank(group: Group, scale: float, blocks: int) -> Rows:
    """What this rank measured."""
    rows: Rows = []
    for measure in (_scaling, _tensor_parallel, _data_parallel):
        rows += measure(group, scale, partial(ranks.timed, group, blocks=blocks))
        memory.give_back(group.where)
    return rows


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


def _scaling(group: Group, scale: float, timed: Timed) -> Rows:
    """All ways on the same batch for each GPU; some of them on one batch that is shared out, and
    with gradients accumulated over micro-batches."""
    size = of.STEP.scaled(scale, group.size)
    every = [ways.batch(size, group, rank) for rank in range(group.size)]
    mine, first = every[group.rank], every[0]
    group.agree("the shape of a batch", list(mine.shape))
    comparisons: dict[str, dict[str, Run]] = {of.WEAK: {}, of.STRONG: {}, of.ACCUMULATED: {}}
    rows: Rows = []

    def attempt(op: str, name: str, make: Callable[[], Run], expected: Answer) -> None:
        gc.collect()  # or what the way before left in circles would count
        before = torch.cuda.memory_allocated(group.where) if group.where.type == "cuda" else 0
        run, why = group.attempt(op, make)
        if run:
            run.facts["error"], why = group.attempt(op, partial(strays, group, name, run, expected))
        if run and not why and op == of.WEAK:
            steps = partial(memory.peak, lambda: [run.step() for _ in range(2)], group.where)
            peak, why = group.attempt(op, steps)
            run.facts |= {"total_peak_bytes": peak.total_bytes - before} if peak else {}
        if why:
            rows.append({"op": op, "variant": name, "note": why, "gpus": group.size})
        else:
            comparisons[op][name] = run

    each_time, late = of.SENT
    known, why = group.attempt(of.WEAK, partial(_references, group, size, every))
    if known is None:
        cells = [(op, name) for op, names in of.SCALED.items() for name in names]
        return [{"op": o, "variant": n, "note": why, "gpus": group.size} for o, n in cells]
    own, of_first, of_all = known
    for name in of.TRAINED:
        drives_all = name == of.DATA_PARALLEL and group.rank == 0
        x = torch.cat(every) if drives_all else mine
        make = partial(_built, group, size, name, x)
        attempt(of.WEAK, name, make, own if name in ALONE else of_all)
    built = {name: run.way for name, run in comparisons[of.WEAK].items()}
    if of.ONE in built:
        comparisons[of.STRONG][of.ONE] = Run(built[of.ONE], (first,))
    part = first.split(size.batch // group.size)[group.rank].contiguous()
    pieces = mine.split(max(1, size.batch // MICRO_BATCHES))
    for name in (of.DDP, of.FSDP):
        attempt(of.STRONG, name, partial(_again, built.get(name), (part,)), of_first)
        for said in (each_time, late):
            make = partial(_again, built.get(name), pieces, said == late)
            attempt(of.ACCUMULATED, f"{name}, {said}", make, of_all)
    del known, own, of_first, of_all
    against = {of.DDP_COMPILED: of.COMPILED, f"{of.FSDP}, {late}": f"{of.FSDP}, {each_time}"}
    for op, runs in comparisons.items():
        calls = {name: run.step for name, run in runs.items()}
        over = {n: control for n, control in against.items() if {n, control} <= {*runs}}
        for row in timed(calls, cell={"op": op, **size.columns}, against=over) if calls else []:
            gpus = 1 if (name := ranks.origin(row)) in ALONE else group.size
            tokens = size.tokens * (1 if op == of.STRONG else gpus)
            row |= {"one_drives": True} if name == of.DATA_PARALLEL else {}
            rows.append(row | runs[name].facts | {"gpus": gpus, "tokens": tokens})
    return rows


def _references(group: Group, size: Size, every: Sequence[Tensor]) -> tuple[Answer, Answer, Answer]:
    """Loss and gradients of the plain model over this rank's batch and over the first one's; and
    their means over all."""
    plain = ways.build(of.ONE, group, size)
    found = [plain.gradients(x) for x in every]
    losses, gradients = (sum(each) / group.size for each in zip(*found, strict=True))
    return found[group.rank], found[0], (losses, gradients)


def _built(group: Group, size: Size, name: str, x: Tensor) -> Run:
    return Run(ways.build(name, group, size), (x,))


def _again(way: Way | None, batches: tuple[Tensor, ...], late: bool = False) -> Run:
    if way is None:
        raise MeasurementError("it could not be tried on one batch for each GPU either.")
    return Run(way, batches, late)


def strays(group: Group, name: str, run: Run, expected: Answer) -> float:
    """How far mean loss and gradients of all ranks stray from those expected, relative, in norm;
    DisagreementError where it is too far on this one."""

    def found() -> Answer:
        if run.way.idle:
            return expected
        loss, gradients = run.way.gradients(*run.batches, late=run.late)
        if name not in (*ALONE, of.DATA_PARALLEL):
            distributed.all_reduce(loss)
            loss /= group.size
        return loss, gradients

    allowed = ALLOWED_HALF if name in (of.HALF, of.COMPILED, of.DDP_COMPILED) else ALLOWED
    return agreement.check({name: found}, {name: lambda: expected}, allowed)[name]


def _tensor_parallel(group: Group, scale: float, timed: Timed) -> Rows:
    """Forward and backward pass of one layer on one GPU, and in parts over all of them."""
    size = of.BLOCK.scaled(scale, group.size)
    cell = {"op": of.TENSOR, **size.columns, "tokens": size.tokens}

    def make() -> tuple[dict[str, Callable], dict[str, float]]:
        x, calls = ways.batch(size, group, 0), {}  # the same for all
        for name, parallel in ((of.ONE, False), ("tensor parallel", True)):
            block = ways.parted(size, group, parallel=parallel)
            calls[name] = models.gradients_of(block, list(block.parameters()), x)
        flat = {name: partial(_flat, call) for name, call in calls.items()}
        # All of it is in bfloat16.
        return calls, agreement.check(flat, dict.fromkeys(flat, flat[of.ONE]), ALLOWED_HALF)

    made, why = group.attempt(of.TENSOR, make)
    if why:
        return [{**cell, "variant": "tensor parallel", "note": why, "gpus": group.size}]
    calls, errors = made
    rows = timed(calls, cell=cell)
    for row in rows:
        name = ranks.origin(row)
        row |= {"error": errors[name], "gpus": 1 if name == of.ONE else group.size}
    return rows


def _flat(call: Callable[[], tuple[Tensor, ...]]) -> Answer:
    loss, *gradients = map(ways.whole, call())
    return loss, torch.cat([each.flatten() for each in gradients])


def _data_parallel(group: Group, scale: float, timed: Timed) -> Rows:
    """The parts of DataParallel's forward pass, which rank 0 drives alone; the others watch."""
    size = of.STEP.scaled(scale, group.size)
    cell = {"op": of.PARTS, **size.columns, "gpus": group.size}
    names = (of.FORWARD, of.COPIES, "share out the batch", "run the copies", "gather")

    def make() -> list[Callable[[], object]]:
        if group.where.type != "cuda":
            raise DeviceError("it is for GPUs")
        if group.rank:
            return [lambda: None for _ in names]
        gpus, model = ways.all_gpus(group), ways.Model(size, group.where)
        x = torch.cat([ways.batch(size, group, rank) for rank in range(group.size)])
        copies = nn.parallel.replicate(model, gpus)
        inputs = nn.parallel.scatter((x,), gpus)
        outputs = nn.parallel.parallel_apply(copies, inputs)
        parts = (
            partial(nn.DataParallel(model, gpus), x),
            partial(nn.parallel.replicate, model, gpus),
            partial(nn.parallel.scatter, (x,), gpus),
            partial(nn.parallel.parallel_apply, copies, inputs),
            partial(nn.parallel.gather, outputs, gpus[0]),
        )
        return [partial(_all_done, part, gpus) for part in parts]

    made, why = group.attempt(of.PARTS, make)
    if why:
        return [{**cell, "variant": name, "note": why} for name in names]
    rows = timed(dict(zip(names, made, strict=True)), cell=cell)
    return [row | {"one_drives": True} for row in rows]


def _all_done(part: Callable[[], object], gpus: Sequence[int]) -> None:
    """A call until every GPU is done, for the clock waits for its own alone."""
    part()
    for gpu in gpus:
        torch.cuda.synchronize(gpu)
