"""What one of several ranks does: it joins the others, agrees with them, and times steps with them.

Timing has one rule. A barrier, which is not timed, lets all ranks begin together; each rank times
its own block of calls on its own clock, until its own device has done them; the slowest rank's time
is the block's. So a rank that waits for another is never mistaken for a fast one. What ranks say to
each other for this goes through gloo, on the CPU, and leaves the GPUs' links alone."""

import gc
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from itertools import count
from math import inf
from statistics import median
from typing import Any, TypeVar

import pandas as pd
import torch
from torch import distributed
from torch.distributed.rendezvous import rendezvous

from anatomy import judge
from anatomy.machine import host
from anatomy.measure import stopwatch_for
from anatomy.measure.blocks import balanced_orders
from anatomy.parts import grid, memory
from anatomy.record.processes import ranks
from anatomy.record.requirements import Capacity, Requirement, left_out
from anatomy.table.errors import DisagreementError, MeasurementError

Call = Callable[[], object]
Rows = list[dict[str, Any]]
Value = TypeVar("Value")

PATIENCE_S = 120.0  # that a rank waits for another: one may compile a minute longer
# Blocks of each way, more than an exact interval takes, and what a block lasts; most calls in one.
BLOCKS, BLOCK_S, MOST_CALLS = 12, 0.06, 1000
WARM_UP = 3  # calls before anything is timed: allocators, NCCL and cuBLAS settle in them
REFUSALS = (RuntimeError, TypeError, ValueError)  # of PyTorch's ways, each of which costs itself
OF_A_RANK = ("total_peak_bytes",)  # what each rank says for itself, beside its blocks
# What of the environment changes how GPUs talk; a recording keeps it.
SETTINGS = {"NCCL_NVLS_ENABLE", "NCCL_ALGO", "NCCL_PROTO", "NCCL_P2P_DISABLE"}
MISSING = re.compile(r"[Rr]anks? ([\d, ]+) failed to (?:pass|reach) monitoredBarrier")
_joinings = count()  # of this process


@dataclass(frozen=True)
class Group:
    """This rank among all."""

    rank: int
    size: int
    where: torch.device  # this rank's own
    control: Any  # the gloo group
    patience_s: float
    left: Mapping[str, str] = field(default_factory=dict)  # ops that a GPU has no room for, and why
    until: float = inf  # by time.monotonic: nothing is begun after it

    def barrier(self, before: str) -> None:
        """Wait for all ranks; MeasurementError that names those that do not come."""
        wait, began = timedelta(seconds=self.patience_s), time.monotonic()
        try:
            distributed.monitored_barrier(self.control, timeout=wait, wait_all_ranks=True)
        except RuntimeError as error:
            missing = MISSING.search(str(error))
            if not missing or time.monotonic() - began < 0.9 * self.patience_s:
                raise  # another rank is gone, and tells why itself
            raise MeasurementError(
                f"rank {missing[1].strip(' ,')} has not come to {before} within "
                f"{self.patience_s:g} s: it hangs, or is far slower than the others."
            ) from None

    def gathered(self, value: Value) -> list[Value]:
        """What each rank has to say, by rank."""
        self.barrier("an exchange of results")
        found: list[Any] = [None] * self.size
        distributed.all_gather_object(found, value, group=self.control)
        return found

    def agree(self, what: str, value: Any) -> None:
        """Raise DisagreementError where ranks have different values: a collective would hang, or
        compute nonsense."""
        every = self.gathered(value)
        for rank, other in enumerate(every):
            if other != every[0]:
                raise DisagreementError(
                    f"ranks disagree on {what}: rank 0 has {every[0]}, rank {rank} has {other}."
                )

    def attempt(self, op: str, act: Callable[[], Value]) -> tuple[Value | None, str]:
        """What `act` returned, which is part of an `op`; or None on all ranks where one can't do
        it, and why: by an error that `anatomy.parts.grid` foresees or PyTorch refuses with, by what
        a GPU has no room for, or because the time is up."""
        late = f"{grid.NOT_BEGUN}: the time for all is used up"
        found, why = None, self.left.get(op) or (late if time.monotonic() > self.until else "")
        if why := self.gathered(why)[0]:  # as rank 0 has it, or some would wait for others
            return None, why
        try:
            found = act()
        except Exception as error:
            gone = isinstance(error, distributed.DistError)  # no way of the others' can be tried
            if gone or not (why := grid.note_of(error, REFUSALS)):
                raise
        whys = list(filter(None, self.gathered(why)))
        if not whys:
            return found, ""
        del found
        gc.collect()
        if self.where.type == "cuda":
            torch.cuda.empty_cache()
        return None, whys[0]


