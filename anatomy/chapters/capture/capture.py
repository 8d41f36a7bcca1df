"""Capturing a function as a graph: what becomes of it, what a call costs, and the code for it."""

import functools
import re
import textwrap
from collections.abc import Callable
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Literal

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.capture import requirements
from anatomy.chapters.capture.requirements import ELEMENTS, LARGE
from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.numerics import formats
from anatomy.parts import grid, memory
from anatomy.parts.compiled import without_caches
from anatomy.record.bounds import Count, Scale, Seconds
from anatomy.record.declare import experiment
from anatomy.table.errors import AnatomyError

# The script that the page shows and the experiments run.
SCRIPT = Path(__file__).parents[3] / "snippets" / "days" / "day_12" / "ways.py"
EAGER, COMPILE = "eager", "compile"
FIRST_CALLS = 3  # TorchScript watches two calls before it fuses
CODE_ELEMENTS = 100_000  # no multiple of a block, so that the kernel needs its mask
KERNEL, CALL = "kernel", "call"


@experiment(
    "capture.catalogue", page="curriculum/day_12.md", files=("snippets/days/day_12/ways.py",)
)
def catalogue(device: str = "cuda:0") -> pd.DataFrame:
    """Capture eight small functions in six ways, and see what each does on a second input.

    Returns:
        One row per function (`op`) and way. Compiled is traced and not fused: what is asked is
        what was captured.
    """
    where, script = formats.torch_device(device), ways()
    rows = []
    for name in script.FUNCTIONS:
        for way in script.WAYS:
            found = script.tried(name, way, where)
            error = grid.reason_of(found.error) if found.error else None
            told = {"op": name, "variant": way, "device": where.type, "outcome": found.outcome}
            told |= {"failed_at": found.stage, "error": error, "breaks": found.breaks}
            rows.append(told | {"deprecated": found.deprecated})
    return grid.with_counts(pd.DataFrame(rows), "breaks")


@experiment("capture.calls", page="curriculum/day_12.md", files=("snippets/days/day_12/ways.py",))
def calls(
    device: str = "cuda:0",
    backend: Literal["inductor", "eager"] = "inductor",
    scale: Scale = 1.0,
    iters: Count = 12,
    budget_s: Seconds = 4.0,
) -> pd.DataFrame:
    """Time a call of one elementwise function in six ways, on a small and on a large input.

    Returns:
        A comparison for each input. `setup_s` is the time of capturing and of the first calls; a
        way that this torch or this card refuses has a row that says why.
    """
    where = formats.torch_device(device)
    with torch.no_grad():
        return grid.measure_cells(
            ({"op": op} for op in ELEMENTS),
            lambda cell: _timed(cell, where, backend, scale, iters, budget_s),
            variants=tuple(ways().WAYS),
            quantity="step_wall",
            where=where,
            required=requirements.calls(memory.capacity(where), scale),
            foreseen=(RuntimeError,),
            promised=("setup_s",),
        )


# --8<-- [start:gate]
def gate(x: Tensor):
    """Six operations on each element, which every way can capture."""
    return torch.tanh(x) * torch.sigmoid(x + 0.5) + 0.1 * x


# --8<-- [end:gate]


def _timed(cell: grid.Cell, where: torch.device, backend, scale, iters, budget_s) -> pd.DataFrame:
    x = torch.randn(requirements.elements(cell["op"], scale), device=where)
    watch = stopwatch_for(where)
    captures = dict(ways().WAYS)
    captures[COMPILE] = lambda function, x: torch.compile(function, backend=backend, dynamic=False)
    runs: dict[str, Callable] = {}
    setup_s, notes = {}, {}
    for way, capture in captures.items():
        made: list[Callable] = []

        def act(made=made, capture=capture) -> None:
            made.append(capture(gate, x))
            for _ in range(FIRST_CALLS):
                made[0](x)

        try:
            with without_caches():
                setup_s[way] = watch.wall([act])
            runs[way] = made[0]
        except Exception as error:  # what a way says against this function costs that way alone
            notes[way] = grid.note_of(error, (Exception,))
            if not notes[way]:
                raise
    table = compare(
        {way: functools.partial(run, x) for way, run in runs.items()},
        reference=lambda: gate(x.double()),
        quantity="step_wall",
        op=cell["op"],
        **({"bytes": 2 * x.nbytes, "limit": "copy"} if cell["op"] == LARGE else {}),
        device=where,
        iters=iters,
        budget_s=budget_s,
        settle_cap_s=min(1.0, budget_s),
    ).table
    names = table.variant.str.removesuffix(" (again)")
    setup = [setup_s[name] if name != EAGER else None for name in names]
    table["setup_s"] = pd.Series(setup, table.index, dtype=object)
    return grid.with_refused(table, cell, notes, quantity="step_wall", where=where)


@experiment("capture.code", page="curriculum/day_12.md")
def code(device: str = "cuda:0") -> pd.DataFrame:
    """Keep the code that torch.compile writes for x.cos().cos(): the kernel, and the call of it.

    One row for each: what TORCH_LOGS=output_code prints, without imports and comments.
    """
    where = formats.torch_device(device)
    from torch._inductor.utils import get_code  # which compiles nothing of what was written

    x = torch.randn(CODE_ELEMENTS, device=where)
    told = {"op": "x.cos().cos()", "device": where.type}
    compiled = torch.compile(lambda x: x.cos().cos(), dynamic=False)

    def act() -> dict[str, str]:
        return parts("\n".join(get_code(compiled, x)))

    with torch.no_grad(), without_caches():
        found, why = grid.attempt(act, where, (Exception,))
    rows = [{"variant": part, "generated": (found or {}).get(part)} for part in (KERNEL, CALL)]
    return pd.DataFrame([told | row | {"note": why or None} for row in rows])


def parts(written: str) -> dict[str, str]:
    """The kernel and the call of it, of what Inductor wrote; AnatomyError where they are not there
    as they were in torch 2.11 to 2.13."""
    plain = re.sub(r"(?m)^\s*(?:#|//).*\n", "", written)
    patterns = {
        KERNEL: r"^(?:def triton_|extern \"C\").*?(?=\s*^''')",
        CALL: r"^ *def call\(.*?return [^\n]*",
    }
    found = {part: re.search(like, plain, re.M | re.S) for part, like in patterns.items()}
    if lacking := [part for part, each in found.items() if each is None]:
        raise AnatomyError(f"Inductor's code has no {lacking[0]}: mend `parts` for this torch.")
    return {part: textwrap.dedent(each[0]) for part, each in found.items()}


@functools.cache
def ways() -> ModuleType:
    """The script as a module; AnatomyError outside a checkout."""
    if not SCRIPT.exists():
        raise AnatomyError(f"{SCRIPT.name} belongs to the checkout; clone it, and run this there.")
    spec = util.spec_from_file_location("day_12_ways", SCRIPT)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
