"""PyTorch's caching allocator: a block from its cache against one from the driver, a pattern of
sizes after which free memory is of no use, what a training step holds, and what kept losses do."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.allocator import lifetimes, requirements
from anatomy.chapters.allocator.requirements import SIZES, STEP
from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import formats
from anatomy.parts import grid, memory, models
from anatomy.record.bounds import Count
from anatomy.record.declare import experiment
from anatomy.table.errors import DeviceError, MeasurementError

PAGE = "curriculum/day_10.md"
SCRIPT = Path(__file__).resolve().parents[3] / "snippets" / "days" / "day_10" / "fragment.py"
CACHED, EMPTIED = "cached", "cache emptied"
HOW = {"quantity": "host_enqueue", "profile": False, "budget_s": 3.0, "settle_cap_s": 1.0}
# How the allocator asks the driver -> what a fresh process is told.
WAYS = {"default": "expandable_segments:False", "expandable": "expandable_segments:True"}
READ = "16 of 40 MiB"  # the part of the pattern whose sizes a page tells
CHILD_S = 60  # seconds after which a fresh process is given up
WEIGHTS, STATE = "weights and batch", "optimizer state"
GRADIENTS, ACTIVATIONS = "gradients", "activations"
STEPS = 2  # recorded: the first makes the optimizer's state
PARTS = ("forward", "backward", "optimizer")
ENTRIES = 100_000  # of the allocator's record, far more than these steps make
LOSSES = 8  # kept


def _require_gpu(where: torch.device) -> None:
    if where.type != "cuda" or torch.version.hip is not None:
        raise DeviceError(f"needs an NVIDIA GPU: {where.type} has another allocator")


@experiment("allocator.costs", page=PAGE, command="allocator-costs")
def costs(device: str = "cuda:0", iters: Count = 12) -> pd.DataFrame:
    """Take a block of memory and give it back, from PyTorch's cache and with the cache emptied.

    Args:
        device: A GPU, such as cuda:0.

    Returns:
        One row per size and way: the host's time for one block, taken and given back.
    """
    where = formats.torch_device(device)
    needs = list(requirements.costs(memory.capacity(where)))

    def measure(cell: grid.Cell) -> pd.DataFrame:
        _require_gpu(where)
        size, watch = cell["asked_bytes"], stopwatch_for(where)
        answer = torch.zeros(1, device=where)
        acts = {CACHED: partial(_taken, size, where), EMPTIED: partial(_emptied, size, where)}
        calls = {name: partial(_then, act, answer) for name, act in acts.items()}
        how = {"device": where, "iters": iters, "watch": _asking(watch)}
        table = compare(calls, **HOW | {"op": cell["op"]}, **how).table
        known = {name: _of_the_driver(act, watch) for name, act in acts.items()}
        each = [known[name.removesuffix(" (again)")] for name in table.variant]
        return table.assign(**pd.DataFrame(each, index=table.index))

    cells = [{"op": name, "asked_bytes": size} for name, size in SIZES.items()]
    how = {"variants": [CACHED, EMPTIED], "quantity": "host_enqueue", "where": where}
    how["promised"] = ("driver_calls", "waits_for_gpu")
    return grid.with_counts(
        grid.measure_cells(cells, measure, required=needs, **how), "driver_calls"
    )


def _taken(size: int, where: torch.device) -> None:
    torch.empty(size, dtype=torch.uint8, device=where)


def _emptied(size: int, where: torch.device) -> None:
    torch.cuda.empty_cache()
    torch.empty(size, dtype=torch.uint8, device=where)


def _then(act: Callable[[], None], answer: Tensor) -> Tensor:
    act()
    return answer


def _asking(watch: Stopwatch) -> Stopwatch:
    """The same clock, for which a block from the driver is no disturbance: it is what is timed."""
    own = copy.copy(watch)
    own.disturbances = lambda: watch.disturbances() | {"device allocations": 0}
    return own


def _of_the_driver(act: Callable[[], None], watch: Stopwatch) -> dict[str, Any]:
    """How often a call makes PyTorch ask the driver, and whether it waits for the GPU."""
    act()
    before = torch.cuda.memory_stats(watch.device).get("num_device_alloc", 0)
    act()
    asked = torch.cuda.memory_stats(watch.device).get("num_device_alloc", 0) - before
    return {"driver_calls": asked, "waits_for_gpu": watch.synchronizes(act)}


@experiment(
    "allocator.fragmentation",
    page=PAGE,
    command="allocator-fragmentation",
    files=("snippets/days/day_10/fragment.py",),
    timeout_s=150,
)
def fragmentation(device: str = "cuda:0") -> pd.DataFrame:
    """Leave free memory in pieces that no large block fits, in a fresh process for each allocator.

    Returns:
        A row per allocator and part of snippets/days/day_10/fragment.py; and one for each piece of
        memory (`op` is `piece`) after its third part.
    """
    where = formats.torch_device(device)

    def measure() -> list[dict[str, Any]]:
        return [row for way in WAYS for row in fragments(way, _in_fresh_process(WAYS[way], where))]

    sizes = dict.fromkeys(("allocated_bytes", "reserved_bytes", "largest_free_bytes"))
    told = [{"op": "after", "way": way, "variant": READ} | sizes for way in WAYS]
    return _report(requirements.fragmentation, measure, where, told)


def _report(
    required: Any, measure: Callable[[], list[dict]], where: torch.device, told: Sequence[dict]
) -> pd.DataFrame:
    """What is not timed, by the allocator's own account: that of a GPU."""
    (need,) = required(memory.capacity(where))
    table = grid.reported(lambda: _require_gpu(where) or measure(), need, where, told)
    counts = (name for name in table if name.endswith("_event") or name == "piece_bytes")
    return grid.with_counts(table, *counts)


