"""A map is measured cell by cell: what one can't do costs itself alone, and its rows say why."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import pandas as pd
import torch

from anatomy.machine import host
from anatomy.measure import stopwatch_for
from anatomy.parts import memory
from anatomy.parts.memory import give_back
from anatomy.record.requirements import Requirement
from anatomy.table import errors

Cell = Mapping[str, Any]  # where a cell lies: its `op` and its other coordinates, by column
Value = TypeVar("Value")

# Columns that pages and claims read of any cell, whether or not one of them could be measured.
PROMISED = ("median_s", "ratio", "verdict", "kernels_per_call")

# How a note begins, which says what kept a row from being measured.
NO_MEMORY = "out of memory"
WRONG = "wrong result"
NOT_SUPPORTED = "not supported"
NOT_COMPILED = "not compiled"
NOT_MEASURED = "not measured"
FAILED = "failed"  # with an error that this experiment alone foresees
NOT_BEGUN = "not begun"
# What any experiment must expect of a cell, beside torch's own lack of memory. A wrong parameter,
# another process on the card and what nobody thought of are no row: they end the run.
FORESEEN = {
    errors.OutOfMemory: NO_MEMORY,
    errors.DisagreementError: WRONG,
    errors.DeviceError: NOT_SUPPORTED,
    NotImplementedError: NOT_SUPPORTED,
    errors.MeasurementError: NOT_MEASURED,
}


def measure_cells(
    cells: Iterable[Cell],
    measure: Callable[[Cell], pd.DataFrame],
    *,
    variants: Sequence[str] | Callable[[Cell], Sequence[str]],
    quantity: str | Sequence[str] | Callable[[Cell], str | Sequence[str]],
    where: torch.device,
    required: Iterable[Requirement] = (),
    foreseen: tuple[type[Exception], ...] = (),
    promised: Sequence[str] = (),
    budget_s: float | None = None,
) -> pd.DataFrame:
    """The table of all cells; one that can't be measured here has rows that say why, of its
    `variants`, the control first, in each `quantity`. Of what the chapter says that the cells
    require, by their `op`, what the device has not is not begun; without any, all are tried.
    `measure` makes what a cell needs and returns its table, to which the coordinates are added that
    it lacks. Errors of `FORESEEN`, of a compiler and of the types `foreseen` (`RuntimeError` where
    PyTorch may refuse an operation) cost their cell alone; any other is raised again, with a note
    that names the cell. The table has the columns of `PROMISED` and those `promised` in any case.
    After `budget_s` seconds no further cell is begun, and the rest say so. Between two cells
    `give_back` returns what the first has left."""
    watch = stopwatch_for(where) if budget_s is not None else None
    begun = watch.now() if watch else 0.0
    needs = {each.op: each for each in required}
    tables = []
    for cell in cells:
        if needs and (why := needs[cell["op"]].why_not(memory.capacity(where))):
            table = None
        elif watch and watch.now() - begun >= budget_s:
            table, why = None, f"{NOT_BEGUN}: the {budget_s:g} s for all are used up"
        else:
            try:
                table, why = attempt(partial(measure, cell), where, foreseen)
            except Exception as error:
                told = ", ".join(f"{name}={value!r}" for name, value in cell.items())
                error.add_note(f"This was raised in the cell with {told}.")
                raise
        if table is None:
            names, kinds = (each(cell) if callable(each) else each for each in (variants, quantity))
            notes = dict.fromkeys(names, why)
            table = unmeasured(cell, notes, quantity=kinds, where=where, control=next(iter(names)))
        tables.append(table.assign(**{n: value for n, value in cell.items() if n not in table}))
    return joined(tables, promised)


def attempt(
    act: Callable[[], Value], where: torch.device, foreseen: tuple[type[Exception], ...] = ()
) -> tuple[Value | None, str]:
    """What `act` returned, or None and why, by an error that was foreseen; what it left is given
    back."""
    usable = True
    try:
        return act(), ""
    except Exception as error:
        why = note_of(error, foreseen)
        if not why:
            usable = not isinstance(error, torch.AcceleratorError)
            raise
    finally:
        # Not before the error is gone: its traceback holds what the cell had made.
        if usable:
            give_back(where)
    return None, why


def reported(
    measure: Callable[[], Sequence[dict]],
    need: Requirement,
    where: torch.device,
    told: Iterable[dict],
) -> pd.DataFrame:
    """A table of what is not timed: the rows that `measure` returns. Where the device has no room
    for them or refuses, the rows `told`, which pages refer to, each with the reason as its note."""
    rows, why = None, need.why_not(memory.capacity(where))
    if not why:
        rows, why = attempt(measure, where)
    return pd.DataFrame(rows or [row | {"note": why} for row in told])


def refusal(act: Callable[[], object]) -> str:
    """Why `act` can't be done here, by an error that was foreseen; empty where it can. Unlike
    `attempt` it leaves what was compiled as it is."""
    try:
        act()
    except Exception as error:
        if why := note_of(error, (RuntimeError,)):
            return why
        raise
    return ""


def note_of(error: Exception, foreseen: tuple[type[Exception], ...] = ()) -> str:
    """An error as a row's note, by its type; empty for one that nobody foresaw, as one of the
    accelerator itself is but for its memory: after it, the process can use the device no more."""
    kind = kind_of(error)
    if not kind and isinstance(error, foreseen) and not isinstance(error, torch.AcceleratorError):
        kind = FAILED
    if kind == NO_MEMORY and not isinstance(error, errors.OutOfMemory):
        return kind  # its text names processes
    if not kind:
        return ""
    within = getattr(error, "inner_exception", None)  # torch.compile's own text names a backend
    own = next(iter(str(error).splitlines()), "") if isinstance(error, errors.AnatomyError) else ""
    return f"{kind}: {own or reason_of(within or error)}"


def kind_of(error: BaseException | None) -> str:
    """How the note of an error that any experiment must expect begins; empty for all others."""
    if host.is_out_of_memory(error):
        return NO_MEMORY
    for foreseen, kind in FORESEEN.items():
        if isinstance(error, foreseen):
            return kind
    if not isinstance(error, _of_the_compiler()):
        return ""
    within = kind_of(getattr(error, "inner_exception", None))  # what a backend raised
    return NO_MEMORY if within == NO_MEMORY else NOT_COMPILED


def reason_of(error: BaseException) -> str:
    """An error as one sentence without the folders of this machine: recordings name none."""
    first = next((line for line in str(error).strip().splitlines() if line.strip()), "")
    plain = re.sub(r"(?:~|\.{1,2})?(?:/[\w.@+-]+)+/([\w.@+-]+)", r"\1", first)
    return f"{type(error).__name__}: {plain}"[:300].rstrip()


def _of_the_compiler() -> tuple[type[Exception], ...]:
    """Types of what torch.compile raises, unless it was never loaded, which takes seconds."""
    dynamo = sys.modules.get("torch._dynamo.exc")
    return (dynamo.TorchDynamoException, dynamo.FailOnRecompileLimitHit) if dynamo else ()


def unmeasured(
    cell: Cell,
    notes: Mapping[str, str],
    *,
    quantity: str | Sequence[str],
    where: torch.device,
    control: str | None = None,
) -> pd.DataFrame:
    """Rows of a cell for each variant of `notes` and each quantity, with no time but the note."""
    told = {**cell, "device": where.type}
    return pd.DataFrame(
        [
            told
            | {"variant": name, "role": "control" if name == control else "variant"}
            | {"quantity": each, "note": why}
            for each in ([quantity] if isinstance(quantity, str) else quantity)
            for name, why in notes.items()
        ]
    )


def with_refused(
    table: pd.DataFrame,
    cell: Cell,
    notes: Mapping[str, str],
    *,
    quantity: str | Sequence[str],
    where: torch.device,
) -> pd.DataFrame:
    """A cell's table, and rows of those of its variants that could not be measured."""
    if not notes:
        return table
    refused = unmeasured(cell, notes, quantity=quantity, where=where)
    table = table.assign(**{name: value for name, value in cell.items() if name not in table})
    return pd.concat([table, refused], ignore_index=True) if len(table) else refused


def joined(tables: Sequence[pd.DataFrame], promised: Sequence[str] = ()) -> pd.DataFrame:
    """The cells' tables one below the other, with the columns promised even where all refuse."""
    table = pd.concat(tables, ignore_index=True)
    for column in (*PROMISED, *promised):
        if column not in table:
            table[column] = None
    return table


def with_counts(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Columns that count, as whole numbers again, for rows without a value make pandas forget it;
    and there at all, which no row may have."""
    missing = [None] * len(table)
    whole = {
        name: pd.Series(
            [None if pd.isna(n) else int(n) for n in table.get(name, missing)], dtype=object
        )
        for name in columns
    }
    return table.assign(**whole)
