"""Workloads whose bottleneck is known by construction, put to `diagnose`; where it can be taken out
without changing the result, the same work without it is measured beside it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from anatomy.chapters.bottlenecks import requirements
from anatomy.chapters.bottlenecks.requirements import sized
from anatomy.chapters.bottlenecks.workloads import WORKLOADS, Call, Workload
from anatomy.comparison import compare
from anatomy.diagnosis import bottleneck, profiles
from anatomy.diagnosis.bottleneck import COMMUNICATION
from anatomy.diagnosis.steps import diagnose
from anatomy.measure import census, stopwatch_for
from anatomy.numerics import formats
from anatomy.parts import grid, memory, models
from anatomy.parts.models import half
from anatomy.record.bounds import Scale, Seconds
from anatomy.record.declare import experiment

# What the profiler itself does, and lists among the work of the host.
OF_THE_PROFILER = ("Activity Buffer Request", "Buffer Flush", "Instrumentation", "Resource")
PROFILED = (1, 20, 21, 22)  # calls of a fresh model: the first, and three of the steady ones
ONE_GPU = "not measurable in one process on one GPU: a collective of one rank moves nothing"


@experiment(
    "bottlenecks.confusion", page="axioms/profiling.md", command="bottlenecks", timeout_s=400
)
def confusion(device: str = "cuda:0", scale: Scale = 1.0, budget_s: Seconds = 1.0) -> pd.DataFrame:
    """Diagnose twelve workloads whose bottleneck is known, and see which names come out.

    Args:
        scale: Factor on the sides of the matrices and the lengths of the tensors.
        budget_s: Seconds of timing for each workload, warm-up and diagnosis apart.

    Returns:
        An `op` in step_wall for each workload: itself, as control, with what `diagnose` says of it;
        and, where its bottleneck can be taken out, `without`.
    """
    where = formats.torch_device(device)
    needs = {each.op: each for each in requirements.confusion(memory.capacity(where), scale)}
    parts, warnings = [], []
    for make in WORKLOADS:
        name = make.__name__.strip("_")
        why = needs[name].why_not(memory.capacity(where)) if name in needs else ""
        found = None
        if not why:
            one = partial(_examined, make, where, scale, budget_s)
            found, why = grid.attempt(one, where, (RuntimeError,))
        table, told = found or (_refused(name, None, where, why), [])
        parts.append(table)
        warnings += told
    parts.append(_refused("all-reduce", COMMUNICATION, where, ONE_GPU))
    table = pd.concat([part.astype(object) for part in parts], ignore_index=True)
    table.attrs["warnings"] = warnings
    return table


def _refused(name: str, expected: str | None, where: torch.device, why: str) -> pd.DataFrame:
    row = {"op": name, "variant": name, "role": "variant", "quantity": "step_wall"}
    row |= {"device": where.type, "expected": expected, "note": why}
    return pd.DataFrame([row])


def _examined(
    make: Callable[[torch.device, float], Workload],
    where: torch.device,
    scale: float,
    budget_s: float,
) -> tuple[pd.DataFrame, list[str]]:
    workload = make(where, scale)
    calls = {workload.name: workload.call}
    if workload.without:
        calls["without"] = workload.without
    told = compare(
        calls,
        quantity="step_wall",
        op=workload.name,
        device=where,
        budget_s=budget_s,
        settle_cap_s=min(0.5, budget_s),
        profile=False,
    )
    found = diagnose(
        workload.step or workload.call,
        inputs=workload.inputs,
        device=str(where),
        name=workload.name,
        settle_cap_s=0,  # it has just run
    )
    verdict, quantities = found.verdict, found.quantities
    columns = {
        "expected": workload.expected,
        "found": verdict.cause,
        "second": verdict.second,
        "certain": verdict.certain,
        "seed_says": bottleneck.three_kinds(quantities) if where.type == "cuda" else None,
        "kernel_count": quantities.kernels,
        **quantities.shares(),
        "saving": verdict.savings.get(verdict.cause),
        "diagnosed_s": quantities.period_s,
        "profiled_s": quantities.profiled_s,
        "report": str(found).splitlines(),
    }
    control = told.table.role == "control"
    table = told.table.astype(object)
    for name, value in columns.items():
        table[name] = [value if own else None for own in control]
    missing = [workload.missing] if workload.missing else []
    kept = stopwatch_for(where).warnings  # the recorder asks for these by itself
    return table, [each for each in (*found.warnings, *missing) if each not in kept]


@experiment(
    "bottlenecks.profiled_call", page="axioms/profiling.md", command="profiled-call", timeout_s=120
)
def profiled_call(device: str = "cuda:0", scale: Scale = 1.0) -> pd.DataFrame:
    """Profile the first call of a fresh model and later ones, and see which hot spots they name.

    Args:
        scale: Factor on the width of the models and the length of their inputs.

    Returns:
        One row per `model` and `call` (the last three steady). Device columns are null on a CPU.
    """
    where = formats.torch_device(device)
    needs = {each.op: each for each in requirements.profiled_call(memory.capacity(where), scale)}
    rows = []
    for name, make in (("transformer", _transformer), ("convolutions", _convolutions)):
        found, why = None, needs[name].why_not(memory.capacity(where))
        if not why:
            found, why = grid.attempt(partial(_profiled, name, make, where, scale), where)
        rows += found or [{"variant": name, "model": name, "note": why}]
    return pd.DataFrame(rows)


def _profiled(name: str, make, where: torch.device, scale: float) -> list[dict[str, Any]]:
    call, rows = make(where, scale), []
    for number in range(1, PROFILED[-1] + 1):
        if number in PROFILED:
            row = {"variant": f"{name}, call {number}", "model": name, "call": number}
            rows.append(row | _profile_of(call, where))
        else:
            call()
    return rows


def _transformer(where: torch.device, scale: float) -> Call:
    width = sized(1024, scale, models.HEAD_WIDTH)
    model = models.transformer(width, 2, where, half(where)).eval()
    x = torch.randn(4, sized(1024, scale), width, dtype=half(where), device=where)  # (B, T, C)
    return partial(_without_gradients, model, x)


def _convolutions(where: torch.device, scale: float) -> Call:
    width = sized(128, scale)
    model = nn.Sequential(
        *(nn.Conv2d(3, width, 3), nn.BatchNorm2d(width), nn.ReLU()),
        *(nn.Conv2d(width, width, 3), nn.BatchNorm2d(width), nn.ReLU()),
    )
    model = model.to(where, half(where)).eval()
    side = sized(128, scale)
    x = torch.randn(16, 3, side, side, dtype=half(where), device=where)
    return partial(_without_gradients, model, x)


def _without_gradients(model: nn.Module, x: Tensor) -> Tensor:
    with torch.inference_mode():
        return model(x)


def _profile_of(call: Call, where: torch.device) -> dict[str, Any]:
    """One profiled call, as the seed's snippet takes it: no warm-up, no schedule."""
    on_gpu = where.type == "cuda"
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=kinds) as profiler:
        call()
        if on_gpu:  # or the kernels still running would be cut off
            torch.cuda.synchronize(where)
    events = list(profiler.events())
    device = profiles.on_device(events)
    host: dict[str, float] = {}
    for event in events:
        # Neither the wait that was added here is a hot spot of the model's, nor the profiler.
        added = "Synchronize" in event.name or event.name in OF_THE_PROFILER
        if event.device_type == torch.autograd.DeviceType.CPU and not added:
            host[event.name] = host.get(event.name, 0.0) + event.self_cpu_time_total * 1e-6
    each: dict[str, float] = {}
    for begin, end, name in device:
        each[name] = each.get(name, 0.0) + end - begin
    found: dict[str, Any] = {"host_s": sum(host.values()), "device_s": None}
    if on_gpu:
        found["device_s"] = census.busy(device)
    for side, times in (("host", host), ("device", each)):
        top = max(times, key=times.__getitem__, default=None)
        whole = sum(times.values())
        found[f"top_{side}"] = top
        found[f"top_{side}_share"] = times[top] / whole if top and whole else None
    return found
