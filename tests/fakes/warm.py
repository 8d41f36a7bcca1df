"""Workers and scripts forked off a process that has imported torch, in the place of ones that begin
from nothing: for tests of what comes of them, not of how they begin.

The module is both ends: what tests put in the place of `isolation`'s own, and what a fork runs.
"""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

from anatomy.record.processes import isolation
from anatomy.record.processes.nursery import Forked, Nursery

VARIABLE = "FORKED_AS"


class Warm:
    """A nursery whose forks have the folder and the environment of the moment."""

    def __init__(self) -> None:
        start = isolation._Launched  # others are put in its place
        self._nursery = Nursery(
            lambda command, file: start(
                ["-P", *command], {}, keep=(file,), printed=subprocess.DEVNULL
            )
        )
        self.end = self._nursery.end

    def __enter__(self) -> "Warm":
        return self

    def __exit__(self, *_: object) -> None:
        """The next test has it too."""

    def fork(self, module: str, task: Path, environment=None, arguments=()) -> Forked:
        """As `Nursery.fork`."""
        told = {"module": module, "arguments": [*arguments], "folder": os.getcwd()}
        told["environment"] = {**os.environ, **environment}
        return self._nursery.fork(__name__, task, {VARIABLE: json.dumps(told)})

    def launch(self, command, environment, task=os.devnull) -> Forked:
        """As `isolation._Launched` of `-P -m MODULE ARGUMENTS`."""
        assert command[:2] == ["-P", "-m"]
        return self.fork(command[2], Path(task), environment, command[3:])


if __name__ == "__main__":
    _told = json.loads(os.environ[VARIABLE])
    os.environ.clear()
    os.environ.update(_told["environment"])
    os.chdir(_told["folder"])
    sys.argv = ["", *_told["arguments"]]
    if os.environ.get("PYTHONUNBUFFERED"):
        sys.stdout.reconfigure(line_buffering=True)
    runpy.run_module(_told["module"], run_name="__main__", alter_sys=True)
