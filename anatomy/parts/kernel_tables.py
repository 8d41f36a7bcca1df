"""Tables of one kernel of our own in many sizes or patterns, which are timed together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from anatomy.comparison import compare
from anatomy.parts import cuda_kernels, grid, memory
from anatomy.record.requirements import Requirement

WARM = "gpu_warm"


@dataclass(frozen=True)
class Work:
    """One variant: what is called, its exact result, and the bytes that a call moves."""

    call: Callable[[], Tensor]
    exact: Callable[[], Tensor]
    bytes: int
    columns: Mapping[str, Any] = field(default_factory=dict)  # its own


def timed(
    cell: grid.Cell,
    needs: Mapping[str, Requirement],
    make: Callable[[Sequence[str]], Mapping[str, Work]],
    *,
    limit: str,
    where: torch.device,
    iters: int,
    budget_s: float,
) -> pd.DataFrame:
    """The rows of a cell's variants, named in `needs`, back to back and interleaved; the first is
    the control. `make` is told which of them the device has room for. The rest say why not."""
    why, on = cuda_kernels.why_not(where), memory.capacity(where)
    notes = {name: said for name, need in needs.items() if (said := why or need.why_not(on))}
    works = make([name for name in needs if name not in notes]) if len(notes) < len(needs) else {}
    table = pd.DataFrame()
    if works:
        table = compare(
            {name: work.call for name, work in works.items()},
            reference={name: work.exact for name, work in works.items()},
            quantity=WARM,
            op=cell["op"],
            bytes={name: work.bytes for name, work in works.items()},
            limit=limit,
            device=where,
            iters=iters,
            budget_s=budget_s,
            profile=False,
        ).table
        origin = [works[name.removesuffix(" (again)")].columns for name in table.variant]
        table = table.assign(**{name: [own[name] for own in origin] for name in origin[0]})
    return grid.with_refused(table, cell, notes, quantity=WARM, where=where)
