"""Of a build, what other processes have to do with it: the recorder it starts, and other builds."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from anatomy.record.showing import Asked
from anatomy.table.errors import AnatomyError, Busy

LOCK = Path(".cache") / "anatomy" / "build.lock"
# Statuses of the recorder that end a build: another one measures, and Ctrl-C.
BUSY, INTERRUPTED = 5, 130
GRACE_S = 15.0  # for an interrupted recorder to end what it started


def run_recorder(asked: Sequence[Asked], root: Path, mode: str, checkout: Path) -> str:
    """Have one recorder measure what is not current, and say whether single experiments failed."""
    order = json.dumps({"shown": asked, "root": str(root), "mode": mode})
    path = os.pathsep.join(filter(None, (str(checkout), os.environ.get("PYTHONPATH"))))
    command, env = [sys.executable, "-m", "anatomy.record.recorder"], {"PYTHONPATH": path}
    how = {"stdin": subprocess.PIPE, "text": True, "cwd": checkout, "env": os.environ | env}
    recorder = subprocess.Popen(command, **how)
    try:
        recorder.communicate(order)
        status = recorder.returncode
    except KeyboardInterrupt:  # a terminal interrupts the recorder too; it ends its own process
        status = INTERRUPTED
        try:
            recorder.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            recorder.kill()
    if status == BUSY:
        raise Busy("Another recorder is measuring on this machine. Wait for it, or end it.")
    if status < 0 or status >= INTERRUPTED:
        raise AnatomyError("Measuring was interrupted. What was finished is kept; build again.")
    if status > 1:
        raise AnatomyError("The recorder could not begin; its message stands above.")
    return "Not everything could be measured; the pages show gaps there." if status else ""


def lock(project: Path) -> FileLock:
    """Keep other builds of the project in this folder out until the lock is released."""
    held = FileLock(project / LOCK)
    try:
        (project / LOCK).parent.mkdir(parents=True, exist_ok=True)
        held.acquire(timeout=0)
    except Timeout:
        raise Busy(
            "Another `mkdocs build` is at work in this checkout, and two would write the same "
            "files. Wait for it, or end it."
        ) from None
    except OSError as error:
        # Nobody can write to this checkout, so no two builds can meet in it.
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise AnatomyError(f"{LOCK.parent} can't be written: {error.strerror}.") from None
    return held
