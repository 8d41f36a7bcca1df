"""One training step in every way, weak and strong scaling, accumulation, and a layer in parts."""

import gc
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

import pandas as pd
import torch
from torch import Tensor, distributed, nn

from anatomy.chapters.distributed import overlap, ways
from anatomy.chapters.distributed import requirements as of
from anatomy.chapters.distributed.requirements import Size
from anatomy.chapters.distributed.ways import Way
from anatomy.measure import census, stopwatch_for
from anatomy.numerics import agreement
from anatomy.parts import memory, models, ranks
from anatomy.parts.ranks import Group, Rows
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.table.errors import DeviceError, MeasurementError

MICRO_BATCHES = 4
# bfloat16's rounding, by ways that add up in another order; and one that has weights in it, too.
ALLOWED, ALLOWED_HALF = 2**-5, 2**-4
# Seconds of a block: so long that a host can be ahead by as many steps as in a long run.
BLOCK_S = 0.25
Timed = Callable[..., Rows]
Answer = tuple[Tensor, Tensor]  # loss, and all gradients as one vector


@experiment("distributed.training", page="axioms/distributed.md", timeout_s=480, on_request=True)
def training(
    device: str = "cuda:0", world_size: Count = 2, scale: Scale = 1.0, blocks: Count = 12
) -> pd.DataFrame:
    """Time a training step of a model that fits: alone, and in each way that several GPUs have.

    Args:
        blocks: Blocks of steps in which each way is timed.

    Returns:
        Rows of op `weak scaling` (the same batch for each GPU), also of wide layers, `strong
        scaling` (one batch shared out), `accumulation`, `tensor parallel` and `forward of
        DataParallel`; of each also what every rank took.
    """
    wanted = partial(of.training, scale=scale, world_size=world_size)
    how = {"budget_s": 280, "promised": of.FIGURES, "scale": scale, "blocks": blocks}
    return ranks.table(of_rank, world_size, device, wanted, **how)


def of_rank(group: Group, scale: float, blocks: int) -> Rows:
    """What this rank measured."""
    rows: Rows = []
    for measure in (_scaling, _wide, _tensor_parallel, _data_parallel):
        timed = partial(ranks.timed, group, blocks=blocks, block_s=BLOCK_S)
        rows += measure(group, scale, timed)
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


class Tries:
    """Comparisons of ways on one model: each way is held against the plain model, then timed."""

    def __init__(self, group: Group, size: Size, ops: Mapping[str, Sequence[str]]) -> None:
        self.group, self.size = group, size
        self.every = [ways.batch(size, group, rank) for rank in range(group.size)]
        self.mine = self.every[group.rank]
        group.agree("the shape of a batch", list(self.mine.shape))
        self.runs: dict[str, dict[str, Run]] = {op: {} for op in ops}
        self.notes: Rows = []
        known, why = group.attempt(next(iter(ops)), self._references)
        # Loss and gradients over this rank's batch, over the first one's, and their means over all.
        self.own, self.first, self.mean = known or (None, None, None)
        for op, names in ops.items() if why else ():
            self.notes += [self._note(op, name, why) for name in names]

    def _note(self, op: str, name: str, why: str) -> dict[str, Any]:
        return {"op": op, "variant": name, "note": why, "gpus": self.group.size}

    def _references(self) -> tuple[Answer, Answer, Answer]:
        plain = ways.build(of.ONE, self.group, self.size)
        found = [plain.gradients(x) for x in self.every]
        losses, gradients = (sum(each) / self.group.size for each in zip(*found, strict=True))
        return found[self.group.rank], found[0], (losses, gradients)

    def attempt(self, op: str, name: str, make: Callable[[], Run], expected: Answer) -> None:
        """Try one way, and keep it or why not."""
        group = self.group
        gc.collect()  # or what the way before left in circles would count
        before = torch.cuda.memory_allocated(group.where) if group.where.type == "cuda" else 0
        run, why = group.attempt(op, make)
        if run:
            run.facts["error"], why = group.attempt(op, partial(strays, group, name, run, expected))
        if run and not why and name in of.TRAINED and op != of.STRONG:
            peak, why = group.attempt(op, partial(_peak, run, group.where))
            run.facts |= {"total_peak_bytes": peak.total_bytes - before} if peak else {}
        if run and not why and name in of.TRAINED:
            own, why = group.attempt(op, partial(_busy, run, group.where))
            least = min(group.gathered(own or inf))
            run.facts |= {} if why or least == inf else {"busy_s": float(f"{least:.6g}")}
        if why:
            self.notes.append(self._note(op, name, why))
        else:
            self.runs[op][name] = run

    def on_a_batch_each(self, op: str, names: Sequence[str]) -> None:
        """Try ways on the same batch for each GPU."""
        for name in names:
            drives_all = name in of.ONE_DRIVES and self.group.rank == 0
            batches = (torch.cat(self.every) if drives_all else self.mine,)

            def make(name: str = name, batches: tuple[Tensor, ...] = batches) -> Run:
                return Run(ways.build(name, self.group, self.size), batches)

            self.attempt(op, name, make, self.own if name in of.ALONE else self.mean)

    def timed(self, timed: Timed, against: Mapping[str, str]) -> Rows:
        """All rows, of what was right and of what was not."""
        rows = self.notes
        for op, runs in self.runs.items():
            calls = {name: run.step for name, run in runs.items()}
            over = {n: control for n, control in against.items() if {n, control} <= {*runs}}
            cell = {"op": op, **self.size.columns}
            for row in timed(calls, cell=cell, against=over) if calls else []:
                gpus = 1 if (name := ranks.origin(row)) in of.ALONE else self.group.size
                tokens = self.size.tokens * (1 if op == of.STRONG else gpus)
                row |= {"one_drives": True} if name in of.ONE_DRIVES else {}
                rows.append(row | runs[name].facts | {"gpus": gpus, "tokens": tokens})
        return rows


