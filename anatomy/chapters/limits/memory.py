"""Ways to move bytes: copies, reads and writes of one working set, each with its exact result. No
single kernel is the fastest on every card and at every size, so each operation has several."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from anatomy.chapters.limits.requirements import COLUMNS, size_name
from anatomy.comparison import compare
from anatomy.measure import stopwatch_for
from anatomy.parts.repeats import least_calls

# A way to do it, and its exact result: the same values in the same type, or sums in float64.
Way = tuple[Callable[[], Tensor], Callable[[], Tensor]]

ITEM_BYTES = 4  # float32
SUMMED_ROWS = 1024  # several for each multiprocessor of any card
WRITTEN = 1.2345  # no zeros, which some hardware treats apart and which draw less power


def moved(sets: list[int], op: str, where: torch.device, iters: int, **given: Any) -> pd.DataFrame:
    """Time one operation over working sets of several sizes in bytes, in all its ways, interleaved.
    Each size, a multiple of `STEP_BYTES`, is all that one call touches: of a copy half is read and
    half is written. `given` are further arguments of `compare`."""
    calls, references, ways, bytes_ = {}, {}, {}, {}
    for size in sets:
        for way, (call, exact) in WAYS[op](size // ITEM_BYTES, where).items():
            name = f"{size_name(size)}, {way}"
            calls[name], references[name], ways[name], bytes_[name] = call, exact, way, size
    table = compare(
        calls,
        reference=references,
        quantity="gpu_warm",
        op=op,
        bytes=bytes_,
        limit=op,
        device=where,
        iters=least_calls(iters, calls.values(), stopwatch_for(where)),
        **given,
    ).table
    origin = [name.removesuffix(" (again)") for name in table.variant]
    return table.assign(
        working_set_bytes=[bytes_[name] for name in origin], way=[ways[name] for name in origin]
    )


def copies(count: int, where: torch.device) -> dict[str, Way]:
    """Ways to copy `count // 2` float32 elements into as many others."""
    x = torch.randn(count // 2, device=where)
    y = torch.empty_like(x)
    return {
        "copy_": (lambda: y.copy_(x), lambda: x),
        "multiply by 1": (lambda: torch.mul(x, 1.0, out=y), lambda: x),
    }


def reads(count: int, where: torch.device) -> dict[str, Way]:
    """Ways to read `count` float32 elements, and to write next to nothing."""
    x = torch.rand(count, device=where)  # all positive, so that the sum is well off 0
    rows = x.view(SUMMED_ROWS, -1)  # (SUMMED_ROWS, count / SUMMED_ROWS)
    a, v = x.view(-1, COLUMNS), torch.rand(COLUMNS, device=where)  # (count / COLUMNS, COLUMNS)
    return {
        "one sum": (lambda: torch.sum(x), lambda: torch.sum(x, dtype=torch.float64)),
        "row sums": (
            lambda: torch.sum(rows, dim=1),
            lambda: torch.sum(rows, dim=1, dtype=torch.float64),
        ),
        # Its reference is made of pieces, or float64 would need twice the working set again.
        "matrix times vector": (
            lambda: a @ v,
            lambda: torch.cat([part.double() @ v.double() for part in a.split(2**14)]),
        ),
    }


def writes(count: int, where: torch.device) -> dict[str, Way]:
    """Ways to write `count` float32 elements and to read nothing. They leave different values in
    one memory, so that one which does not write all of it is found out."""
    y = torch.full((count,), float("nan"), device=where)
    return {
        "fill_": (lambda: y.fill_(WRITTEN), lambda: torch.full_like(y, WRITTEN)),
        "arange": (
            lambda: torch.arange(count, out=y),
            lambda: torch.arange(count, dtype=y.dtype, device=where),
        ),
    }


WAYS = {"copy": copies, "read": reads, "write": writes}
