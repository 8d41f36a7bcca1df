"""Every rung's forward pass, and its step of decoding, held against rung 0 and timed. A way that
replays a CUDA graph shares script and model with the one that does not: one is compiled."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from anatomy.chapters.ladder import comparison, copies, gates, kernels, requirements, rungs, steps
from anatomy.chapters.ladder.requirements import Size
from anatomy.chapters.ladder.rungs import TRAINING as WAYS
from anatomy.chapters.ladder.rungs import Call, Way
from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import formats
from anatomy.parts import grid, memory
from anatomy.record.requirements import Requirement
from anatomy.table import formulas, intervals
from anatomy.table.errors import AnatomyError

QUANTITY = "step_wall"
FIRST, COMPILER = "first call", "compiler, first call"
SETTLE_S = 1.0
# How far what the layers add to their input may stray from rung 0's, ||d - d0|| / ||d0||: less than
# the input, so that the output itself would forgive more. For the formats see `rungs`.
ALLOWED = {"fp32": 2**-12, "tf32": 2**-8, "fp16": 2**-8, "bf16": 2**-5, "fp8": 2**-3}
# Number format -> how keys and values are kept.
KEPT_AS = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16}
# What `kernels` tells of a way; a graph replays the same kernels.
KERNELS = tuple(f"{kind}_s" for kind in kernels.KINDS)
KERNELS += ("busy_s", "kernels_per_call", "kernel_seconds", "backend")


@dataclass(frozen=True)
class Task:
    """What is called: the forward pass over whole sequences, or of one more token of one."""

    op: str  # what tables call it
    width: int
    layers: int
    batch: int
    sequence: int  # tokens T that are passed in
    context: int | None = None  # tokens S that keys and values are kept of, the newest among them

    @property
    def flops(self) -> int:
        """Of the products of one call."""
        tokens, seen = self.batch * self.sequence, self.context or self.sequence
        return self.layers * formulas.layer_flops(self.width, tokens, seen)

    @property
    def required(self) -> Requirement:
        """What all ways of it take of a device."""
        size = Size(self.width, self.layers, self.batch, self.sequence)
        return requirements.without_gradients(self.op, size, self.context or 0)

    @property
    def columns(self) -> dict[str, int | None]:
        """Its sizes as columns of a table."""
        return {name: getattr(self, name) for name in ("width", "layers", "batch", "sequence")} | (
            {"context": self.context} if self.context else {}
        )

    def input(self, where: torch.device) -> Tensor:
        """(B, T, C) in float32, the same each time."""
        return rungs.problem(self.width, self.batch, self.sequence, where)[0]

    def caches(self, products: str, where: torch.device) -> list[Tensor] | None:
        """Keys and values of the same tokens each time, as this number format keeps them."""
        if self.context is None:
            return None
        kind = KEPT_AS.get(products, torch.bfloat16)
        return rungs.caches(self.layers, self.width, self.context, kind, where)


@dataclass
class Ready:
    """A way that computes the same: its call, what that uses, and what is known of it."""

    way: Way
    call: Callable[[], Tensor]
    script: ModuleType
    model: nn.Module
    caches: list[Tensor] | None
    told: dict[str, Any] = field(default_factory=dict)


def measure(task: Task, where: torch.device, backend: str, budget_s: float) -> pd.DataFrame:
    """The table of all ways; one that can't run here, or is void, is a row that says why. Errors
    are AnatomyError, where rung 0 can't be timed, and BadParameter."""
    copies.require_width(task.width)
    if why := task.required.why_not(memory.capacity(where)):
        table = grid.joined([pd.DataFrame([_refused(way, task, why) for way in WAYS])])
        return table.assign(**task.columns, device=where.type)
    watch = stopwatch_for(where)
    ready: dict[str, Ready] = {}
    refused: list[dict] = []
    with copies.apart(where), gates.compiled_by(backend):
        x = task.input(where)
        wanted = reference(task, x)
        first = [first_compilation(watch)]
        for way in sorted(WAYS, key=lambda way: way.graph):
            try:
                plain = ready.get(way.plain and way.plain.label)
                ready[way.label] = prepare(way, task, x, wanted, watch, plain)
            except Exception as error:  # the other rungs can be measured all the same
                if way == WAYS[0]:
                    raise copies.no_comparison(way, error) from error
                refused.append(_refused(way, task, copies.why(error)))
        kept = [ready.pop(way.label) for way in WAYS if way.label in ready]
        table, blamed = _compared(task, kept, wanted, where, budget_s)
        refused += [_refused(way, task, blamed[way.label]) for way in WAYS if way.label in blamed]
        first += [
            _first(f"{each.way.label}, first calls", steps.FIRST_CALLS, each.told["setup_s"])
            | each.way.columns
            for each in kept
        ]
        copies.free_graphs(each.call for each in kept)
        kept.clear()
    table = pd.concat([table, pd.DataFrame(first + refused)], ignore_index=True)
    return table.assign(**task.columns, device=where.type)


