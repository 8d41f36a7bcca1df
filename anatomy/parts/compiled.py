"""The map of torch.compile: one transformer layer in each cell, run eagerly and compiled."""

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from anatomy.comparison import compare
from anatomy.measure import census, stopwatch_for
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import formats
from anatomy.parts import memory, models
from anatomy.parts.graphs import held_before
from anatomy.parts.grid import measure_cells, reason_of
from anatomy.parts.sizes import COMPILED, EAGER, GRAPHS, TUNED, LayerCell
from anatomy.record.requirements import Requirement
from anatomy.table import formulas, intervals
from anatomy.table.errors import AnatomyError

Call = Callable[[], tuple[Tensor, ...]]

# Way -> the mode of torch.compile; eager has none.
MODES = {COMPILED: None, GRAPHS: "reduce-overhead", TUNED: "max-autotune"}
WITH_GRAPHS = (GRAPHS, TUNED)  # ways that hold CUDA graphs, which a CPU has not
FIRST_CALLS = 3  # set a way up: with CUDA graphs one compiles, one records them, one replays them
SETTLE_S = 1.0  # of settling, or the budget if that is less; all ways have run before
# Relative error allowed of the loss and of each matrix's gradient in 16 bits: an output's 2**-6
# (see `agreement.ALLOWED`), twice, because they come after a forward and a backward pass.
ALLOWED_GRADIENT = {"bf16": 2**-5, "fp32": 2**-12, "tf32": 2**-7}
ALLOWED_OUTPUT = {"bf16": 2**-6, "fp32": 2**-14, "tf32": 2**-9}


def measure(
    cells: Sequence[LayerCell],
    training: bool,
    where: torch.device,
    dtype: str,
    backend: str,
    iters: int,
    budget_s: float,
    required: Iterable[Requirement] = (),
) -> pd.DataFrame:
    """The table of all cells; one that can't be measured here has rows that say why."""
    watch = stopwatch_for(where)
    task = "training" if training else "inference"
    by_op = {_op(task, cell): cell for cell in cells}
    with formats.products_in(dtype), torch.set_grad_enabled(training), without_caches():
        x = torch.ones(8, device=where)
        run = torch.compile(torch.add, backend=backend)
        seconds = watch.wall([lambda: run(x, x)])
        compiler = pd.DataFrame([_first_call("compiler", {}, seconds)])
        found = measure_cells(
            ({"op": op} | cell.columns for op, cell in by_op.items()),
            lambda cell: _cell(by_op[cell["op"]], watch, task, dtype, backend, iters, budget_s),
            variants=lambda cell: (EAGER, *by_op[cell["op"]].ways),
            quantity="step_wall",
            where=where,
            required=required,
            foreseen=(RuntimeError,),
        )
    return pd.concat([compiler, found], ignore_index=True).assign(task=task, dtype=dtype)


def _op(task: str, cell: LayerCell) -> str:
    return f"{task} C={cell.width} T={cell.tokens}"


def _cell(cell: LayerCell, watch: Stopwatch, task, dtype, backend, iters, budget_s) -> pd.DataFrame:
    where, training = watch.device, task == "training"
    held = held_before(where) if where.type == "cuda" else 0
    model = models.transformer(cell.width, 1, where, formats.storage(dtype))
    x = torch.randn(1, cell.tokens, cell.width, device=where).to(formats.storage(dtype))
    calls = {EAGER: _call(model, model, x, training)}
    watch.wall(list(calls.values()) * FIRST_CALLS)
    # Each way's memory is read before the next one exists: pools of CUDA graphs stay reserved.
    peaks = {EAGER: memory.peak(calls[EAGER], where)}
    setup_s: dict[str, float] = {}
    refused, first = [], []
    kernels = None
    for way in cell.ways:
        if way in WITH_GRAPHS and where.type != "cuda":
            why = f"CUDA graphs need a GPU; this is {where.type}"
            refused.append(_refused(way, cell, task, why))
            continue
        if way in WITH_GRAPHS and kernels is None:
            kernels = _kernels(calls, watch)
        try:
            call = _call(_compiled(model, way, backend), model, x, training, way in WITH_GRAPHS)
            seconds = watch.wall([call] * FIRST_CALLS)
            peaks[way] = memory.peak(call, where)
        except Exception as error:  # the other ways can be measured all the same
            refused.append(_refused(way, cell, task, reason_of(error)))
            continue
        calls[way], setup_s[way] = call, seconds
        first.append(_first_call(way, cell.columns, seconds))
    flops = formulas.layer_flops(cell.width, cell.tokens, cell.tokens) * (3 if training else 1)

    def compared(calls: dict[str, Call]) -> pd.DataFrame:
        return compare(
            calls,
            control=EAGER,
            reference=_reference(model, x, training),
            allowed=(ALLOWED_GRADIENT if training else ALLOWED_OUTPUT)[dtype],
            quantity="step_wall",
            op=_op(task, cell),
            flops=flops,
            limit=f"matmul {dtype}",
            device=where,
            iters=iters,
            budget_s=budget_s,
            settle_cap_s=min(SETTLE_S, budget_s),
            profile=kernels or _kernels(calls, watch) or False,
        ).table

    table, absent = or_without_graphs(compared, calls)
    refused += [_refused(way, cell, task, why) for way, why in absent.items()]
    setup_s = {way: seconds for way, seconds in setup_s.items() if way not in absent}
    table = with_break_even(table, setup_s)
    needs = {way: memory_of(way, found, held) for way, found in peaks.items()}
    origin = [name.removesuffix(" (again)") for name in table.variant]
    for column in memory.columns(None):
        values = [needs[name][column] for name in origin]
        table[column] = pd.Series(values, table.index, dtype=object)
    added = pd.DataFrame([*first, *refused])
    return pd.concat([table.assign(**cell.columns), added], ignore_index=True)


