"""Capturing a function as a graph: what becomes of it, what a call costs, and the code for it."""

import functools
import re
import textwrap
from collections.abc import Callable, Sequence
from importlib import util
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Literal

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.capture import requirements
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
WALL = "step_wall"
# Of what Inductor writes: the kernel, and the call of it, as in torch 2.11 to 2.13.
PARTS = {
    "kernel": r"^(?:def triton_|extern \"C\").*?(?=\s*^''')",
    "call": r"^ *def call\(.*?return [^\n]*",
}


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
    for name, way in product(script.FUNCTIONS, script.WAYS):
        found = script.tried(name, way, where)
        told = {"op": name, "variant": way, "device": where.type} | found._asdict()
        rows.append(told | {"error": found.error and grid.reason_of(found.error)})
    return pd.DataFrame(rows)


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
    how = {"iters": iters, "budget_s": budget_s, "settle_cap_s": min(1.0, budget_s)}
    measure = functools.partial(_timed, where=where, backend=backend, scale=scale, **how)
    told = {"variants": tuple(ways().WAYS), "quantity": WALL, "where": where}
    told |= {"foreseen": (RuntimeError,), "promised": ("setup_s",)}
    told["required"] = requirements.calls(memory.capacity(where), scale)
    with torch.no_grad():
        return grid.measure_cells(({"op": op} for op in requirements.ELEMENTS), measure, **told)


# --8<-- [start:gate]
def gate(x: Tensor):
    """Six operations on each element, which every way can capture."""
    return torch.tanh(x) * torch.sigmoid(x + 0.5) + 0.1 * x


# --8<-- [end:gate]


def _timed(cell: grid.Cell, where: torch.device, backend: str, scale: float, **how) -> pd.DataFrame:
    x = torch.randn(requirements.elements(cell["op"], scale), device=where)
    compiled = functools.partial(torch.compile, backend=backend, dynamic=False)
    captures = ways().WAYS | {"compile": lambda function, x: compiled(function)}
    runs, setup_s, notes = {}, {}, {}
    for way, capture in captures.items():
        try:
            with without_caches():
                runs[way], setup_s[way] = _set_up(capture, x)
        except Exception as error:  # what a way says against this function costs that way alone
            notes[way] = grid.note_of(error, (Exception,))
            if not notes[way]:
                raise
    how |= {"quantity": WALL, "device": where, "bytes": 2 * x.nbytes}
    table = compare(runs, op=cell["op"], reference=lambda: gate(x.double()), **how).table
    setup_s.pop("eager", None)  # which captures nothing
    table["setup_s"] = table.variant.map(setup_s)
    return grid.with_refused(table, cell, notes, quantity=WALL, where=where)


def _set_up(capture: Callable, x: Tensor) -> tuple[Callable, float]:
    """A call of what a way makes of `gate`; the seconds of capturing it and of the first calls."""
    watch = stopwatch_for(x.device)
    watch.drain()
    begun = watch.now()
    call = functools.partial(capture(gate, x), x)
    for _ in range(3):  # TorchScript watches two calls before it fuses
        call()
    watch.drain()
    return call, watch.now() - begun


@experiment("capture.code", page="curriculum/day_12.md")
def code(device: str = "cuda:0") -> pd.DataFrame:
    """Keep the code that torch.compile writes for x.cos().cos(): the kernel, and the call of it.

    One row for each: what TORCH_LOGS=output_code prints, without imports and comments.
    """
    where = formats.torch_device(device)
    from torch._inductor.utils import get_code  # which compiles nothing of what was written

    x = torch.randn(100_000, device=where)  # no multiple of a block, so that it needs a mask
    compiled = torch.compile(lambda x: x.cos().cos(), dynamic=False)
    with torch.no_grad(), without_caches():
        found, why = grid.attempt(lambda: parts(get_code(compiled, x)), where, (Exception,))
    table = pd.DataFrame((found or dict.fromkeys(PARTS)).items(), columns=["variant", "generated"])
    return table.assign(op="x.cos().cos()", device=where.type, note=why or None)


def parts(written: Sequence[str]) -> dict[str, str]:
    """The `PARTS` of what Inductor wrote; AnatomyError where one is not there as it was."""
    plain = re.sub(r"(?m)^\s*(?:#|//).*\n", "", "\n".join(written))
    found = {part: re.search(like, plain, re.M | re.S) for part, like in PARTS.items()}
    if lacking := [part for part, each in found.items() if each is None]:
        raise AnatomyError(f"Inductor's code has no {lacking[0]}: mend `PARTS` for this torch.")
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
