"""Turns at the host, for processes that measure at the same time on GPUs of their own.

Blocks that the GPU paces may run beside each other: their dispatch is hidden. A block that the host
paces runs alone: while it lasts, no other process is in one. Without ANATOMY_TURNS in the
environment, the folder where they meet, nobody measures beside this process.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

waited_s = 0.0  # by this process, for all its turns so far


@contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """Wait for the right to take a block beside others, or `alone`."""
    global waited_s
    folder = os.environ.get("ANATOMY_TURNS")
    if not folder:
        yield
        return
    import fcntl  # POSIX alone, as is measuring on several GPUs

    how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    with open(Path(folder) / "door", "w") as door, open(Path(folder) / "room", "w") as room:
        began = time.monotonic()
        # Who waits to be alone holds the door, or those who share could keep it out for ever.
        fcntl.flock(door, how)
        fcntl.flock(room, how)
        fcntl.flock(door, fcntl.LOCK_UN)
        waited_s += time.monotonic() - began
        yield
