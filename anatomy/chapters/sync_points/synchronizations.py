"""Hidden synchronizations: which lines make the host wait for the GPU, and what a wait costs."""

import runpy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.sync_points import requirements
from anatomy.chapters.sync_points.lines import CANDIDATES, Call, Line, Tensors, tensors_on
from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.measure.stopwatch import Stopwatch
from anatomy.numerics import formats
from anatomy.parts import grid, memory
from anatomy.parts.grid import with_counts
from anatomy.record.bounds import Count, Scale
from anatomy.record.declare import experiment
from anatomy.table import intervals
from anatomy.table.errors import AnatomyError

SEEN = "synchronizing CUDA operation"  # in each warning of PyTorch's debug mode of a wait
ASKED = 3  # a host that is interrupted once looks as if it had waited; so often it is asked
BUDGET_S, SETTLE_CAP_S = 1.5, 0.4  # seconds of one comparison, and of settling before it
NO_WAIT, EACH, LATE = "no readback", "item each step", "item a step late"

# The script that pages show and this experiment runs.
SCRIPT = Path(__file__).parents[3] / "snippets" / "waits_in_a_loop.py"
LOOPS = ("careless", "careful")


@experiment(
    "synchronizations.detected", page="axioms/syncs.md", command="syncs-detected", timeout_s=120
)
def detected(device: str = "cuda:0") -> pd.DataFrame:
    """Ask which lines make the host wait for the GPU: PyTorch's debug mode, and a stopwatch.

    One row per line of code; `waits` says whether it returned only once a kernel of 10 ms before it
    was over (true) or before (false), three times out of three.

    Args:
        device: Where to run, such as cuda:0; a CPU has nothing to wait for.
    """
    where = formats.torch_device(device)
    if where.type != "cuda":
        note = f"needs a GPU that runs behind its host; this is {where.type}"
        return pd.DataFrame(
            [{"variant": v, "kind": kind, "note": note} for v, (kind, _) in CANDIDATES.items()]
        )
    watch, inputs = stopwatch_for(where), tensors_on(where)
    return pd.DataFrame(
        [
            {"variant": variant, "kind": kind} | _asked(line, inputs, watch)
            for variant, (kind, line) in CANDIDATES.items()
        ]
    )


def _asked(line: Line, inputs: Tensors, watch: Stopwatch) -> dict:
    """What the debug mode and the stopwatch say of one line; or why it could not be asked."""

    def call() -> None:
        line(inputs)

    try:
        call()  # the first call loads and allocates, which may wait for reasons of its own
        call()
        watch.drain()
        warned = _warned(call)
        waits = waits_for_gpu(watch, call)
    except (RuntimeError, AssertionError, TypeError) as error:
        return {"note": f"could not be called here: {type(error).__name__}"}
    return {
        "debug_mode_says": "waits" if warned else "nothing",
        "warned": warned,
        "waits": waits,
        "agree": None if waits is None else waits == bool(warned),
        "note": None if waits is not None else f"waited in some of {ASKED} trials",
    }


def waits_for_gpu(watch: Stopwatch, call: Callable[[], object]) -> bool | None:
    """Whether a call returns only when the work queued before it is over; None if in doubt."""
    seen = {watch.synchronizes(call) for _ in range(ASKED)}
    return seen.pop() if len(seen) == 1 else None


def _warned(call: Callable[[], object]) -> int:
    """How often the debug mode warns of a wait during one call."""
    with warnings.catch_warnings(record=True) as caught, sync_debug_mode("warn"):
        warnings.simplefilter("always")
        call()
    return sum(SEEN in str(each.message) for each in caught)


