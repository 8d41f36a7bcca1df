"""`compare-harnesses`: run what is missing of the comparison, and print how it stands."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from anatomy import recording
from anatomy.cli.output import Format, FormatOption, as_csv, require_seconds, say, show
from anatomy.contest import scoreboard
from anatomy.errors import MeasurementError, RecordingError

# What a process takes on a fast card, until one was recorded: so that none is begun that a budget
# would cut short.
EXPECTED_S = {"harnesses.estimates": 165.0, "harnesses.reference": 60.0}


def add(app: typer.Typer) -> None:
    """Add `compare-harnesses` to the application."""

    @app.command(
        "compare-harnesses", epilog="Example: pytorch-gpu-anatomy compare-harnesses --budget 520"
    )
    def compare_harnesses(
        device: Annotated[str, typer.Option(help="Device, such as cuda:0 or cpu.")] = "cuda:0",
        budget: Annotated[
            float | None,
            typer.Option("--budget", metavar="SECONDS", help="Stop in time; go on at next call."),
        ] = None,
        save: Annotated[
            Path | None,
            typer.Option(
                "--save", metavar="DIR", help="Keep recordings in DIR, not the checkout's folder."
            ),
        ] = None,
        plan: Annotated[
            bool, typer.Option("--plan", help="Measure nothing; print how it stands.")
        ] = False,
        allow_foreign: Annotated[
            bool,
            typer.Option(
                "--allow-foreign", help="Measure although another process computes on the GPU."
            ),
        ] = False,
        format: FormatOption = Format.TEXT,
    ) -> None:
        """Hold the package's stopwatch against triton's, torch's and inductor's on this device.

        Nine processes of a few minutes each, three of them for the reference, are measured and
        recorded one by one; those that are recorded already are not repeated. Then prints spread,
        bias, coverage, errors and cost of every harness, and which targets are met.
        """
        from anatomy import machine, recorder

        require_seconds("--budget", budget)
        root = save or _root()
        items = recorder.plan(scoreboard.calls(device), root, machine.here())
        items = [
            replace(each, last_seconds=each.last_seconds or EXPECTED_S[each.name]) for each in items
        ]
        outcome = None
        if not plan:
            outcome = recorder.record(
                items, root=root, budget_s=budget, allow_foreign=allow_foreign
            )
            print(outcome.report(), file=sys.stderr)
            items = recorder.plan(scoreboard.calls(device), root, machine.here())
        stand = _recorded(items, root, device)
        if not stand.empty:
            _print(stand, format)
        waiting = sum(not each.freshness.current for each in items)
        if waiting:
            told = f"{waiting} of {len(items)} processes are missing or not current"
            print(f"{told}; the same command goes on with them.", file=sys.stderr)
        if outcome and outcome.failed:
            raise MeasurementError(f"{len(outcome.failed)} processes could not be measured.")


def _root() -> Path:
    """Folder of the recordings: the checkout's, or one here."""
    try:
        return recording.default_root()
    except RecordingError:
        return Path("recordings")


def _recorded(items: list[Any], root: Path, device: str) -> scoreboard.Board:
    """What is recorded on this machine, current or not: a board says which code it is of."""
    from anatomy import machine

    here = machine.here()
    slug = machine.cpu_slug() if device.startswith("cpu") else here and here["slug"]
    found = [recording.find(root, slug, each.name, **each.params) for each in items if slug]
    return scoreboard.Board.of([each for each in found if each is not None])


def _print(board: scoreboard.Board, format: Format) -> None:
    sheets = [
        (part, quantity, scoreboard.sheet(board, part, quantity))
        for part in scoreboard.PARTS
        for quantity in (scoreboard.QUANTITIES if part in scoreboard.BY_QUANTITY else ("gpu_cold",))
    ]
    if format is Format.CSV:
        say(as_csv(board.targets))
    elif format is Format.JSON:
        lines = {
            sheet.title: [
                dict(zip((h.removeprefix("#") for h in sheet.heads), line, strict=True))
                for line in sheet.lines
            ]
            for _, _, sheet in sheets
        }
        say(json.dumps(lines, indent=1, ensure_ascii=False))
    else:
        # The verdicts last, where a terminal leaves the reader's eye.
        shown = [*sheets[2:], *sheets[1::-1]]  # the first two are why targets are missed, and which
        show(*(_as_table(sheet) for *_, sheet in shown if sheet.lines))


def _as_table(sheet: scoreboard.Sheet) -> Table:
    table = Table(title=f"\n{sheet.title}", title_justify="left", box=None, pad_edge=False)
    for head in sheet.heads:
        justify = "right" if head.startswith("#") else "left"
        table.add_column(head.removeprefix("#"), justify=justify)
    for line in sheet.lines:
        table.add_row(*line)
    return table
