"""Standard output: text, JSON and CSV of recordings, and a pipe that may close early."""

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence

import pandas as pd
import typer
from rich.box import SIMPLE
from rich.console import Console, RenderableType
from rich.table import Table

from anatomy.record.provenance import canonical
from anatomy.record.recording import Recording
from anatomy.table.units import inert

# What every row of an export begins with; everything else that rows have comes behind.
LEADING = (
    *("machine", "experiment", "params", "variant", "op", "quantity"),
    *("median_s", "low_s", "high_s", "samples", "torch", "recorded_at"),
)
# What would steer a terminal, or turn a line's direction, where text is only to be read.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """`text` with what steers a terminal written out, as `\\x1b` is."""
    return _STEERING.sub(lambda found: ascii(found[0])[1:-1], text)


def say(text: str, *, data: bool = False) -> None:
    """Print to standard output, `harmless`; a reader that has gone away (`| head`) ends the command
    quietly. Where its encoding lacks a character, text gets a plainer one; `data` are UTF-8."""
    if data:
        sys.stdout.reconfigure(encoding="utf-8")
    _write(harmless(text))


def _write(text: str) -> None:
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain at exit when it flushes what is left, so give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def table(
    heads: Iterable[str],
    lines: Iterable[Sequence[str | None]],
    title: str | None = None,
    same: str = "",
) -> Table:
    """A table for a terminal; `#` begins the heading of numbers, and None shows as a dash. `same`
    stands below it: what holds for each row."""
    box = SIMPLE if title else None
    below = f"In each row: {harmless(same)}." if same else None
    sides = {"title_justify": "left", "caption_justify": "left"}
    made = Table(title=title and harmless(title), caption=below, box=box, pad_edge=False, **sides)
    for head in heads:
        justify = "right" if head.startswith("#") else "left"
        made.add_column(harmless(head.removeprefix("#")), justify=justify)
    for line in lines:
        made.add_row(*("–" if cell is None else harmless(cell) for cell in line))
    return made


def terminal_width() -> int:
    """Characters of a line on standard output; a pipe has no width, and its reader can cut."""
    return Console().width if sys.stdout.isatty() else 200


def show(*parts: RenderableType) -> None:
    """Print tables and text in colour where standard output is a terminal and NO_COLOR is unset."""
    how = {"force_terminal": sys.stdout.isatty(), "highlight": False, "markup": False}
    console = Console(file=io.StringIO(), width=terminal_width(), **how)
    for part in parts:
        console.print(harmless(part) if isinstance(part, str) else part)
    _write("\n".join(line.rstrip() for line in console.file.getvalue().splitlines()))


def tidy(recordings: Sequence[Recording]) -> pd.DataFrame:
    """Every row of the recordings in one table, with what tells them apart. First the columns of
    `LEADING` (`params` as JSON text, times in seconds, `recorded_at` in UTC), then all others that
    any row has, sorted by name. Missing values are None."""
    rows = []
    for each in recordings:
        origin = {
            "machine": each.machine,
            "experiment": each.experiment,
            "params": json.dumps(each.params, sort_keys=True),
            "torch": each.data["software"]["torch"],
            "recorded_at": each.data["started_at"],
        }
        rows += [row | origin for row in each.rows]
    columns = [*LEADING, *sorted({name for row in rows for name in row} - set(LEADING))]
    lines = [[row.get(name) for name in columns] for row in rows]
    return pd.DataFrame(lines, columns=columns, dtype=object)  # a gap would turn 240 into 240.0


def as_csv(table: pd.DataFrame) -> str:
    """A table as CSV; lists become JSON text, missing values become nothing, and text that a
    spreadsheet would compute begins with an apostrophe."""
    # Column by column as objects: pandas would turn a count with a gap into 240.0.
    cells = {
        inert(name): [
            json.dumps(each) if isinstance(each, list | dict) else inert(each)
            for each in table[name]
        ]
        for name in table
    }
    return pd.DataFrame(cells, dtype=object).to_csv(index=False, lineterminator="\n")


def say_data(table: pd.DataFrame, format: str) -> None:
    """Print a table as `csv`, or as `json`: a list of objects in which a missing value is null."""
    if format == "csv":
        say(as_csv(table), data=True)
    else:
        say(json.dumps(table.to_dict("records"), indent=1, allow_nan=False))


def say_recording(found: Recording, format: str) -> None:
    """Print the rows of a recording as `csv`, or as `json` all of it, as its file would have it."""
    if format == "csv":
        say(as_csv(tidy([found])), data=True)
    else:
        say(canonical.render(canonical.compacted(found.judged)), data=True)
