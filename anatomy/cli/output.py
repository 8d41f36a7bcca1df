"""Standard output: text, JSON and CSV of recordings, and a pipe that may close early."""

import io
import json
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console, RenderableType

from anatomy.errors import AnatomyError, BadParameter
from anatomy.recording import Recording


class Format(StrEnum):
    """How results are printed."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


class DataFormat(StrEnum):
    """How a table is exported."""

    CSV = "csv"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="How to print the result.")]

# What every row of an export begins with; everything else that rows have comes behind.
LEADING = (
    *("machine", "experiment", "params", "variant", "op", "quantity"),
    *("median_s", "low_s", "high_s", "samples", "torch", "recorded_at"),
)


def say(text: str) -> None:
    """Print to standard output; a reader that has gone away (`| head`) ends the command quietly.

    Raises:
        AnatomyError: It can't be written, as where a disk is full.
    """
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _discard()
        raise typer.Exit(0) from None
    except OSError as error:
        _discard()
        raise AnatomyError(
            f"The result could not be printed: {error.strerror}. What it was printed to may hold "
            "a part of it; make room there, or print to somewhere else."
        ) from None


def _discard() -> None:
    """Python would complain at exit when it flushes what is left, so give it somewhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def require_seconds(option: str, seconds: float | None) -> None:
    """Refuse a time limit that nothing can be done in.

    Raises:
        BadParameter: It is not above 0, or no number.
    """
    if seconds is not None and not seconds > 0:
        raise BadParameter(f"{option} {seconds:g}: it must be above 0 seconds.")


def show(*parts: RenderableType) -> None:
    """Print tables and text in colour where standard output is a terminal and NO_COLOR is unset."""
    terminal = sys.stdout.isatty()
    held = io.StringIO()
    width = None if terminal else 200  # a pipe has no width; its reader can cut
    console = Console(
        file=held, force_terminal=terminal, width=width, highlight=False, markup=False
    )
    for part in parts:
        console.print(part)
    lines = (line.rstrip() for line in held.getvalue().splitlines())
    say("\n".join(lines))


def tidy(recordings: Sequence[Recording]) -> pd.DataFrame:
    """Every row of the recordings in one table, with what tells them apart.

    Returns:
        The columns of `LEADING` (`params` as JSON text, times in seconds, `recorded_at` in UTC),
        then all others that any row has, sorted by name. Missing values are None.
    """
    rows = []
    for each in recordings:
        told = {
            "machine": each.machine,
            "experiment": each.experiment,
            "params": json.dumps(each.params, sort_keys=True),
            "torch": each.data["software"]["torch"],
            "recorded_at": each.data["started_at"],
        }
        rows += [row | told for row in each.rows]
    others = sorted({name for row in rows for name in row} - set(LEADING))
    return pd.DataFrame(
        [{name: row.get(name) for name in (*LEADING, *others)} for row in rows],
        columns=[*LEADING, *others],
        dtype=object,  # so that a gap does not turn a count into 240.0
    )


def as_csv(table: pd.DataFrame) -> str:
    """A table as CSV; lists become JSON text, missing values become nothing."""
    # Column by column as objects: pandas would turn a count with a gap into 240.0.
    cells = {name: [_cell(value) for value in table[name]] for name in table}
    return pd.DataFrame(cells, dtype=object).to_csv(index=False, lineterminator="\n")


def as_json(table: pd.DataFrame) -> str:
    """A table as a JSON list of objects; missing values are null."""
    return json.dumps(table.to_dict("records"), indent=1, allow_nan=False)


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value
