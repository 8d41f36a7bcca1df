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
from anatomy.table.errors import DeviceError

WARM = "gpu_warm"


@dataclass(frozen=True)
class Work:
    """One variant: what is called, its exact result, and what a call moves and computes."""

    call: Callable[[], Tensor]
    exact: Callable[[], Tensor]
    bytes: int | None = None
    flops: int | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)  # its own
    control: str | None = None  # another than the first


def require(where: torch.device) -> None:
    """Raise a DeviceError, which costs a cell its rows, where no kernel of ours can run."""
    if why := cuda_kernels.why_not(where):
        raise DeviceError(why)


def compared(
    op: str, works: Mapping[str, Work], *, where: torch.device, **how: Any
) -> pd.DataFrame:
    """The rows of the works, back to back and interleaved; the first is the control."""
    table = compare(
        {name: work.call for name, work in works.items()},
        against={name: work.control for name, work in works.items() if work.control},
        reference={name: work.exact for name, work in works.items()},
        quantity=WARM,
        op=op,
        bytes={name: work.bytes for name, work in works.items() if work.bytes} or None,
        flops={name: work.flops for name, work in works.items() if work.flops} or None,
        device=where,
        profile=False,
        **how,
    ).table
    origin = [works[name.removesuffix(" (again)")].columns for name in table.variant]
    return table.assign(**{name: [own[name] for own in origin] for name in origin[0]})


def timed(
    cell: grid.Cell,
    needs: Mapping[str, Requirement],
    make: Callable[[Sequence[str]], Mapping[str, Work]],
    *,
    where: torch.device,
    **how: Any,
) -> pd.DataFrame:
    """The rows of a cell's variants, named in `needs`. `make` is told which of them the device has
    room for. The rest say why not."""
    why, on = cuda_kernels.why_not(where), memory.capacity(where)
    notes = {name: said for name, need in needs.items() if (said := why or need.why_not(on))}
    works = make([name for name in needs if name not in notes]) if len(notes) < len(needs) else {}
    table = compared(cell["op"], works, where=where, **how) if works else pd.DataFrame()
    return grid.with_refused(table, cell, notes, quantity=WARM, where=where)
