"""`replicate`: a reader's own script in several fresh processes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from anatomy.cli import text
from anatomy.cli.measure import known_ceilings
from anatomy.cli.options import Format, FormatOption, ScriptArguments, TimeoutOption
from anatomy.cli.output import as_csv, say
from anatomy.judge import limits, replication, rows
from anatomy.table import units

EXAMPLE = "Example: pytorch-gpu-anatomy replicate snippets/compare_your_code.py -n 3"


def add(app: typer.Typer) -> None:
    """Add `replicate` to the application."""

    @app.command(epilog=EXAMPLE)
    def replicate(
        script: Annotated[
            Path,
            typer.Argument(metavar="SCRIPT.py", help="A Python file that calls anatomy.compare."),
        ],
        arguments: ScriptArguments = None,
        processes: Annotated[
            int,
            typer.Option(
                "--processes", "-n", metavar="N", min=1, help="How many fresh processes it runs in."
            ),
        ] = 5,
        timeout: TimeoutOption = None,
        format: FormatOption = Format.TEXT,
    ) -> None:
        """Run your own script in several fresh processes, and merge what each compare() found.

        A difference under 2% is claimed only from three processes or more, because where a process
        puts its buffers and code moves its times. Comparisons are told apart by their order and
        their variants, which must be the same in every process. What the script prints is shown
        for the first process alone, on standard error.
        """
        from anatomy.diagnosis import replicas
        from anatomy.machine import host
        from anatomy.record import progress

        name = str(script)
        with progress.Reporter([None] * processes) as reporter:

            def tell(number: int) -> None:
                if number > 1:
                    reporter.end(name, f"process {number - 1} of {processes} is done")
                reporter.begin(name)

            found = replicas.replicate(
                script,
                arguments or (),
                processes=processes,
                timeout_s=timeout,
                tell=tell,
                heard=lambda line: reporter.line(f"  {line}"),
            )
            reporter.end(name, f"process {processes} of {processes} is done")
        if format is Format.JSON:
            data = {"script": name, "processes": processes, "comparisons": found}
            say(json.dumps(data, indent=1, allow_nan=False))
        elif format is Format.CSV:
            say(as_csv(_table(found)))
        else:
            parts = [f"{name}\n{replication.described(processes)}"]
            here = host.here()
            ceilings = known_ceilings(here["slug"]) if here else None
            say("\n\n".join([*parts, *(_described(comparison, ceilings) for comparison in found)]))


def _table(found: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """All rows of all comparisons, which `comparison` counts from 1."""
    all_rows = [
        {"comparison": place} | row
        for place, comparison in enumerate(found, 1)
        for row in comparison["rows"]
    ]
    columns = dict.fromkeys(column for row in all_rows for column in row)
    return pd.DataFrame(all_rows, columns=list(columns), dtype=object)


def _described(comparison: dict[str, Any], ceilings: limits.Ceilings | None) -> str:
    """One comparison: its times and verdicts, the ratio of each process, and warnings."""
    lines = [
        text.timing(op, quantity, group, ceilings)
        for (op, quantity), group in rows.groups_of(comparison["rows"])
    ]
    for row in comparison["rows"]:
        if row.get("run_ratios"):
            low, high = row["ratio_low"], row["ratio_high"]
            each = ", ".join(units.ratio(ratio, low, high) for ratio in row["run_ratios"])
            lines.append(f"each process: {row['variant']} {each}")
    return "\n".join([*lines, *(f"warning: {warning}" for warning in comparison["warnings"])])