def _in_fresh_process(setting: str, where: torch.device) -> dict[str, Any]:
    # The older name of the variable would win.
    kept = {k: v for k, v in os.environ.items() if not k.endswith("_ALLOC_CONF")}
    how = {"env": kept | {"PYTORCH_ALLOC_CONF": setting}, "timeout": CHILD_S}
    command = [sys.executable, "-P", str(SCRIPT), "--json", str(where)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, **how)
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"a fresh process was not done after {CHILD_S} s") from None
    if done.returncode:
        said = ChildProcessError(*done.stderr.strip().splitlines()[-1:])  # it may name a folder
        raise MeasurementError(f"a fresh process failed: {grid.reason_of(said)}")
    return json.loads(done.stdout)


def fragments(way: str, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of what `snippets/days/day_10/fragment.py` measured in one process."""
    if found["expandable"] not in (None, way == "expandable"):
        raise DeviceError(f"PyTorch did not take the setting {WAYS[way]!r}")
    rows = []
    for step in found["steps"]:
        row = {"op": "after", "way": way, "variant": step["done"].partition(":")[0]}
        row |= {"allocated_bytes": step["allocated"], "reserved_bytes": step["reserved"]}
        rows.append(row | {"largest_free_bytes": step["largest"], "found_room": None})
    rows[-1]["found_room"] = "there was room" in found["steps"][-1]["done"]
    for number, piece in enumerate(found["blocks"], start=1):
        row = {"op": "piece", "way": way, "variant": f"piece {number}"}
        row |= {"segment": piece["segment"], "piece_bytes": piece["size"]}
        rows.append(row | {"in_use": piece["used"]})
    return rows


@experiment("allocator.training_step", page=PAGE, command="allocator-training-step")
def training_step(device: str = "cuda:0") -> pd.DataFrame:
    """Record every block of memory that two training steps of a small transformer take.

    Returns:
        A row per block: what it was for (`kind`), its bytes, and at which event of the record it
        came and went. The first rows are what was there before, and where the parts of steps end.
    """
    where = formats.torch_device(device)
    told = [{"variant": f"step {STEPS}, {part}", "kind": "part"} for part in PARTS]
    return _report(requirements.training_step, lambda: list(_recorded_steps(where)), where, told)


def _recorded_steps(where: torch.device) -> Iterator[dict[str, Any]]:
    model, x = _model(where)
    loss = model(x).square().mean()  # libraries take their workspaces in the first call
    torch.autograd.grad(loss, list(model.parameters()))
    del loss
    optimizer = torch.optim.AdamW(model.parameters())
    there = [*model.parameters(), x]
    marks, parts = [], []
    # `python` alone: not even an empty stack of C++ is unwound, which some hosts refuse.
    how = {"context": None, "stacks": "python", "max_entries": ENTRIES}
    torch.cuda.memory._record_memory_history("all", **how)
    try:
        for step in range(1, STEPS + 1):
            for part, mark in _parts_of_a_step(model, x, optimizer):
                record = _record(where)
                parts.append((f"step {step}, {part}", len(record)))
                marks.append((len(record), *mark))
    finally:
        torch.cuda.memory._record_memory_history(None, stacks="python")
    before = sum(each.untyped_storage().nbytes() for each in there)
    yield {"variant": "before", "kind": WEIGHTS, "block_bytes": before, "born_event": 0}
    for part, upto in parts:
        yield {"variant": part, "kind": "part", "died_event": upto}
    for number, block in enumerate(lifetimes.blocks(record, marks), start=1):
        yield {"variant": f"block {number}"} | block


def _record(where: torch.device) -> list[lifetimes.Event]:
    index = where.index if where.index is not None else torch.cuda.current_device()
    return lifetimes.events(torch.cuda.memory._snapshot()["device_traces"][index])


def _parts_of_a_step(model, x: Tensor, optimizer) -> Iterator[tuple[str, tuple]]:
    """Run a step part by part; after each, its name and what lives then."""
    optimizer.zero_grad(set_to_none=True)
    loss = model(x).square().mean()
    yield "forward", ({}, ACTIVATIONS)
    loss.backward()
    gradients = (p.grad for p in model.parameters())
    yield "backward", (_places(gradients, GRADIENTS), lifetimes.TEMPORARY)
    optimizer.step()
    state = (each for own in optimizer.state.values() for each in own.values())
    yield "optimizer", (_places(state, STATE), lifetimes.TEMPORARY)


def _places(tensors: Iterator[Any], kind: str) -> dict[int, str]:
    there = (each for each in tensors if isinstance(each, Tensor))
    return {each.untyped_storage().data_ptr(): kind for each in there}


def _model(where: torch.device) -> tuple[torch.nn.Module, Tensor]:
    model = models.transformer(STEP.width, STEP.layers, where, torch.float32)
    return model, torch.randn(STEP.batch, STEP.tokens, STEP.width, device=where)


@experiment("allocator.kept_losses", page=PAGE, command="allocator-kept-losses")
def kept_losses(device: str = "cuda:0") -> pd.DataFrame:
    """Keep the loss of every batch in a list, in five ways, and see what each keeps alive.

    Returns:
        A row per way, with the bytes that stay allocated for each loss that is kept.
    """
    where = formats.torch_device(device)

    def measure() -> list[dict[str, Any]]:
        model, x = _model(where)
        return [
            {"variant": line, "direction": passes, "kept_bytes": _kept(keep, model, x)}
            for passes, line, keep in KEEPERS
        ]

    told = [{"variant": line, "direction": passes} for passes, line, _ in KEEPERS]
    told = [row | {"kept_bytes": None} for row in told]
    return _report(requirements.kept_losses, measure, where, told)


def _loss(model, x: Tensor, train: bool) -> Tensor:
    loss = model(x).square().mean()
    if train:
        loss.backward()
    return loss


def _without_graph(model, x: Tensor) -> Tensor:
    with torch.no_grad():
        return _loss(model, x, train=False)


# Which passes run, the line that keeps, and what it keeps.
KEEPERS = (
    ("training", "losses.append(loss)", partial(_loss, train=True)),
    ("training", "losses.append(loss.detach())", lambda *on: _loss(*on, train=True).detach()),
    ("validation", "losses.append(loss)", partial(_loss, train=False)),
    ("validation", "losses.append(loss.detach())", lambda *on: _loss(*on, train=False).detach()),
    ("validation", "with torch.no_grad()", _without_graph),
)


def _kept(keep: Callable[..., Tensor], model, x: Tensor) -> int:
    """Bytes that each of `LOSSES` losses keeps alive, beside what the first call leaves."""
    losses = [keep(model, x)]
    before = torch.cuda.memory_allocated(x.device)
    losses += [keep(model, x) for _ in range(LOSSES)]
    return round((torch.cuda.memory_allocated(x.device) - before) / LOSSES)