def _peak(run: Run, where: torch.device) -> memory.Peak | None:
    for _ in range(2):  # DDP makes its buckets anew in the second step
        run.step()
    return memory.peak(run.step, where)


def _busy(run: Run, where: torch.device) -> float:
    """Seconds in which this rank's GPU computes in a step; a kernel that waits for another rank is
    none of it. 0 where no profile knows."""
    if where.type != "cuda":
        return 0.0
    watch = stopwatch_for(where)
    compute, _ = overlap.parted(census.kernels_during(lambda: watch.wall([run.step]), watch))
    return census.busy(compute)


def _scaling(group: Group, scale: float, timed: Timed) -> Rows:
    """All ways on the same batch for each GPU; some of them on one batch that is shared out, and
    with gradients accumulated over micro-batches."""
    size = of.STEP.scaled(scale, group.size)
    tries = Tries(group, size, of.SCALED)
    each_time, late = of.SENT
    if tries.own:
        tries.on_a_batch_each(of.WEAK, of.TRAINED)
        built = {name: run.way for name, run in tries.runs[of.WEAK].items()}
        if of.ONE in built:
            tries.runs[of.STRONG][of.ONE] = Run(built[of.ONE], (tries.every[0],))
        part = tries.every[0].split(size.batch // group.size)[group.rank].contiguous()
        pieces = tries.mine.split(max(1, size.batch // MICRO_BATCHES))
        for name in (of.DDP, of.FSDP):
            again = partial(_again, built.get(name))
            tries.attempt(of.STRONG, name, partial(again, (part,)), tries.first)
            for said in (each_time, late):
                make = partial(again, pieces, said == late)
                tries.attempt(of.ACCUMULATED, f"{name}, {said}", make, tries.mean)
    over = {f"{of.FSDP}, {late}": f"{of.FSDP}, {each_time}", of.PARALLEL_OFF: of.ONE_OFF}
    over |= dict.fromkeys((of.DDP_COMPILED, of.FSDP_COMPILED), of.COMPILED)
    return tries.timed(timed, over)


def _wide(group: Group, scale: float, timed: Timed) -> Rows:
    """The same kernels and messages, all larger: what a rank's host has to do stays the same."""
    tries = Tries(group, of.WIDE_STEP.scaled(scale, group.size), {of.WIDE: of.WIDELY})
    if tries.own:
        tries.on_a_batch_each(of.WIDE, of.WIDELY)
    return tries.timed(timed, {})


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
        if name not in (*of.ALONE, *of.ONE_DRIVES):
            distributed.all_reduce(loss)
            loss /= group.size
        return loss, gradients

    in_half = name in of.COMPILES or (name.startswith(of.FSDP) and name != of.FULL)
    allowed = ALLOWED_HALF if in_half else ALLOWED
    return agreement.check({name: found}, {name: lambda: expected}, allowed)[name]


def _tensor_parallel(group: Group, scale: float, timed: Timed) -> Rows:
    """Forward and backward pass of one layer on one GPU, and in parts over all of them; of few
    tokens and of many."""
    rows = []
    for size in (each.scaled(scale, group.size) for each in of.BLOCKS):
        op = of.tensor_parallel(size)
        made, why = group.attempt(op, partial(_layers, group, size))
        if why:
            rows += [{"op": op, "variant": of.TENSOR, "note": why, "gpus": group.size}]
            continue
        calls, errors = made
        for row in timed(calls, cell={"op": op, **size.columns, "tokens": size.tokens}):
            name = ranks.origin(row)
            facts = {"error": errors[name], "gpus": 1 if name == of.ONE else group.size}
            rows.append(row | facts)
        del made, calls
    return rows


def _layers(group: Group, size: Size) -> tuple[dict[str, Callable], dict[str, float]]:
    """The layer's passes whole and in parts, which have the same answer, and how far they stray."""
    x, calls = ways.batch(size, group, 0), {}  # the same for all
    for name, parallel in ((of.ONE, False), (of.TENSOR, True)):
        block = ways.parted(size, group, parallel=parallel)
        calls[name] = models.gradients_of(block, list(block.parameters()), x)
    flat = {name: partial(_flat, call) for name, call in calls.items()}
    # All of it is in bfloat16.
    return calls, agreement.check(flat, dict.fromkeys(flat, flat[of.ONE]), ALLOWED_HALF)


def _flat(call: Callable[[], tuple[Tensor, ...]]) -> Answer:
    loss, *gradients = map(ways.whole, call())
    return loss, torch.cat([each.flatten() for each in gradients])


def _data_parallel(group: Group, scale: float, timed: Timed) -> Rows:
    """The parts of DataParallel's forward pass, which rank 0 drives alone; the others watch. And
    what its threads, and cuDNN's attention in them, have to do with it."""
    size = of.STEP.scaled(scale, group.size)
    cell = {"op": of.PARTS, **size.columns, "gpus": group.size}

    def make() -> dict[str, Callable[[], object]]:
        if group.where.type != "cuda":
            raise DeviceError("it is for GPUs")
        if group.rank:
            return dict.fromkeys(of.PARTS_TIMED, lambda: None)
        gpus, model = ways.all_gpus(group), ways.Model(size, group.where)
        x = torch.cat([ways.batch(size, group, rank) for rank in range(group.size)])
        copies = nn.parallel.replicate(model, gpus)
        inputs = nn.parallel.scatter((x,), gpus)
        forward = partial(nn.DataParallel(model, gpus), x)
        run = partial(nn.parallel.parallel_apply, copies, inputs)
        each = [partial(copy, *given) for copy, given in zip(copies, inputs, strict=True)]
        threads = [
            ThreadPoolExecutor(1, initializer=torch.cuda.set_device, initargs=(gpu,))
            for gpu in gpus
        ]
        found = {
            of.FORWARD: forward,
            of.COPIES: partial(nn.parallel.replicate, model, gpus),
            of.SHARES: partial(nn.parallel.scatter, (x,), gpus),
            of.RUN: run,
            of.GATHER: partial(nn.parallel.gather, run(), gpus[0]),
            of.IN_TURN: lambda: [call() for call in each],
            of.STAYING: partial(_in_threads, threads, each),
            of.SINGLE: each[0],
            of.NEW_THREAD: partial(_in_new_thread, each[0]),
            of.FORWARD_OFF: partial(_without_cudnn, forward),
            of.RUN_OFF: partial(_without_cudnn, run),
        }
        return {name: partial(_all_done, found[name], gpus) for name in of.PARTS_TIMED}

    made, why = group.attempt(of.PARTS, make)
    if why:
        return [{**cell, "variant": name, "note": why} for name in of.PARTS_TIMED]
    rows = timed(made, cell=cell, block_s=ranks.BLOCK_S)  # a block waits after each call anyhow
    # The host waits in each call, so that what it takes to ask for one is not known.
    return [row | {"one_drives": True, "enqueue_s": None} for row in rows]


def _in_threads(threads: Sequence[ThreadPoolExecutor], calls: Sequence[Callable]) -> None:
    """Each call in a thread of its own, which has run it before."""
    begun = [own.submit(call) for own, call in zip(threads, calls, strict=True)]
    for each in begun:
        each.result()


def _in_new_thread(call: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as thread:
        thread.submit(call).result()


def _without_cudnn(call: Callable[[], object]) -> None:
    with ways.without_cudnn():
        call()


def _all_done(part: Callable[[], object], gpus: Sequence[int]) -> None:
    """A call until every GPU is done, for the clock waits for its own alone."""
    part()
    for gpu in gpus:
        torch.cuda.synchronize(gpu)
