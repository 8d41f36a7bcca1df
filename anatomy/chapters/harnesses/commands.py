"""`compare-harnesses`: run what is missing of the comparison, and print how it stands."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from anatomy.chapters.harnesses.contest import scoreboard, targets
from anatomy.chapters.harnesses.contest.standings import RIVALS, Contest
from anatomy.cli import options
from anatomy.cli.output import say_data, show, table
from anatomy.record import recording
from anatomy.table.errors import MeasurementError

# Seconds of a process on a fast card, until one was recorded: no budget should cut one short.
EXPECTED_S = {"harnesses.estimates": 165.0, "harnesses.reference": 60.0}
SAVE = options.folder("Keep recordings in DIR, not the checkout's folder.")
PLAN = typer.Option("--plan", help="Measure nothing; print how it stands.")


def add(app: typer.Typer) -> None:
    """Add `compare-harnesses` to the application."""

    @app.command(
        "compare-harnesses", epilog="Example: pytorch-gpu-anatomy compare-harnesses --budget 520"
    )
    def compare_harnesses(
        device: options.DeviceOption = "cuda:0",
        budget: options.BudgetOption = None,
        save: Annotated[Path | None, SAVE] = None,
        plan: Annotated[bool, PLAN] = False,
        allow_foreign: options.ForeignOption = False,
        format: options.FormatOption = "text",
    ) -> None:
        """Hold the package's stopwatch against triton's, torch's and inductor's on this device.

        Nine processes of a few minutes each, three of them for the reference, are measured and
        recorded one by one; those that are recorded already are not repeated. Then prints spread,
        bias, coverage, errors and cost of every harness, and which targets are met; as csv or json,
        the targets.
        """
        from anatomy.machine import host
        from anatomy.record import recorder

        root, here, calls = save or recording.local_root(), host.here(), scoreboard.calls(device)
        items = recorder.plan(calls, root, here)
        done = None
        if not plan:
            items = [replace(i, last_seconds=i.last_seconds or EXPECTED_S[i.name]) for i in items]
            done = recorder.record(items, root=root, budget_s=budget, allow_foreign=allow_foreign)
            print(done.report(), file=sys.stderr)
            items = recorder.plan(calls, root, here)
        # What is recorded on this machine, current or not: a recording says which code it is of.
        slug = host.cpu_slug() if device.startswith("cpu") else here and here["slug"]
        found = [recording.find(root, slug, name, **params) for name, params in calls if slug]
        contest = Contest.of([each for each in found if each is not None])
        if not contest.estimates.empty:
            _print(contest, format)
        if waiting := sum(not each.freshness.current for each in items):
            missing = f"{waiting} of {len(items)} processes are missing or not current"
            print(f"{missing}; the same command goes on with them.", file=sys.stderr)
        if done and done.failed:
            raise MeasurementError(f"{len(done.failed)} processes could not be measured.")


def _print(contest: Contest, format: str) -> None:
    if format != "text":
        say_data(pd.DataFrame(targets.judged(contest).values(), dtype=object), format)
        return
    for part in scoreboard.PARTS:
        for quantity in RIVALS if part in scoreboard.BY_QUANTITY else ("",):
            sheet = scoreboard.sheet(contest, part, quantity)
            if sheet.lines:
                show(table(sheet.heads, sheet.lines, f"\n{sheet.title}"))
