"""A training step under torch.profiler: what each of its options costs, the trace of one step, and
the table of its operators."""

import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import cycle, islice
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from anatomy import judge
from anatomy.chapters.profiling import requirements
from anatomy.chapters.profiling.requirements import SMALL, scaled
from anatomy.diagnosis import profiles, traces
from anatomy.measure import blocks, census, stopwatch_for
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import formats
from anatomy.parts import grid, memory, models
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment

PAGE = "curriculum/day_11.md"
OFF, BOTH = "no profiler", "CPU and GPU"
CPU, GPU = ProfilerActivity.CPU, ProfilerActivity.CUDA
# What the profiler is told, one option at a time.
OPTIONS: dict[str, dict[str, Any]] = {
    "CPU": {"activities": [CPU]},
    "GPU": {"activities": [GPU]},
    BOTH: {"activities": [CPU, GPU]},
    "record_shapes": {"activities": [CPU, GPU], "record_shapes": True},
    "profile_memory": {"activities": [CPU, GPU], "profile_memory": True},
    "with_stack": {"activities": [CPU, GPU], "with_stack": True},
}
AGAIN = f"{OFF} (again)"
# Steps of one profile that are timed, after one that is not; rounds at the least, and seconds of a
# step after which no further one is begun.
STEPS, FEWEST_ROUNDS, BUDGET_S = 4, 6, 16.0
WARM_UPS = 5
# Columns of the table of operators, and what the profiler calls them; it counts microseconds.
TIMES = {
    "self_host_s": "self_cpu_time_total",
    "total_host_s": "cpu_time_total",
    "self_device_s": "self_device_time_total",
    "total_device_s": "device_time_total",
}
LISTED = 14  # operators that are kept, by their own time on either side
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
    needs = list(requirements.overhead(memory.capacity(where), device, scale))

    def measure(cell: grid.Cell) -> pd.DataFrame:
        step = training_step(cell["op"], where, scale)
        table = pd.DataFrame(judge.judged(_profiled(cell["op"], step, where, rounds)))
        gone = [name for name in OPTIONS if name not in options_on(where)]
        notes = dict.fromkeys(gone, f"needs a GPU; this is {where.type}")
        return grid.with_refused(table, cell, notes, quantity="step_wall", where=where)

    how = {"variants": [OFF, *OPTIONS], "quantity": "step_wall", "where": where}
    how["promised"] = ("busy_s", "gpu_idle_share", "event_count", "trace_bytes")
    cells = [{"op": need.op} for need in needs]
    table = grid.measure_cells(cells, measure, required=needs, **how)
    return grid.with_counts(table, "event_count", "trace_bytes")


def options_on(where: torch.device) -> dict[str, dict[str, Any]]:
    """What the profiler can be told on a device: a CPU has no GPU to watch, and all else."""
    if where.type == "cuda":
        return OPTIONS
    own = {name: told for name, told in OPTIONS.items() if name not in ("GPU", BOTH)}
    return {name: told | {"activities": [CPU]} for name, told in own.items()}


def _profiled(op: str, step: Step, where: torch.device, rounds: int) -> list[dict[str, Any]]:
    watch, options = stopwatch_for(where), options_on(where)
    names = [OFF, *options, AGAIN]
    taken: dict[str, list[float]] = {name: [] for name in names}
    last: dict[str, profile] = {}
    begun = watch.now()
    for order in islice(cycle(blocks.balanced_orders(len(names), seed=0)), rounds):
        if len(taken[OFF]) >= FEWEST_ROUNDS and watch.now() - begun >= BUDGET_S:
            break
        for name in (names[place] for place in order):
            seconds, seen = _timed(step, options.get(name), watch)
            taken[name].append(seconds)
            if seen:
                last[name] = seen
    told = {name: _told(seen, where) for name, seen in last.items()}
    if BOTH in told:  # what the kernels take is read in a profile, whoever is timed
        told[OFF] = {"busy_s": told[BOTH]["busy_s"]}
    known = {"op": op, "quantity": "step_wall", "device": where.type, "launch_inclusive": False}
    known |= {"method": f"host clock around {STEPS} calls and a synchronize"}
    return [known | _times(name, taken[name]) | told.get(name, {}) for name in names]


def _timed(
    step: Step, options: Mapping[str, Any] | None, watch: Stopwatch
) -> tuple[float, profile | None]:
    """Seconds of a step, and its profile; the first step under a profiler pays for its buffers."""
    with warnings.catch_warnings():
        # It says that events of one cycle are kept; there is only one here.
        warnings.filterwarnings("ignore", message=".*Profiler clears events")
        # Entered here and not in a generator's frame, of which it knows no end with `with_stack`.
        with nullcontext() if options is None else profile(**options) as seen:
            step()
            return watch.wall([step] * STEPS) / STEPS, seen


def _times(name: str, taken: list[float]) -> dict[str, Any]:
    role = {OFF: "control", AGAIN: "again"}.get(name, "variant")
    control = None if role == "control" else OFF
    times = {"median_s": median(taken), "blocks_s": taken, "samples": len(taken)}
    return {"variant": name, "role": role, "control": control} | times


