"""Commands about a reader's own script: `replicate` and `diagnose`."""

import json
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from anatomy.cli import ceilings, text
from anatomy.cli.options import FormatOption, PlainFormatOption, ScriptArguments, TimeoutOption
from anatomy.cli.output import as_csv, say
from anatomy.judge import replication, rows
from anatomy.judge.limits import Ceilings
from anatomy.table import units

REPLICATED = "Example: pytorch-gpu-anatomy replicate snippets/compare_your_code.py -n 3"
DIAGNOSED = "Example: pytorch-gpu-anatomy diagnose snippets/diagnose_your_step.py"


def add(app: typer.Typer) -> None:
    """Add `replicate` and `diagnose` to the application."""

    @app.command(epilog=REPLICATED)
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
        format: FormatOption = "text",
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
        if format == "json":
            data = {"script": name, "processes": processes, "comparisons": found}
            say(json.dumps(data, indent=1, allow_nan=False))
        elif format == "csv":
            numbered = enumerate(found, 1)
            lines = [{"comparison": n} | row for n, each in numbered for row in each["rows"]]
            say(as_csv(pd.DataFrame(lines, dtype=object)), data=True)
        else:
            known = ceilings.known(here["slug"]) if (here := host.here()) else None
            parts = [f"{name}\n{replication.described(processes)}"]
            say("\n\n".join([*parts, *(_described(comparison, known) for comparison in found)]))

    @app.command(epilog=DIAGNOSED)
    def diagnose(
        script: Annotated[
            Path, typer.Argument(metavar="SCRIPT.py", help="A Python file that defines step().")
        ],
        arguments: ScriptArguments = None,
        function: Annotated[
            str, typer.Option("--function", metavar="NAME", help="The function that is one step.")
        ] = "step",
        device: Annotated[
            str, typer.Option(help="Device, such as cuda:0; cpu tells the input alone.")
        ] = "cuda:0",
        timeout: TimeoutOption = None,
        format: PlainFormatOption = "text",
    ) -> None:
        """Say what holds one step of your own script back, and what speaks for it.

        The script defines step(); it may define setup(), which is called once, and batches(), which
        yields what step(batch) is given. Code under `if __name__ == "__main__"` is not run. The
        answer is one of compute, memory, launch, sync, input, communication, latency, unknown. On
        a CPU only input can be told. What the script prints is shown on standard error.
        """
        from anatomy.diagnosis import scripts
        from anatomy.record import progress

        name = str(script)
        with progress.Reporter([None]) as reporter:
            reporter.begin(name)
            found = scripts.diagnose_script(
                script,
                arguments or (),
                function=function,
                device=device,
                timeout_s=timeout,
                heard=lambda line: reporter.line(f"  {line}"),
            )
            reporter.end(name, "done")
        if format == "json":
            say(json.dumps({"script": name} | found["diagnosis"], indent=1, allow_nan=False))
        else:
            say(found["text"])


def _described(comparison: dict[str, Any], known: Ceilings | None) -> str:
    """One comparison: its times and verdicts, the ratio of each process, and warnings."""
    lines = [
        text.timing(op, quantity, group, known)
        for (op, quantity), group in rows.groups_of(comparison["rows"])
    ]
    for row in comparison["rows"]:
        if row.get("run_ratios"):
            low, high = row["ratio_low"], row["ratio_high"]
            each = ", ".join(units.ratio(ratio, low, high) for ratio in row["run_ratios"])
            lines.append(f"each process: {row['variant']} {each}")
    return "\n".join([*lines, *(f"warning: {warning}" for warning in comparison["warnings"])])
