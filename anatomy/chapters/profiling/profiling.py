"""A training step under torch.profiler: what each of its options costs, the trace of one step, and
the table of its operators."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from anatomy.chapters.profiling import requirements
from anatomy.chapters.profiling.requirements import SMALL, scaled
from anatomy.diagnosis import profiles, traces
from anatomy.measure import census, stopwatch_for
from anatomy.numerics import formats
from anatomy.parts import grid, memory, models, own_blocks
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment

PAGE = "curriculum/day_11.md"
OFF, BOTH = "no profiler", "CPU and GPU"
CPU, GPU = ProfilerActivity.CPU, ProfilerActivity.CUDA
# What the profiler is told, one option at a time, beside watching CPU and GPU.
OPTIONS: dict[str, dict[str, Any]] = {
    "CPU": {"activities": [CPU]},
    "GPU": {"activities": [GPU]},
    BOTH: {},
    **{name: {name: True} for name in ("record_shapes", "profile_memory", "with_stack")},
}
OF_GPU = ("GPU", BOTH)  # those that are something else only where there is a GPU
# Steps of one profile that are timed, after one that is not; rounds at the least, and seconds of a
# step after which no further one is begun.
STEPS, FEWEST_ROUNDS, BUDGET_S = 4, 6, 16.0
WARM_UPS = 5
PARTS = ("forward", "backward", "optimizer")
# Columns of the table of operators, and what the profiler calls them; it counts microseconds.
TIMES = {
    "self_host_s": "self_cpu_time_total",
    "total_host_s": "cpu_time_total",
    "self_device_s": "self_device_time_total",
    "total_device_s": "device_time_total",
}
LISTED = 14  # rows that are kept, by their own time on either side
LONGEST = 400  # characters kept of a name: what a kernel applies stands after 160 of some
# What is in a profile and is no work of the step: our own wait at its end, and the profiler itself.
OURS = ("cudaDeviceSynchronize", "Activity Buffer Request", "Buffer Flush", *profiles.NO_WORK)
Step = Callable[[], None]


def training_step(op: str, where: torch.device, scale: float = 1.0) -> Step:
    """One step of a transformer with AdamW, its parts named for a profiler."""
    size = scaled(op, scale)
    dtype = models.half(where)
    model = models.transformer(size.width, size.layers, where, dtype)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(size.batch, size.tokens, size.width, device=where, dtype=dtype)

    def step() -> None:
        optimizer.zero_grad()
        with record_function("forward"):
            loss = model(x).float().square().mean()
        with record_function("backward"):
            loss.backward()
        with record_function("optimizer"):
            optimizer.step()

    for _ in range(WARM_UPS):
        step()
    return step


@experiment("profiling.overhead", page=PAGE, command="profiling-overhead", timeout_s=200)
def overhead(device: str = "cuda:0", scale: Scale = 1.0, rounds: Count = 16) -> pd.DataFrame:
    """Time a host-bound and a GPU-bound training step under the profiler, option by option.

    Args:
        device: Where to run, such as cuda:0 or cpu.
        scale: Factor on the width of the models and the length of their sequences.
        rounds: How often each option is timed.

    Returns:
        One row per step and option, with what one step adds to the profile; the step without a
        profiler is the control.
    """
    where = formats.torch_device(device)
    on_gpu, watch = where.type == "cuda", stopwatch_for(where)
    needs = list(requirements.overhead(memory.capacity(where), device, scale))
    gone = [] if on_gpu else OF_GPU
    both = {"activities": [CPU, GPU] if on_gpu else [CPU]}
    options = {name: both | told for name, told in OPTIONS.items() if name not in gone}

    def measure(cell: grid.Cell) -> pd.DataFrame:
        step = training_step(cell["op"], where, scale)
        last: dict[str, profile | None] = {}

        def timed(name: str) -> float:
            with profile(**options[name]) if name in options else nullcontext() as last[name]:
                step()  # the first one under a profiler pays for its buffers
                return watch.wall([step] * STEPS) / STEPS

        ways = {name: partial(timed, name) for name in (OFF, *options)}
        how = {"budget_s": BUDGET_S, "fewest": FEWEST_ROUNDS}
        taken = own_blocks.in_turn(ways, rounds, watch, **how)
        told = {name: _told(last[name]) for name in options}
        # Kernels take as long under a profile that does not list them, and without one.
        busy = told.get(BOTH, {}).get("busy_s")
        columns = {name: {"busy_s": busy} | told.get(name, {}) for name in ways}
        given = {"quantity": "step_wall", "device": where.type, "samples": len(taken[OFF])}
        given |= {"method": f"host clock around {STEPS} calls and a synchronize"}
        table = own_blocks.compared(taken, columns, op=cell["op"], **given)
        notes = dict.fromkeys(gone, f"needs a GPU; this is {where.type}")
        return grid.with_refused(table, cell, notes, quantity="step_wall", where=where)

    how = {"variants": [OFF, *OPTIONS], "quantity": "step_wall", "promised": ("busy_s",)}
    cells = [{"op": need.op} for need in needs]
    table = grid.measure_cells(cells, measure, where=where, required=needs, **how)
    return grid.with_counts(table, "event_count", "trace_bytes")


def _told(seen: profile) -> dict[str, Any]:
    """What one step adds to a profile, and how long its kernels ran, where it lists any."""
    steps, events = STEPS + 1, list(seen.events())
    busy = census.busy(profiles.on_device(events)) / steps
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        seen.export_chrome_trace(str(file))
        size = file.stat().st_size
    found = {"event_count": len(events) // steps, "trace_bytes": size // steps}
    return found | ({"busy_s": busy} if busy else {})


@experiment("profiling.trace", page=PAGE, command="profiling-trace")
def trace(device: str = "cuda:0") -> pd.DataFrame:
    """Trace one small training step: the CPU's calls, the GPU's kernels, and the step's parts.

    Returns:
        One row per event of torch.profiler. It slows the host, so gaps are wider than without it.
    """
    return _small(device, _events, [{"run": SMALL, "lane": None}])


def _events(where: torch.device) -> list[dict[str, Any]]:
    events = traces.recorded(training_step(SMALL, where), 1, stopwatch_for(where))
    rows = traces.events_of(events, SMALL)
    if rows[0].get("note"):
        return rows
    # The step is the last that the profile has: its last operator is that of the rows.
    host = [event for event in events if event.device_type == DeviceType.CPU]
    operators = [event.time_range.start for event in host if event.name.startswith("aten::")]
    last_s = max(row["start_s"] for row in rows if row["lane"] == traces.OPERATORS)
    ahead_s = max(operators) * 1e-6 - last_s
    parts = {event.name: event.time_range for event in host if event.name in PARTS}
    for name, part in parts.items():
        row = {"run": SMALL, "lane": traces.PARTS, "kind": "part", "variant": name}
        start, end = (max(0.0, round(at * 1e-6 - ahead_s, 9)) for at in (part.start, part.end))
        rows.append(row | {"start_s": start, "end_s": end})
    return rows


@experiment("profiling.averages", page=PAGE, command="profiling-averages")
def averages(device: str = "cuda:0") -> pd.DataFrame:
    """Profile small training steps, and add up the times of each operator and kernel by its name.

    Returns:
        One row per name among those with the most time of their own: times and calls of one step.
    """
    row = dict.fromkeys(("calls_a_step", *TIMES))
    return _small(device, _averaged, [row | {"ran_on": side} for side in ("CPU", "GPU")])


def _averaged(where: torch.device) -> list[dict[str, Any]]:
    step, watch = training_step(SMALL, where), stopwatch_for(where)
    # The profiler's own first step is left out: in it calls wait for its buffers.
    when = schedule(wait=0, warmup=1, active=STEPS, repeat=1)
    with profile(schedule=when, acc_events=True) as seen:
        for _ in range(1 + STEPS):
            step()
            watch.drain()
            seen.step()
    table = pd.DataFrame(
        {"variant": each.key[:LONGEST], "calls_a_step": each.count / STEPS}
        | {"ran_on": "CPU" if each.device_type == DeviceType.CPU else "GPU"}
        | {name: getattr(each, of) * 1e-6 / STEPS for name, of in TIMES.items()}
        for each in seen.key_averages()
        if not each.key.startswith(OURS) and not getattr(each, "is_user_annotation", False)
    )
    own = table[["self_host_s", "self_device_s"]]
    most = (own.rank(ascending=False) <= LISTED) & (own > 0)
    found = table[most.any(axis="columns")].to_dict("records")
    if not table.ran_on.eq("GPU").any():
        found.append({"variant": "no kernel", "ran_on": "GPU", "note": "no kernel was recorded"})
    return found


def _small(
    device: str, measure: Callable[[torch.device], list[dict]], told: Sequence[dict]
) -> pd.DataFrame:
    """The rows of what is read off a profile of the small step; or those that say why not."""
    where = formats.torch_device(device)
    (need,) = requirements.small(memory.capacity(where), device)
    told = [{"variant": need.op} | row for row in told]
    return grid.reported(partial(measure, where), need, where, told)