def reference(task: Task, x: Tensor) -> Tensor:
    """Rung 0's output in float32, without TF32: what all others are held against."""
    script = copies.own_copy(rungs.FP32.rung.script, x.device)
    with formats.products_in("fp32"):
        model = script.build(task.width, task.layers, x.device)
        return script.inference(model, x, rungs.FP32.name, task.caches("fp32", x.device))().clone()


def first_compilation(watch: Stopwatch) -> dict:
    """The row of the first thing compiled, which pays for the start of the compiler."""
    x = torch.ones(8, device=watch.device)
    run = torch.compile(torch.add)
    return _first(COMPILER, 1, watch.wall([lambda: run(x, x)]))


def prepare(
    way: Way, task: Task, x: Tensor, wanted: Tensor, watch: Stopwatch, plain: Ready | None = None
) -> Ready:
    """A way's call, once its output for `x` (B, T, C) has come close enough to rung 0's, `wanted`;
    `plain` is the same without a CUDA graph. AnatomyError: it can't run here, or is void."""
    where, shared = x.device, plain if way.same_code else None
    copies.require_possible(way, where)
    before = _held(where)
    if shared:
        script, model, caches = shared.script, shared.model, shared.caches
    else:
        script = copies.own_copy(way.rung.script, where)
        model = script.build(task.width, task.layers, where)
        caches = task.caches(way.products, where)
    call, setup_s = copies.set_up(
        way, lambda: script.inference(model, x, way.name, caches), steps.FIRST_CALLS, watch
    )
    error = strays(call(), wanted, x)
    if not error <= ALLOWED[way.products]:  # NaN too
        raise AnatomyError(
            f"void: what its layers add strays {error:.2g} from rung 0's; "
            f"{ALLOWED[way.products]:.2g} is allowed"
        )
    told = {
        "setup_s": setup_s + (shared.told["setup_s"] if shared else 0.0),
        "output_error": error,
        "parameters": sum(p.numel() for p in model.parameters()),
        "weight_bytes": weight_bytes(model, way.products),
        "kv_bytes": sum(c.numel() * c.element_size() for c in caches or ()),
    }
    told |= _memory(way, call, where, before, shared)
    if way.graph:
        told |= {name: plain.told.get(name) for name in KERNELS} if plain else {}
    else:
        told |= kernels.profiled(call, watch)
    return Ready(way, call, script, model, caches, told)


def strays(found: Tensor, wanted: Tensor, x: Tensor) -> float:
    """||found - wanted|| / ||wanted - x||: the error of what the layers add to `x`, relative."""
    exact = wanted.double()
    off = torch.linalg.vector_norm(found.double() - exact)
    return float(off / torch.linalg.vector_norm(exact - x.double()))


def weight_bytes(model: nn.Module, products: str) -> int:
    """Bytes of all weights as one call must read them at least once: as they are stored, even where
    every call casts them. FP8 ways keep their matrices in 8 bits from the first call on."""
    return sum(
        weight.numel() * (1 if products == "fp8" and weight.ndim > 1 else weight.element_size())
        for weight in model.parameters()
    )


