"""`compare-harnesses`: run what is missing of the comparison, and print how it stands."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from anatomy.chapters.harnesses.contest import scoreboard
from anatomy.cli import options
from anatomy.cli.output import as_csv, say, show, table
from anatomy.record import recording
from anatomy.table.errors import MeasurementError, RecordingError

# What a process takes on a fast card, until one was recorded: so that none is begun that a budget
# would cut short.
EXPECTED_S = {"harnesses.estimates": 165.0, "harnesses.reference": 60.0}


def add(app: typer.Typer) -> None:
    """Add `compare-harnesses` to the application."""

    @app.command(
        "compare-harnesses", epilog="Example: pytorch-gpu-anatomy compare-harnesses --budget 520"
    )
    def compare_harnesses(
        device: options.DeviceOption = "cuda:0",
        budget: options.BudgetOption = None,
        save: Annotated[
            Path | None, options.folder("Keep recordings in DIR, not the checkout's folder.")
        ] = None,
        plan: Annotated[
            bool, typer.Option("--plan", help="Measure nothing; print how it stands.")
        ] = False,
        allow_foreign: options.ForeignOption = False,
        format: options.FormatOption = "text",
    ) -> None:
        """Hold the package's stopwatch against triton's, torch's and inductor's on this device.

        Nine processes of a few minutes each, three of them for the reference, are measured and
        recorded one by one; those that are recorded already are not repeated. Then prints spread,
        bias, coverage, errors and cost of every harness, and which targets are met.
        """
        from anatomy.machine import host
        from anatomy.record import recorder

        root = save or _root()
        items = recorder.plan(scoreboard.calls(device), root, host.here())
        items = [
            replace(each, last_seconds=each.last_seconds or EXPECTED_S[each.name]) for each in items
        ]
        outcome = None
        if not plan:
            outcome = recorder.record(
                items, root=root, budget_s=budget, allow_foreign=allow_foreign
            )
            print(outcome.report(), file=sys.stderr)
            items = recorder.plan(scoreboard.calls(device), root, host.here())
        stand = _recorded(items, root, device)
        if not stand.empty:
            _print(stand, format)
        waiting = sum(not each.freshness.current for each in items)
        if waiting:
            missing = f"{waiting} of {len(items)} processes are missing or not current"
            print(f"{missing}; the same command goes on with them.", file=sys.stderr)
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
    from anatomy.machine import host

    here = host.here()
    slug = host.cpu_slug() if device.startswith("cpu") else here and here["slug"]
    found = [recording.find(root, slug, each.name, **each.params) for each in items if slug]
    return scoreboard.Board.of([each for each in found if each is not None])


def _print(board: scoreboard.Board, format: str) -> None:
    sheets = [
        (part, quantity, scoreboard.sheet(board, part, quantity))
        for part in scoreboard.PARTS
        for quantity in (scoreboard.QUANTITIES if part in scoreboard.BY_QUANTITY else ("gpu_cold",))
    ]
    if format == "csv":
        say(as_csv(board.targets))
    elif format == "json":
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
        show(*(table(s.heads, s.lines, f"\n{s.title}") for *_, s in shown if s.lines))
