"""Commands about sets of recordings: take one in, and hold two against each other."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.table import Table

from anatomy.claims import differences
from anatomy.claims.differences import Compared, Difference, Figure
from anatomy.cli.options import FormatOption, folder
from anatomy.cli.output import say, say_data, show, table
from anatomy.judge import rows, shifts
from anatomy.record import loading, recording, signatures
from anatomy.record.exchange import archives, incoming, pairs
from anatomy.record.exchange.incoming import Incoming
from anatomy.record.exchange.pairs import Side
from anatomy.record.recording import Recording
from anatomy.table import columns, units
from anatomy.table.errors import BadParameter

# What `diff` prints of each figure as data; times in seconds, `over` is new over old.
FIGURE = ("machine", "new_machine", "experiment", "params", "row", "figure", "unit")
FIGURE += ("old", "old_low", "old_high", "new", "new_low", "new_high")
FIGURE += ("over", "over_low", "over_high", "word", "same_kernels")
# What is told of each side, by the block of its recordings that has it.
DESCRIBED = {"machine": ("gpu", "cpu", "driver"), "software": ("torch", "cuda")}


def add(app: typer.Typer) -> None:
    """Add `import` and `diff` to the application."""

    @app.command("import", epilog="Example: pytorch-gpu-anatomy import my-gpu.tar.gz --dry-run")
    def import_(
        source: Annotated[
            Path,
            typer.Argument(
                metavar="FILE", help="A .tar.gz or .zip of recordings, or a folder of them."
            ),
        ],
        save: Annotated[
            Path | None, folder("Add them under DIR. [default: the checkout's recordings]")
        ] = None,
        dry_run: Annotated[
            bool, typer.Option("--dry-run", help="Only say what would become of each.")
        ] = False,
        skip_refused: Annotated[
            bool,
            typer.Option("--skip-refused", help="Take the others in where some are refused."),
        ] = False,
        format: FormatOption = "text",
    ) -> None:
        """Add recordings made elsewhere: all of a set, or none if one of them is refused."""
        root = save or recording.default_root()
        with archives.unpacked(source) as unpacked:
            found = incoming.look(unpacked.folder, root)
            counted = Counter(each.word for each in found)
            takes = not dry_run and (skip_refused or not counted[incoming.REFUSED])
            if takes:
                incoming.take(found, root)
        _print_import(found, unpacked.passed_over, format, takes=takes, dry=dry_run)
        if counted[incoming.REFUSED] and not (takes and skip_refused):
            raise typer.Exit(1)

    @app.command(epilog="Example: pytorch-gpu-anatomy diff before.tar.gz recordings --fail")
    def diff(
        old: Annotated[
            str, typer.Argument(help="An archive or a folder of recordings, or a machine's slug.")
        ],
        new: Annotated[str, typer.Argument(help="The same, of what is held against it.")],
        machine: Annotated[
            list[str] | None,
            typer.Option(
                "--machine", help="Only this one; given twice, that of OLD and that of NEW."
            ),
        ] = None,
        every: Annotated[
            bool, typer.Option("--all", help="Print the figures that have not moved as well.")
        ] = False,
        fail: Annotated[
            bool, typer.Option("--fail", help="Leave with status 1 if a figure or verdict moved.")
        ] = False,
        format: FormatOption = "text",
    ) -> None:
        """Say which figures moved beyond their intervals: for a new driver, torch or card."""
        if len(machine or ()) > 2:
            raise BadParameter("--machine is given once, or twice: for OLD and for NEW.")
        with ExitStack() as opened, signatures.unchanging():
            both = [_side(each, opened) for each in (old, new)]
            found = [differences.compared(*each) for each in _sides(both, machine or [])]
        _print_diff(found, format, every=every)
        if fail and any(each.moved for each in found):
            raise typer.Exit(1)


def _side(given: str, opened: ExitStack) -> Path | Side:
    """A folder of recordings, or a machine of those here; a file of that name comes first."""
    if (source := Path(given)).exists():
        return opened.enter_context(archives.unpacked(source)).folder
    root = recording.default_root()
    known = recording.machines(root)
    if given not in known:
        here = ", ".join(known) or "none"
        told = "is neither a file, nor a folder, nor a machine with recordings"
        raise BadParameter(f"{given} {told}. Machines here: {here}.")
    return Side(root, given)


def _sides(both: Sequence[Path | Side], machines: list[str]) -> list[tuple[Side, Side]]:
    if not any(isinstance(each, Side) for each in both):
        return pairs.sides(*both, machines)
    if machines:
        raise BadParameter("--machine chooses in a set; a machine's slug has named its own.")
    found = []
    for each, other in zip(both, reversed(both), strict=True):
        if isinstance(each, Path):  # of a set the same machine, else the only one
            there = recording.machines(each)
            slug = other.machine if other.machine in there else there[0]
            if len(there) > 1 and slug != other.machine:
                raise BadParameter(f"The set has {', '.join(there)}, and not {other.machine}.")
            each = Side(each, slug)
        found.append(each)
    return [tuple(found)]


def _print_import(
    found: Sequence[Incoming], passed_over: int, format: str, *, takes: bool, dry: bool
) -> None:
    if format != "text":
        lines = [{"recording": e.place, "word": e.word, "why": e.why} for e in found]
        say_data(pd.DataFrame(lines, dtype=object), format)
        return
    show(table(("", "recording", "why"), [(e.word, e.place, e.why) for e in found]))
    counted = Counter(each.word for each in found)
    counts = ", ".join(f"{counted[word]} {word}" for word in incoming.WORDS if counted[word])
    say(f"{'Would be: ' if dry else ''}{counts}.")
    if passed_over:
        say(f"{passed_over} files that are in no recording's place were passed over.")
    if not takes and not dry:
        say("Nothing was written. `--skip-refused` takes the others in.")


def _print_diff(found: Sequence[Compared], format: str, *, every: bool) -> None:
    if format == "csv":
        lines = [line for each in found for line in _figures(each)]
        say_data(pd.DataFrame(lines, columns=FIGURE, dtype=object), format)
    elif format == "json":
        say(json.dumps([_told(each) for each in found], indent=1, allow_nan=False))
    else:
        for each in found:
            show(*_tables(each, every=every))


def _finite(number: float | None) -> float | None:
    """What JSON can hold of a number."""
    return number if number is not None and isfinite(number) else None


def _figures(found: Compared) -> Iterator[dict[str, Any]]:
    """Every figure that both sides have, as a line of data."""
    for each in found.figures:
        shift, experiment = each.shift, each.new.experiment
        kernels = shift.row.get("kernels"), shift.old_row.get("kernels")
        names = (shift.column, *columns.intervals()[shift.column])
        over = shift.over
        values = (
            *(found.old.machine, found.new.machine, experiment),
            *(json.dumps(each.new.params, sort_keys=True), shift.name, shift.column),
            columns.column(shift.column, experiment).unit or None,
            *(_finite(shift.old_row.get(name)) for name in names),
            *(_finite(shift.row.get(name)) for name in names),
            *((over.median, over.low, over.high) if over else (None,) * 3),
            *(shift.word, None if None in kernels else kernels[0] == kernels[1]),
        )
        yield dict(zip(FIGURE, values, strict=True))


def _told(found: Compared) -> dict[str, Any]:
    """All that differs between two sides, as data."""
    both = found.recordings
    return {
        "old": _described(found.old.machine, [old for old, _ in both.both]),
        "new": _described(found.new.machine, [new for _, new in both.both]),
        "counts": _counts(found),
        "figures": list(_figures(found)),
        "verdicts": [
            {
                "claim": each.name,
                "old": each.old.word,
                "new": each.new.word,
                "old_evidence": each.old.evidence,
                "new_evidence": each.new.evidence,
            }
            for each in found.verdicts
        ],
        "only_old": [loading.place(each.path) for each in both.only_old],
        "only_new": [loading.place(each.path) for each in both.only_new],
    }


def _described(machine: str, found: Sequence[Recording]) -> dict[str, Any]:
    """What one side was measured with: each thing once, of all its recordings."""
    told = {
        name: sorted({str(each.data[block].get(name)) for each in found})
        for block, names in DESCRIBED.items()
        for name in names
    }
    days = sorted(each.data["started_at"][:10] for each in found)
    return {"machine": machine} | told | {"recorded": [days[0], days[-1]]}


def _counts(found: Compared) -> dict[str, int]:
    return (
        {"figures": len(found.figures)}
        | shifts.counts(each.shift for each in found.figures)
        | {f"rows {why}": count for why, count in found.rows_left.items()}
        | {"claims judged on both": found.judged, "verdicts that differ": len(found.verdicts)}
    )


def _tables(found: Compared, *, every: bool) -> Iterator[Table | str]:
    both = found.recordings
    sides = (
        (found.old.machine, [e for e, _ in both.both]),
        (found.new.machine, [n for _, n in both.both]),
    )
    old, new = (_described(*side) for side in sides)
    lines = [(name, _joined(old[name]), _joined(new[name])) for name in old]
    yield table(("", "old", "new"), lines)
    wanted = [each for each in found.figures if every or each.shift.word == shifts.MOVED]
    if wanted:
        heads = ("recording", "row", "figure", "#old", "#new", "#new / old", "")
        title = "figures" if every else "figures that moved beyond their intervals"
        yield table(heads, map(_line, sorted(wanted, key=lambda e: -e.shift.size)), title)
    if found.verdicts:
        heads = ("claim", "old", "new", "old figure", "new figure")
        yield table(heads, map(_verdict_line, found.verdicts), "verdicts that differ")
    words = shifts.counts(each.shift for each in found.figures)
    yield f"{len(found.figures)} figures: {_listed(words)}."
    if any(found.rows_left.values()):
        yield f"Rows that are not compared: {_listed(found.rows_left)}."
    yield f"{len(found.verdicts)} of {found.judged} verdicts differ."
    for what, only in (("old", both.only_old), ("new", both.only_new)):
        if only:
            places = ", ".join(loading.place(each.path) for each in only)
            yield f"Only the {what} one has {len(only)} of the recordings: {places}."


def _listed(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counted.items())


def _joined(values: str | Sequence[str]) -> str:
    return values if isinstance(values, str) else ", ".join(dict.fromkeys(values))


def _line(each: Figure) -> tuple[str, ...]:
    shift, declared = each.shift, columns.column(each.shift.column, each.new.experiment)
    title = signatures.signature(each.new.experiment).title(each.new.params)
    both = (rows.printed(row, shift.column) for row in (shift.old_row, shift.row))
    over = shift.over
    ratio = units.ratio_range(over.median, over.low, over.high) if over else None
    return title, shift.name, declared.heading, *both, ratio, shift.word


def _verdict_line(each: Difference) -> tuple[str | None, ...]:
    seen = (one.measured.text if one.measured else None for one in (each.old, each.new))
    return each.name, each.old.word, each.new.word, *seen
