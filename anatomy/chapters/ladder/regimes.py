"""Where FP8 pays: training steps over width and tokens. In a small cell the GPU waits for its host,
unless a CUDA graph launches all kernels at once; in a large one the products set the pace."""

from types import ModuleType
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from anatomy.chapters.ladder import comparison, copies, gates, requirements, rungs
from anatomy.chapters.ladder.requirements import Size
from anatomy.chapters.ladder.rungs import Answer, Call, Way
from anatomy.chapters.ladder.steps import FIRST_CALLS
from anatomy.comparison import compare
from anatomy.measure import census, stopwatch_for
from anatomy.measure.stopwatch import Stopwatch
from anatomy.parts import grid, memory
from anatomy.table.errors import AnatomyError

QUANTITY = "step_wall"
SETTLE_S = 0.5
# Ways without a graph first: their kernels are listed before a graph exists.
LABELS = (
    *("3 default", "5 bf16 without a graph", "5 fp8 without a graph", "4 current"),
    *("5 bf16", "5 fp8", "5 fp8 delayed", "4 current in a graph"),
)
CONTROL = LABELS[0]
WAYS = tuple(map(rungs.BY_LABEL.get, LABELS))


def measure(cells: list[Size], where: torch.device, backend: str, budget_s: float) -> pd.DataFrame:
    """The table of all cells; what can't be measured here is a row that says why."""
    watch = stopwatch_for(where)
    by_op = {cell.op: cell for cell in cells}
    with copies.apart(where), gates.compiled_by(backend):
        table = grid.measure_cells(
            ({"op": op, "tokens": cell.tokens} | cell.columns for op, cell in by_op.items()),
            lambda cell: _cell(by_op[cell["op"]], watch, budget_s),
            variants=LABELS,
            quantity=QUANTITY,
            where=where,
            required=[requirements.few_ways(op, cell) for op, cell in by_op.items()],
            foreseen=(RuntimeError,),
        )
    ways = [rungs.BY_LABEL[name.removesuffix(" (again)")].columns for name in table.variant]
    return table.assign(**pd.DataFrame(ways), device=where.type)


def _cell(cell: Size, watch: Stopwatch, budget_s: float) -> pd.DataFrame:
    calls: dict[str, Call] = {}
    try:
        return _compared(cell, calls, watch, budget_s)
    finally:
        copies.free_graphs(calls.values())


def _compared(
    cell: Size, calls: dict[str, Call], watch: Stopwatch, budget_s: float
) -> pd.DataFrame:
    where = watch.device
    x, target = rungs.problem(cell.width, cell.batch, cell.sequence, where)
    wanted = rungs.reference(cell.layers, cell.width, x, target)
    made: dict[str, tuple[ModuleType, nn.Module]] = {}
    told: dict[str, dict[str, Any]] = {}
    refused: list[dict] = []
    kernels: dict[str, census.Census] = {}
    for way in WAYS:
        if way.graph and not kernels and calls:
            kernels = census.take(calls, watch, 1) or {}
        try:
            copies.require_possible(way, where)
            plain = made.get(way.plain.label) if way.same_code else None
            script, model = plain or new(way, cell, where)
            calls[way.label], told[way.label] = ready(way, script, model, x, target, wanted)
            made[way.label] = script, model
            if plain:  # which has compiled what this one replays
                told[way.label]["setup_s"] += told[way.plain.label]["setup_s"]
        except Exception as error:  # the other ways can be measured all the same
            refused.append(_refused(way, cell, copies.why(error)))
    # A graph replays the kernels that are launched one by one without it.
    kernels |= {
        way.label: seen
        for way in WAYS
        if way.graph and way.label in calls and (seen := kernels.get(way.plain.label))
    }

    def measured(left: dict[str, Call]) -> pd.DataFrame:
        return compare(
            left,
            reference=lambda: torch.tensor(wanted.loss, dtype=torch.float64),
            allowed={way.label: way.loss for way in WAYS},
            quantity=QUANTITY,
            op=cell.op,
            flops=3 * cell.flops,
            limit={way.label: f"matmul {way.products}" for way in WAYS},
            device=where,
            budget_s=budget_s,
            settle_cap_s=min(SETTLE_S, budget_s),
            profile=kernels or False,
        ).table

    if CONTROL not in calls:
        why = next(row["note"] for row in refused if row["variant"] == CONTROL)
        return pd.DataFrame(
            [*refused, *(_refused(rungs.BY_LABEL[each], cell, why) for each in calls)]
        )
    table, blamed = comparison.without_culprits(measured, calls, CONTROL)
    refused += [_refused(way, cell, blamed[way.label]) for way in WAYS if way.label in blamed]
    known = [told[name.removesuffix(" (again)")] for name in table.variant]
    table = pd.concat([table, pd.DataFrame(known).astype(object)], axis=1)
    table["gap_s"] = [
        None if pd.isna(busy) else max(0.0, whole - busy)
        for whole, busy in zip(table.median_s, table.busy_s, strict=True)
    ]
    return pd.concat([table, pd.DataFrame(refused)], ignore_index=True)


def new(way: Way, cell: Size, where: torch.device) -> tuple[ModuleType, nn.Module]:
    """A script and a model that no other way shares."""
    script = copies.own_copy(way.rung.script, where)
    return script, script.build(cell.width, cell.layers, where)


def ready(
    way: Way, script: ModuleType, model: nn.Module, x: Tensor, target: Tensor, wanted: Answer
) -> tuple[Call, dict[str, Any]]:
    """A way's step, once it has shown that it makes `target` of `x` (B, T, C) as rung 0 does
    (`wanted`), and what is known of it. AnatomyError: it is void."""
    call, setup_s = copies.set_up(
        way, lambda: script.step(model, x, target, way.name), FIRST_CALLS, stopwatch_for(x.device)
    )
    loss_error, gradient_error = rungs.strays(rungs.answer(way, model, call, x, target), wanted)
    if why := rungs.void(way, loss_error, gradient_error):
        raise AnatomyError(why)
    told = {"setup_s": setup_s, "loss_error": loss_error, "gradient_error": gradient_error}
    found = memory.columns(memory.peak(call, x.device))
    # What other ways hold is in the other figures, and a graph's tensors are in no account.
    told["peak_bytes"] = None if way.graph else found["peak_bytes"]
    return call, told | way.columns


def _refused(way: Way, cell: Size, why: str) -> dict:
    told = {"op": cell.op, "variant": way.label, "role": "variant", "quantity": QUANTITY}
    return told | way.columns | {"note": why}
