"""PyTorch's caching allocator: a block from its cache against one from the driver, a pattern of
sizes after which free memory is of no use, what a training step holds, and what kept losses do."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.allocator import lifetimes, requirements
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
ALLOCATIONS = "device allocations"  # what the stopwatch calls blocks that came from the driver
# How the allocator asks the driver -> what a fresh process is told.
WAYS = {"default": "expandable_segments:False", "expandable": "expandable_segments:True"}
ENTRIES = 100_000  # of the allocator's record, far more than two steps make
LOSSES = 8  # kept
# Which passes run, and the line that keeps the loss.
KEEP, DETACH = "losses.append(loss)", "losses.append(loss.detach())"
NO_GRAD = "with torch.no_grad()"
KEEPERS = [(passes, line) for passes in ("training", "validation") for line in (KEEP, DETACH)]
KEEPERS += [("validation", NO_GRAD)]


def _require_gpu(where: torch.device) -> None:
    if where.type != "cuda" or torch.version.hip is not None:
        raise DeviceError(f"needs an NVIDIA GPU: {where.type} has another allocator")


@experiment("allocator.costs", page=PAGE)
def costs(device: str = "cuda:0", iters: Count = 12) -> pd.DataFrame:
    """Take a block of memory and give it back, from PyTorch's cache and with the cache emptied.

    Args:
        device: A GPU, such as cuda:0.

    Returns:
        One row per size and way: the host's time for one block, taken and given back.
    """
    where = formats.torch_device(device)

    def measure(cell: grid.Cell) -> pd.DataFrame:
        _require_gpu(where)
        size, answer = cell["asked_bytes"], torch.zeros(1, device=where)

        def cached() -> Tensor:
            torch.empty(size, dtype=torch.uint8, device=where)
            return answer

        def emptied() -> Tensor:
            torch.cuda.empty_cache()
            return cached()

        calls, watch = {CACHED: cached, EMPTIED: emptied}, stopwatch_for(where)
        how = HOW | {"op": cell["op"], "device": where, "iters": iters, "watch": _asking(watch)}
        table = compare(calls, **how).table
        called = [calls[name.removesuffix(" (again)")] for name in table.variant]
        return table.assign(
            driver_calls=[_driver_calls(call, watch) for call in called],
            waits_for_gpu=[watch.synchronizes(call) for call in called],
        )

    return grid.measure_cells(
        [{"op": name, "asked_bytes": size} for name, size in requirements.SIZES.items()],
        measure,
        variants=[CACHED, EMPTIED],
        quantity=HOW["quantity"],
        where=where,
        required=requirements.costs(memory.capacity(where)),
        promised=("driver_calls", "waits_for_gpu"),
    )


def _asking(watch: Stopwatch) -> Stopwatch:
    """The same clock, for which a block from the driver is no disturbance: it is what is timed."""
    own = copy.copy(watch)
    own.disturbances = lambda: watch.disturbances() | {ALLOCATIONS: 0}
    return own


def _driver_calls(call: Callable[[], Tensor], watch: Stopwatch) -> int:
    """How often a call makes PyTorch ask the driver for memory."""
    call()
    before = watch.disturbances().get(ALLOCATIONS, 0)
    call()
    return watch.disturbances().get(ALLOCATIONS, 0) - before


def _report(
    required: Callable, measure: Callable[[], list[dict]], where: torch.device, told: list[dict]
) -> pd.DataFrame:
    """What is not timed, by the allocator's own account: that of a GPU."""
    (need,) = required(memory.capacity(where))
    return grid.reported(lambda: _require_gpu(where) or measure(), need, where, told)


@experiment("allocator.fragmentation", page=PAGE, files=("snippets/days/day_10/fragment.py",))
def fragmentation(device: str = "cuda:0") -> pd.DataFrame:
    """Leave free memory in pieces that no large block fits, in a fresh process for each allocator.

    Returns:
        A row per allocator and part of snippets/days/day_10/fragment.py; and one for each piece of
        memory (`op` is `piece`) after its third part.
    """
    where = formats.torch_device(device)
    told = {"op": "after", "variant": "16 of 40 MiB", "largest_free_bytes": None}
    return _report(
        requirements.fragmentation,
        lambda: [{"way": way} | row for way in WAYS for row in _in_fresh_process(way, where)],
        where,
        [{"way": way} | told for way in WAYS],
    )