def _held(where: torch.device) -> tuple[int, int]:
    """Bytes in tensors, and bytes taken from the driver, before a way is set up."""
    gc.collect()
    if where.type != "cuda":
        return 0, 0
    torch.cuda.synchronize(where)
    torch.cuda.empty_cache()
    return torch.cuda.memory_allocated(where), torch.cuda.memory_reserved(where)


def _memory(
    way: Way, call: Call, where: torch.device, before: tuple[int, int], shared: Ready | None
) -> dict[str, int | None]:
    """The memory of a way as columns, without that of the ways before it."""
    found = memory.peak(call, where)
    told = memory.columns(found)
    if found is None:
        return told
    told["total_peak_bytes"] = found.total_bytes - before[0]
    told["reserved_bytes"] = found.reserved_bytes - before[1]
    if shared:  # weights and caches were there before
        told["reserved_bytes"] += shared.told["reserved_bytes"]
    if way.graph:  # their tensors lie in pools outside of that account
        told |= {"peak_bytes": None, "total_peak_bytes": None}
    return told


def _compared(
    task: Task, ready: Sequence[Ready], wanted: Tensor, where: torch.device, budget_s: float
) -> tuple[pd.DataFrame, dict[str, str]]:
    """All ways in the same blocks, with what is known of each; and why others are left out."""
    decodes = task.context is not None
    moved = {e.way.label: e.told["weight_bytes"] + e.told["kv_bytes"] for e in ready}

    def measured(left: dict[str, Call]) -> pd.DataFrame:
        return compare(
            left,
            reference=lambda: wanted,
            allowed={each.way.label: ALLOWED[each.way.products] for each in ready},
            quantity=QUANTITY,
            op=task.op,
            flops=task.flops,
            bytes=moved if decodes else None,
            limit={e.way.label: "read" if decodes else f"matmul {e.way.products}" for e in ready},
            device=where,
            budget_s=budget_s,
            settle_cap_s=min(SETTLE_S, budget_s),
            profile=False,
        ).table

    calls = {each.way.label: each.call for each in ready}
    table, blamed = comparison.without_culprits(measured, calls, ready[0].way.label)
    told = {each.way.label: each.told | each.way.columns for each in ready}
    extra = pd.DataFrame([told[name.removesuffix(" (again)")] for name in table.variant])
    table = table.drop(columns=[name for name in extra if name in table])
    table = pd.concat([table, extra.astype(object)], axis=1)
    if "busy_s" in table:
        table["gap_s"] = [
            None if pd.isna(busy) else max(0.0, whole - busy)
            for whole, busy in zip(table.median_s, table.busy_s, strict=True)
        ]
    return _with_uses(table), blamed


def _with_uses(table: pd.DataFrame) -> pd.DataFrame:
    """Add the calls after which setting a way up is paid back by being faster than the control."""
    control = table[table.role == "control"].iloc[0].blocks_s
    added = []
    for row in table.itertuples():
        uses = (None, None, None)
        if row.role == "variant" and row.verdict == "faster":
            found = intervals.break_even(row.setup_s, control, row.blocks_s)
            ends = (found.median, found.low, found.high)
            uses = tuple(None if end == float("inf") else end for end in ends)
        added.append(uses)
    for place, name in enumerate(("uses", "uses_low", "uses_high")):
        table[name] = pd.Series([each[place] for each in added], table.index, dtype=object)
    return table


def _first(name: str, calls: int, seconds: float) -> dict:
    return {
        "op": FIRST,
        # Not the way's own name: it would be taken for a call that is warm.
        "variant": name,
        "role": "variant",
        "quantity": QUANTITY,
        "median_s": seconds,
        "samples": 1,
        "blocks_s": [seconds],
        "method": f"host clock around setting up, {calls} call{'s' * (calls > 1)}, a synchronize",
    }


def _refused(way: Way, task: Task, why: str) -> dict:
    told = {"op": task.op, "variant": way.label, "role": "variant", "quantity": QUANTITY}
    return told | way.columns | {"note": why}