def _told(seen: profile, where: torch.device) -> dict[str, Any]:
    """What one step adds to a profile, and how long the GPU was busy with it."""
    steps = STEPS + 1
    events = list(seen.events())
    busy = census.busy(profiles.on_device(events)) / steps
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        seen.export_chrome_trace(str(file))
        size = file.stat().st_size
    found = {"event_count": len(events) // steps, "trace_bytes": size // steps}
    return found | {"busy_s": busy if busy and where.type == "cuda" else None}


@experiment("profiling.trace", page=PAGE, command="profiling-trace")
def trace(device: str = "cuda:0") -> pd.DataFrame:
    """Trace one small training step: the CPU's calls, the GPU's kernels, and the step's parts.

    Returns:
        One row per event of torch.profiler. It slows the host, so gaps are wider than without it.
    """
    return _small(device, _events, [{"run": SMALL, "lane": None}])


def _events(where: torch.device) -> list[dict[str, Any]]:
    step = training_step(SMALL, where)
    events = traces.recorded(step, 1, stopwatch_for(where))
    rows = traces.events_of(events, SMALL)
    host = [event for event in events if event.device_type == DeviceType.CPU]
    began = next((each.time_range.start for each in host if each.name == profiles.STEP), inf)
    inside = [each for each in host if each.time_range.start >= began]
    first = min((e.time_range.start for e in inside if e.name.startswith("aten::")), default=0.0)
    operator = next((row for row in rows if row["lane"] == traces.OPERATORS), {"start_s": 0.0})
    rows = _telling(rows)
    for event in (each for each in inside if each.name in ("forward", "backward", "optimizer")):
        ends = (event.time_range.start - first, event.time_range.end - first)  # microseconds
        start, end = (max(0.0, round(each * 1e-6 + operator["start_s"], 9)) for each in ends)
        row = {"run": SMALL, "lane": traces.PARTS, "kind": "part", "variant": event.name}
        rows.append(row | {"start_s": start, "end_s": end})
    return rows


def _telling(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events, by their start, without operators inside of others that launch nothing."""
    launches = [row["start_s"] for row in rows if row.get("kind") == "launch"]
    reached, kept = -1.0, []
    for row in rows:
        if row["lane"] == traces.OPERATORS:
            inside, reached = row["start_s"] < reached, max(reached, row["end_s"])
            if inside and not any(row["start_s"] <= at <= row["end_s"] for at in launches):
                continue
        kept.append(row)
    return kept


@experiment("profiling.averages", page=PAGE, command="profiling-averages")
def averages(device: str = "cuda:0") -> pd.DataFrame:
    """Profile small training steps, and add up the times of each operator and kernel by its name.

    Returns:
        One row per name among those with the most time of their own: times and calls of one step.
    """
    row = dict.fromkeys(("calls_a_step", *TIMES))
    return _small(device, _averaged, [row | {"ran_on": side} for side in ("CPU", "GPU")])


def _small(
    device: str, measure: Callable[[torch.device], list[dict]], told: Sequence[dict]
) -> pd.DataFrame:
    """The rows of what is read off a profile of the small step; or those that say why not."""
    where = formats.torch_device(device)
    (need,) = requirements.small(memory.capacity(where), device)
    told = [{"variant": need.op} | row for row in told]
    return grid.reported(partial(measure, where), need, where, told)


def _averaged(where: torch.device) -> list[dict[str, Any]]:
    told, watch = options_on(where), stopwatch_for(where)
    step, options = training_step(SMALL, where), told.get(BOTH, told["CPU"])
    # The profiler's own first step is left out: in it calls wait for its buffers.
    when = schedule(wait=0, warmup=1, active=STEPS, repeat=1)
    with profile(**options, schedule=when, acc_events=True) as seen:
        for _ in range(1 + STEPS):
            step()
            watch.drain()
            seen.step()
    rows = []
    for each in seen.key_averages():
        if each.key.startswith(OURS) or getattr(each, "is_user_annotation", False):
            continue
        on_gpu = each.device_type != DeviceType.CPU
        times = {name: getattr(each, of) for name, of in TIMES.items()}
        row = {"variant": each.key[:LONGEST], "ran_on": "GPU" if on_gpu else "CPU"}
        row |= {"calls_a_step": each.count / STEPS}
        rows.append(row | {name: us * 1e-6 / STEPS for name, us in times.items()})
    host = [row for row in rows if row["ran_on"] == "CPU"]
    kept = sorted(host, key=lambda row: -row["self_host_s"])[:LISTED]
    busy = [row for row in rows if row["self_device_s"]]
    kept += sorted(busy, key=lambda row: -row["self_device_s"])[:LISTED]
    found = [row for row in rows if row in kept]
    if not any(row["ran_on"] == "GPU" for row in found):
        row = {"variant": "no kernel", "ran_on": "GPU", "note": "no kernel was recorded"}
        found.append(row)
    return found