@contextmanager
def joined(
    device: str,
    patience_s: float = PATIENCE_S,
    left: Mapping[str, str] | None = None,
    budget_s: float = inf,
) -> Iterator[Group]:
    """Join the ranks that torchrun started, each with the device of its number on its node, counted
    from `device`: NCCL between GPUs, gloo between CPUs. After `budget_s` seconds from here on,
    nothing new is attempted."""
    where = own_device(device)
    wait, backend = timedelta(seconds=patience_s), "gloo"
    how: dict[str, Any] = {}
    if where.type == "cuda":
        torch.cuda.set_device(where)
        backend, how["device_id"] = "nccl", where
    try:
        store, rank, size = _meeting()
        store.set_timeout(wait)
        # Else who joins for a second time would read what was said there for the first.
        store = distributed.PrefixStore(f"joining {next(_joinings)}", store)
        how |= {"store": store, "rank": rank, "world_size": size}
        distributed.init_process_group(backend, timeout=wait, **how)
    except (distributed.DistNetworkError, distributed.DistStoreError) as error:
        reason = str(error).strip().splitlines()[0]
        raise MeasurementError(
            f"it can't meet the others at {os.environ.get('MASTER_ADDR')}:"
            f"{os.environ.get('MASTER_PORT')}: {reason}"
        ) from None
    control = distributed.new_group(backend="gloo", timeout=wait)
    until = time.monotonic() + budget_s
    try:
        yield Group(rank, size, where, control, patience_s, left or {}, until)
    except BaseException as error:
        if isinstance(error, distributed.DistBackendError):  # NCCL's own reason is its last line
            error.add_note(str(error).strip().splitlines()[-1])
        if size == 1:  # else its end would wait for the others
            distributed.destroy_process_group()
        raise
    distributed.destroy_process_group()


@cache
def _meeting() -> tuple[distributed.Store, int, int]:
    """What torchrun has the ranks of this run meet in, this one's number, and how many they are."""
    return next(rendezvous("env://")) if ranks.inside() else (distributed.HashStore(), 0, 1)


def own_device(device: str) -> torch.device:
    """The device of this rank, that of its number on its node from `device` on; DeviceError where
    there is none."""
    kind, first = host.require_device(device)
    number = first + int(os.environ.get("LOCAL_RANK", 0))
    return torch.device(kind, number) if kind == "cuda" else torch.device(kind)