@contextmanager
def sync_debug_mode(mode: str) -> Iterator[None]:
    """PyTorch's debug mode for synchronizations, which is the process's, put back afterwards."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode(mode)
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def found_in(where: torch.device) -> pd.DataFrame:
    """The lines of both loops of the script that the debug mode warns of."""
    if where.type != "cuda":
        note = f"needs a GPU that runs behind its host; this is {where.type}"
        return pd.DataFrame([{"variant": loop, "loop": loop, "note": note} for loop in LOOPS])
    if not SCRIPT.exists():
        raise AnatomyError(f"{SCRIPT.name} belongs to the checkout; clone it, and run this there.")
    script = runpy.run_path(str(SCRIPT))
    source = SCRIPT.read_text(encoding="utf-8").splitlines()
    rows = []
    for loop in LOOPS:
        model, batches = script["prepared"](str(where))

        def run(loop=loop, model=model, batches=batches) -> None:
            script[loop](model, batches, str(where))

        run()  # the first batches load and allocate, which may wait for reasons of their own
        torch.cuda.synchronize(where)
        rows += told(loop, warned(run), source, len(batches))
    return pd.DataFrame(rows)


def warned(call: Callable[[], object]) -> list[warnings.WarningMessage]:
    """The debug mode's warnings of waits during one call, in order."""
    with warnings.catch_warnings(record=True) as caught, sync_debug_mode("warn"):
        warnings.simplefilter("always")
        call()
    return [each for each in caught if SEEN in str(each.message)]


def told(
    loop: str, found: list[warnings.WarningMessage], source: list[str], batches: int
) -> list[dict]:
    """A row for each line that was warned of, in the order of the file."""
    named = {"loop": loop, "batches": batches}
    counted: dict[int, list[str]] = {}
    elsewhere = 0
    for each in found:
        if Path(each.filename).name == SCRIPT.name:
            counted.setdefault(each.lineno, []).append(str(each.message))
        else:
            elsewhere += 1  # inside PyTorch, which a reader of the loop can't change
    rows = [
        named
        | {"variant": f"{loop}, line {line}", "line": line, "code": source[line - 1].strip()}
        | {"warned": len(messages), "message": messages[0].split(" (")[0], "note": None}
        for line, messages in sorted(counted.items())
    ]
    if elsewhere:
        rows.append(
            named | {"variant": f"{loop}, in PyTorch", "code": "in PyTorch", "warned": elsewhere}
        )
    return rows or [named | {"variant": loop, "code": "no line was warned of", "warned": 0}]


@experiment("synchronizations.costs", page="axioms/syncs.md", command="syncs", timeout_s=300)
def costs(
    device: str = "cuda:0", scale: Scale = 1.0, iters: Count = 12, full: bool = False
) -> pd.DataFrame:
    """Time a line that waits: alone with nothing to wait for, and once in each step of a loop.

    Args:
        scale: Share of the tensors' elements that is used, from 1024 on; less for a small machine.

    Returns:
        Rows of op `readback`, as host_enqueue: one line when the GPU has nothing to do, against
        queueing one addition. For each `elements` and `kernels_each`, as step_wall: a step of so
        many additions without a readback (control), with one `.item()` at its end, and with the
        result of the step before read instead (`item a step late`).
    """
    where = formats.torch_device(device)
    required = requirements.costs(memory.capacity(where), scale, full)
    calls, exact = readbacks(torch.randn(1, device=where))
    table = compare(
        calls,
        reference=exact,
        quantity="host_enqueue",
        op="readback",
        device=where,
        iters=iters,
        budget_s=2 * BUDGET_S,
        settle_cap_s=SETTLE_CAP_S,
        profile=False,
    ).table
    counts = requirements.FULL_COUNTS if full else requirements.COUNTS
    cells = (
        {"op": f"step {count} x {elements}", "elements": elements, "kernels_each": count}
        for count in counts
        for elements in requirements.step_elements(scale, full)
    )
    steps = grid.measure_cells(
        cells,
        lambda cell: step(cell, where, iters),
        variants=(NO_WAIT, EACH, LATE),
        quantity="step_wall",
        where=where,
        required=required,
    )
    found = pd.concat([table, steps], ignore_index=True)
    return with_counts(found, "elements", "kernels_each")


def readbacks(x: Tensor) -> tuple[dict[str, Call], dict[str, Call]]:
    """Ways to bring one element to the host, and what each must return; `add` waits for nothing."""
    y, there = torch.empty_like(x), np.zeros(x.shape, dtype=np.float32)
    read = torch.from_numpy(there)  # shares its memory, so that storing costs next to nothing

    def stored(value: Callable[[], float]) -> Call:
        def call() -> Tensor:
            there[0] = value()
            return read

        return call

    def formatted() -> Tensor:
        str(x)
        return x

    calls = {
        "add": lambda: torch.add(x, 1.0, out=y),
        "t.item()": stored(x.item),
        "bool(t.any())": stored(lambda: bool(x.any())),
        "t.cpu()": x.cpu,
        "t.nonzero()": x.nonzero,
        "str(t), as print does": formatted,
    }
    on_host = x.cpu().double()
    exact = {
        "add": lambda: x.double() + 1,
        "t.item()": lambda: on_host,
        "bool(t.any())": lambda: torch.ones(1, dtype=torch.float64),
        "t.cpu()": lambda: on_host,
        "t.nonzero()": lambda: torch.zeros(1, 1, dtype=torch.float64, device=x.device),
        "str(t), as print does": x.double,
    }
    return calls, exact