def _in_fresh_process(way: str, where: torch.device) -> list[dict[str, Any]]:
    """The rows of the script in a process whose allocator asks the driver in this way."""
    # The older name of the variable would win.
    kept = {k: v for k, v in os.environ.items() if not k.endswith("_ALLOC_CONF")}
    env = kept | {"PYTORCH_ALLOC_CONF": WAYS[way]}
    command = [sys.executable, "-P", str(SCRIPT), "--json", str(where)]
    try:
        found = json.loads(subprocess.check_output(command, env=env))
    except subprocess.CalledProcessError as error:
        raise MeasurementError(f"a fresh process failed: {grid.reason_of(error)}") from None
    if found["expandable"] not in (None, way == "expandable"):
        raise DeviceError(f"PyTorch did not take the setting {WAYS[way]!r}")
    return found["rows"]


@experiment("allocator.training_step", page=PAGE)
def training_step(device: str = "cuda:0") -> pd.DataFrame:
    """Record every block of memory that two training steps of a small transformer take.

    Returns:
        A row per block: what it was for (`kind`), its bytes, and at which event of the record it
        came and went. The first rows are what was there before, and where the parts of steps end.
    """
    where = formats.torch_device(device)
    told = {"kind": "part", "most_bytes": None, "activations_share": None}
    parts = [{"variant": f"step 2, {part}"} | told for part in lifetimes.LEFT_BY]
    return _report(requirements.training_step, lambda: _recorded_steps(where), where, parts)


def _recorded_steps(where: torch.device) -> list[dict[str, Any]]:
    model, x = _model(where)
    # Libraries take their workspaces in the first call.
    models.gradients_of(model, [*model.parameters()], x)()
    before = sum(each.nbytes for each in (*model.parameters(), x))
    ends, record = {}, []
    # `python` alone: not even an empty stack of C++ is unwound, which some hosts refuse.
    how = {"context": None, "stacks": "python", "max_entries": ENTRIES}
    torch.cuda.memory._record_memory_history("all", **how)
    try:
        for part in _two_steps(model, x):
            record = lifetimes.events(torch.cuda.memory._snapshot()["device_traces"][where.index])
            ends[part] = len(record)
    finally:
        torch.cuda.memory._record_memory_history(None, stacks="python")
    there = {"variant": "before", "kind": lifetimes.WEIGHTS, "block_bytes": before, "born_event": 0}
    parts = [{"variant": part, "kind": "part", "died_event": end} for part, end in ends.items()]
    blocks = enumerate(lifetimes.blocks(record, ends), start=1)
    return [there, *parts, *({"variant": f"block {number}"} | block for number, block in blocks)]


def _two_steps(model: torch.nn.Module, x: Tensor) -> Iterator[str]:
    """Run two training steps part by part; the first makes the optimizer's state."""
    optimizer = torch.optim.AdamW(model.parameters())
    for step in (1, 2):
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        yield f"step {step}, forward"
        loss.backward()
        yield f"step {step}, backward"
        optimizer.step()
        yield f"step {step}, optimizer"


def _model(where: torch.device) -> tuple[torch.nn.Module, Tensor]:
    width, layers, batch, tokens = requirements.STEP
    model = models.transformer(width, layers, where, torch.float32)
    return model, torch.randn(batch, tokens, width, device=where)


@experiment("allocator.kept_losses", page=PAGE)
def kept_losses(device: str = "cuda:0") -> pd.DataFrame:
    """Keep the loss of every batch in a list, in five ways, and see what each keeps alive.

    Returns:
        A row per way, with the bytes that stay allocated for each loss that is kept.
    """
    where = formats.torch_device(device)
    told = [{"direction": passes, "variant": line, "kept_bytes": None} for passes, line in KEEPERS]

    def measure() -> list[dict[str, Any]]:
        model, x = _model(where)
        return [row | {"kept_bytes": _kept(row, model, x)} for row in told]

    return _report(requirements.kept_losses, measure, where, told)


def _kept(way: dict[str, Any], model: torch.nn.Module, x: Tensor) -> int:
    """Bytes that each of `LOSSES` losses keeps alive, beside what the first one leaves."""
    losses, allocated = [], []
    for _ in range(LOSSES + 1):
        with torch.set_grad_enabled(way["variant"] != NO_GRAD):
            loss = model(x).square().mean()
        if way["direction"] == "training":
            loss.backward()
        losses.append(loss.detach() if way["variant"] == DETACH else loss)
        allocated.append(torch.cuda.memory_allocated(x.device))
    return round((allocated[-1] - allocated[0]) / LOSSES)