def table(
    measure: Callable[..., Rows],
    world_size: int,
    device: str,
    wanted: Callable[[Capacity], Iterable[Requirement]],
    *,
    budget_s: float,
    promised: Sequence[str] = (),
    **params: Any,
) -> pd.DataFrame:
    """`together` what `measure(group, **params)`, a function of a module, returned on each rank,
    with the columns `promised` in any case. What the first GPU has no room for, of what is
    `wanted`, is not attempted, and nothing is after `budget_s` seconds."""
    on = memory.capacity(own_device(device))
    given = {"measure": f"{measure.__module__}:{measure.__name__}", "device": device}
    given |= {"left": left_out(wanted(on), on), "budget_s": budget_s, "params": params}
    found = together(ranks.run(f"{__name__}:of_rank", world_size, device, given))
    told: dict[str, Any] = {name.lower(): os.environ[name] for name in SETTINGS & os.environ.keys()}
    if (nodes := int(os.environ.get("GROUP_WORLD_SIZE", 1))) > 1:  # as torchrun tells
        told["nodes"] = nodes
    on_gpus = not device.startswith("cpu")
    if on_gpus:
        told["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    made = grid.joined([found], promised)
    made.attrs |= {"gpus": world_size if on_gpus else 1, "method": told}
    return made


def of_rank(
    measure: str, device: str, left: Mapping[str, str], budget_s: float, params: Mapping[str, Any]
) -> list[Rows]:
    """What a function of `table` returned on each rank, by rank; all ranks call it."""
    with joined(device, left=left, budget_s=budget_s) as group:
        return group.gathered(ranks.called(measure, {"group": group, **params}))


def timed(
    group: Group,
    ways: Mapping[str, Call],
    *,
    cell: Mapping[str, Any],
    against: Mapping[str, str] | None = None,
    blocks: int = BLOCKS,
    block_s: float = BLOCK_S,
) -> Rows:
    """Time ways to do a step in turn, the first, their control, twice; a row of each with this
    rank's blocks, in seconds, and what the slowest host takes to ask for a step. A block is of as
    many calls as last `block_s` seconds, one at the least. `cell` says which
    step, by its `op` and other columns; `against` names another control of single ways. All ranks
    call it alike."""
    group.agree(f"what is timed in {cell['op']}", list(ways))
    watch = stopwatch_for(group.where)
    control = next(iter(ways))
    again = f"{control} (again)"
    often, asked_s = {}, {}
    for name, call in ways.items():
        watch.wall([call] * WARM_UP)
        group.barrier(name)
        # The same number on all ranks, or one would wait for a collective that never comes.
        slowest_s = max(group.gathered(watch.wall([call] * WARM_UP) / WARM_UP))
        often[name] = max(1, min(MOST_CALLS, round(block_s / slowest_s)))
        few = min(WARM_UP, often[name])

        def ask(call: Call = call, few: int = few) -> None:
            for _ in range(few):
                call()

        asking_s = median(watch.enqueue(ask) / few for _ in range(WARM_UP))
        asked_s[name] = float(f"{max(group.gathered(asking_s)):.6g}")
    calls = {**ways, again: ways[control]}
    often[again], asked_s[again] = often[control], asked_s[control]
    found: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    gc.freeze()  # a collection on one rank would make all wait
    names, orders = list(calls), balanced_orders(len(calls), seed=0)  # the same on all ranks
    for number in range(blocks):
        for name in map(names.__getitem__, orders[number % len(orders)]):
            group.barrier(name)
            found[name].append(watch.wall([calls[name]] * often[name]) / often[name])
    gc.unfreeze()
    rows = []
    for name, taken in found.items():
        role = "control" if name == control else "again" if name == again else "variant"
        over = None if role == "control" else (against or {}).get(name, control)
        rows.append(
            {**cell, "variant": name, "role": role, "control": over, "quantity": "step_wall"}
            | {"device": group.where.type, "samples": often[name] * blocks, "blocks_s": taken}
            | {"launch_inclusive": False, "throttle": "unknown", "enqueue_s": asked_s[name]}
            | {"method": f"host clock around {often[name]} calls back to back; slowest rank"}
        )
    return rows


def origin(row: Mapping[str, Any]) -> str:
    """The way that a row of `timed` is about, also where that is the control's duplicate."""
    return row["variant"].removesuffix(" (again)")


def together(by_rank: Sequence[Rows]) -> pd.DataFrame:
    """The table of what all ranks returned, each the same rows: of timed ones those of the slowest
    rank, with the most memory that one took, judged as comparisons are; then what every rank has
    for itself, under `rank`, but for rows marked `one_drives`, in which one rank computes on all
    GPUs and the others watch."""
    whole, each_rank = [], []
    for several in zip(*by_rank, strict=True):
        row = dict(several[0])
        one_drives = row.pop("one_drives", False)
        if "rank" in row:  # nothing of it is of all together
            each_rank += several
            continue
        whole.append(row)
        if not row.get("blocks_s"):  # why it could not be measured
            continue
        blocks = [[float(f"{taken:.6g}") for taken in own["blocks_s"]] for own in several]
        row["blocks_s"] = [max(block) for block in zip(*blocks, strict=True)]
        row |= {name: max(own[name] for own in several) for name in OF_A_RANK if name in row}
        if one_drives or row["role"] == "again":
            continue
        named = {n: v for n, v in row.items() if n not in ("role", "control", "method")}
        for rank, own in enumerate(several):
            mine = {n: own[n] for n in OF_A_RANK if n in own} | {"blocks_s": blocks[rank]}
            each_rank.append({**named, **mine, "rank": rank, "op": f"{row['op']}, each rank"})
    return pd.DataFrame(judge.judged([*whole, *each_rank]))