def step(cell: grid.Cell, where: torch.device, iters: int) -> pd.DataFrame:
    """The table of one size of a kernel and number of kernels in a step."""
    count, elements = cell["kernels_each"], cell["elements"]
    x = torch.randn(elements, device=where)
    table = compare(
        step_ways(x, count),
        reference=lambda: x.double() + 1,
        quantity="step_wall",
        op=cell["op"],
        # Each kernel reads and writes every element once.
        bytes=2 * count * x.numel() * x.element_size(),
        device=where,
        iters=iters,
        budget_s=BUDGET_S,
        settle_cap_s=SETTLE_CAP_S,
        profile=False,
    ).table
    return with_wait(table).assign(bound_by=_bound_by(table, where))


def step_ways(x: Tensor, count: int) -> dict[str, Call]:
    """A step of `count` additions to `x`, without a readback, with one, and with a late one."""
    y = torch.empty_like(x)

    def step() -> Tensor:
        for _ in range(count):
            torch.add(x, 1.0, out=y)
        return y

    def with_item() -> Tensor:
        step()
        y[0].item()
        return y

    return {NO_WAIT: step, EACH: with_item, LATE: _late(step, y)}


def _late(step: Call, y: Tensor) -> Call:
    """The step, and then the value that the step before it left: the GPU keeps one step of work."""
    gpu = y.device.type == "cuda"
    slots = [torch.zeros((), dtype=y.dtype, pin_memory=gpu) for _ in range(2)]
    events = [torch.cuda.Event() if gpu else None for _ in range(2)]
    turn = 0

    def call() -> Tensor:
        nonlocal turn
        step()
        slots[turn].copy_(y[0], non_blocking=True)
        if gpu:
            events[turn].record()
        turn = 1 - turn
        if gpu:
            events[turn].synchronize()  # of the step before; at once, if there was none
        slots[turn].item()  # in the host's memory already
        return y

    return call


def with_wait(table: pd.DataFrame) -> pd.DataFrame:
    """Add what each variant takes more than the control, block by block, with its interval."""
    base = np.asarray(table[table.role == "control"].iloc[0].blocks_s)
    found = []
    for row in table.itertuples():
        if row.role != "variant":
            found.append((None, None, None))
            continue
        extra = intervals.median_interval(np.asarray(row.blocks_s) - base)
        found.append((extra.median, extra.low, extra.high))
    columns = ("wait_s", "wait_low_s", "wait_high_s")
    return table.assign(**dict(zip(columns, map(list, zip(*found, strict=True)), strict=True)))


def with_shares(table: pd.DataFrame, kernel: pd.Series) -> pd.DataFrame:
    """Add a line's share of an iteration, and its gap beside `kernel`, the product alone."""
    # (t - control) / t is 1 - 1 / ratio, whose interval is of the same blocks.
    shares = {
        name: [
            1 - 1 / ratio if role == "variant" else None
            for role, ratio in zip(table.role, table[source], strict=True)
        ]
        for name, source in (
            ("wait_share", "ratio"),
            ("wait_share_low", "ratio_low"),
            ("wait_share_high", "ratio_high"),
        )
    }
    return table.assign(
        kernel_s=kernel.median_s,
        gap_s=table.median_s - kernel.median_s,
        gap_low_s=table.low_s - kernel.high_s,
        gap_high_s=table.high_s - kernel.low_s,
        **{name: pd.Series(values, dtype=object) for name, values in shares.items()},
    )


def _bound_by(table: pd.DataFrame, where: torch.device) -> str | None:
    """What sets the pace of a step without a readback; None on a CPU, where both are one."""
    if where.type != "cuda":
        return None
    control = table[table.role == "control"].iloc[0]
    # As `gates.regime` says: a period that is the host's time to queue the step is the host's.
    return "host" if control.enqueue_s >= 0.9 * control.median_s else "GPU"
