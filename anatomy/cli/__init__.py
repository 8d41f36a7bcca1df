"""The command line: parse, call, print. What is decided is decided in the package.

Commands, options, defaults and help of experiments come from their sources by
`anatomy.record.signatures`, so that `--help`, `list`, `show`, `export`, `check` and completion
never wait for torch. Results go to standard output, progress and errors to standard error.
"""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from anatomy.table.errors import AnatomyError

NAME = "pytorch-gpu-anatomy"


def main(arguments: Sequence[str] | None = None, package: Path | None = None) -> NoReturn:
    """Run one command, by default this process's, and leave with its status.

    `package` is the folder of another package with experiments, for tests.
    """
    from typer.main import get_command

    from anatomy.cli.app import build

    # So that `kill` ends a worker and removes its temporary folder, as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        get_command(build(package))(args=arguments, prog_name=NAME)
    except AnatomyError as error:
        print(f"error: {error}", file=sys.stderr)
        if output := getattr(error, "output", ""):
            print("\n".join(f"    {line}" for line in output.splitlines()), file=sys.stderr)
        sys.exit(error.exit_status)
    except (KeyboardInterrupt, SystemExit) as end:
        # Typer turns Ctrl-C into status 130, and says nothing.
        if isinstance(end, SystemExit) and end.code != 130:
            raise
        told = "Interrupted. Recordings that were finished are kept, and none is cut."
        print(told, file=sys.stderr)
        sys.exit(130)
    sys.exit(0)