def or_without_graphs(
    compared: Callable[[dict[str, Call]], pd.DataFrame], calls: dict[str, Call]
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The table of all calls, else of those without CUDA graphs; and why the others are missing."""
    try:
        return compared(calls), {}
    except AnatomyError as error:
        left = {way: call for way, call in calls.items() if way not in WITH_GRAPHS}
        if len(left) == len(calls):
            raise
        return compared(left), {way: reason_of(error) for way in calls if way not in left}


def memory_of(way: str, found: memory.Peak | None, held: int) -> dict[str, int | None]:
    """The memory of a way as columns, without what was `held` before its cell; of CUDA graphs only
    what is reserved, for no account of tensors sees their pool."""
    told = memory.columns(found)
    if found:
        told["reserved_bytes"] = found.reserved_bytes - held
    return told | {"peak_bytes": None, "total_peak_bytes": None} if way in WITH_GRAPHS else told


def _kernels(calls: dict[str, Call], watch: Stopwatch) -> dict[str, census.Census]:
    """The kernels of the ways that launch them one by one, listed before a CUDA graph exists."""
    # A profiler beside one has crashed before (github.com/pytorch/pytorch/issues/75504).
    listed = {way: call for way, call in calls.items() if way not in WITH_GRAPHS}
    return census.take(listed, watch, 1) or {}


def _compiled(model: torch.nn.Module, way: str, backend: str) -> Callable[[Tensor], Tensor]:
    """The model compiled for this one shape; `backend` other than inductor knows no modes."""
    mode = MODES[way] if backend == "inductor" else None
    return torch.compile(model, backend=backend, mode=mode, dynamic=False)


def _call(
    run: models.Layer, model: torch.nn.Module, x: Tensor, training: bool, graphs: bool = False
) -> Call:
    """One step: the output alone, or the loss with the gradients of all matrices. Those of vectors
    are computed, and not returned: as sums over all tokens of terms that cancel, they are mostly
    rounding in 16 bits, and could not be checked."""
    parameters = list(model.parameters())
    shown = [0, *(1 + i for i, each in enumerate(parameters) if each.ndim > 1)]
    step = models.gradients_of(run, parameters, x) if training else None

    def call() -> tuple[Tensor, ...]:
        if graphs:  # what an earlier replay returned may now be overwritten
            torch.compiler.cudagraph_mark_step_begin()
        if step is None:
            return (run(x),)
        found = step()
        return tuple(found[i] for i in shown)

    return call


def _reference(model: torch.nn.Module, x: Tensor, training: bool) -> Call:
    """The same step, eagerly, in float32 without TF32; float64 has no fused attention."""

    def exact() -> tuple[Tensor, ...]:
        with formats.products_in("fp32"):
            wide = copy.deepcopy(model).to(torch.float32)
            return _call(wide, wide, x.to(torch.float32), training)()

    return exact


def with_break_even(table: pd.DataFrame, setup_s: dict[str, float]) -> pd.DataFrame:
    """Add the seconds of each way's first calls, and the steps after which eager is overtaken."""
    blocks = dict(zip(table.variant, table.blocks_s, strict=True))
    added = []
    for row in table.itertuples():
        if row.variant not in setup_s:
            added.append((None, None, None, None, None))
            continue
        found = intervals.break_even(setup_s[row.variant], blocks[EAGER], blocks[row.variant])
        pays = {"faster": True, "undecided": None}.get(row.verdict, False)
        known = (found.median, found.low, found.high) if pays else (None, None, None)
        steps = [None if x == float("inf") else x for x in known]
        added.append((setup_s[row.variant], *steps, pays))
    columns = list(zip(*added, strict=True))
    names = ("setup_s", "uses", "uses_low", "uses_high", "pays")
    for name, values in zip(names, columns, strict=True):
        table[name] = pd.Series(values, table.index, dtype=object)
    return table


def _first_call(way: str, columns: dict, seconds: float) -> dict:
    calls = 1 if way == "compiler" else FIRST_CALLS
    return {
        "op": "first call",
        # Not the way's own name: it would be taken for a step of that cell.
        "variant": f"{way}, first call{'s' * (calls > 1)}",
        "role": "variant",
        "quantity": "step_wall",
        "median_s": seconds,
        "samples": 1,
        "blocks_s": [seconds],
        "method": f"host clock around {calls} first call{'s' * (calls > 1)} and a synchronize",
    } | columns


def _refused(way: str, cell: LayerCell, task: str, why: str) -> dict:
    told = {"op": _op(task, cell), "variant": way, "role": "variant"}
    return told | {"quantity": "step_wall", "note": why} | cell.columns


@contextmanager
def without_caches() -> Iterator[None]:
    """Compile everything anew: what an earlier process left on the disk would hide the cost."""
    switch = "TORCHINDUCTOR_FORCE_DISABLE_CACHES"
    before = os.environ.get(switch)
    os.environ[switch] = "1"  # read when the compiler is imported
    import torch._inductor.config as config  # takes seconds, which listing experiments should not

    try:
        with config.patch(force_disable_caches=True):
            yield
    finally:
        del os.environ[switch]
        os.environ |= {switch: before} if before is not None else {}


def cost_per_break(
    breaks: Sequence[int], blocks_s: Sequence[Sequence[float]]
) -> intervals.Interval:
    """Seconds that one break adds: the slope, in each block, of the variants' times over breaks."""
    n = np.asarray(breaks, dtype=np.float64)
    seconds = np.asarray(blocks_s, dtype=np.float64)  # (variants, blocks)
    return intervals.median_interval(np.polyfit(n, seconds, 1)[0])
