"""`diagnose`: what holds a reader's own step back."""

import json
from pathlib import Path
from typing import Annotated

import typer

from anatomy.cli.options import PlainFormat, PlainFormatOption, ScriptArguments, TimeoutOption
from anatomy.cli.output import say

EXAMPLE = "Example: pytorch-gpu-anatomy diagnose snippets/diagnose_your_step.py"


def add(app: typer.Typer) -> None:
    """Add `diagnose` to the application."""

    @app.command(epilog=EXAMPLE)
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
        format: PlainFormatOption = PlainFormat.TEXT,
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
        if format is PlainFormat.JSON:
            say(json.dumps({"script": name} | found["diagnosis"], indent=1, allow_nan=False))
        else:
            say(found["text"])
