"""Worker processes that start warm: forked off one that has imported what takes seconds to import.

A fresh process spends seconds on importing torch, its compiler and pandas before it measures
anything. Here one process imports them, touches no GPU, and forks. A fork begins with an
untouched CUDA, imports the experiment's code as it is then, and has its own memory and allocator.
What forks share is where libraries were loaded, so several fresh processes that are to be compared
with each other are started by `isolation` one by one instead.

The module is both ends: a recorder's `Nursery`, and the program that it starts, which imports
nothing of this package, for it would be out of date in a fork once somebody edits it.
"""

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO
from unittest.mock import patch

# What measuring imports sooner or later, by how long that takes. To profile imports half of the
# compiler, and to forget what was compiled the rest, for what it has of CUDA graphs. What is left
# for a first compilation to import stays with it: imports may change what is measured. Where some
# of those that write code are there, the compiler no longer asks for others; and of its passes
# `numeric_utils` sets CUBLAS_WORKSPACE_CONFIG, with which asking for a matmul takes far longer.
IMPORTS = ("pandas", "torch.profiler", "torch._inductor.cudagraph_trees")
MESSAGE_BYTES = 1 << 20
LOOK_S = 0.05  # how often to look whether it lives
# Kills the group that it is begun in once its standard input ends, which it does with the recorder.
LEASH = "exec 3<&0; ( (read -r _; kill -9 0) <&3 & )"


class Nursery:
    """Forks off workers, one at a time. It begins with the first, if nobody has it `begin` before,
    and ends with its `with` block.
    `launch` starts a Python program with its arguments and one more file descriptor, which ends
    however this process does, and can be asked whether it `has_ended` and told to `close`."""

    def __init__(self, launch: Callable[[Sequence[str], int], Any]) -> None:
        self._launch = launch
        self._socket: socket.socket | None = None

    def __enter__(self) -> "Nursery":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Kill it. The next worker begins another."""
        if self._socket:
            self._socket.close()
            self._process.close()
            self._socket = None

    def begin(self) -> None:
        """Have it import everything while its recorder does something else."""
        if not self._socket:
            self._socket, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with there:
                self._process = self._launch([__file__, str(there.fileno())], there.fileno())

    def fork(self, module: str, task: Path, environment: Mapping[str, str]) -> "Forked":
        """Have a module run as a program with a file as its standard input."""
        self.begin()
        order = json.dumps({"module": module, "environment": dict(environment)})
        leash, held = os.pipe()
        read, printed = os.pipe()
        given = os.open(task, os.O_RDONLY)
        with suppress(OSError):  # it has ended, as its worker will be found to have
            socket.send_fds(self._socket, [order.encode()], (given, printed, leash))
        for each in (given, printed, leash):
            os.close(each)
        return Forked(self, open(read, "rb"), held)

    def tell(self, text: str) -> None:
        """Send it a word, if it is there."""
        with suppress(OSError):
            if self._socket:
                self._socket.send(text.encode())

    def hear(self) -> dict[str, int] | None:
        """What it says next, nothing if it has ended; None if it is silent for a moment."""
        try:
            if select.select([self._socket], [], [], LOOK_S)[0]:
                return json.loads(self._socket.recv(MESSAGE_BYTES) or "{}")
        except (TypeError, ValueError, OSError):  # another lane has called `end`
            return {}
        if not self._process.has_ended:
            return None
        self.end()
        return {}


class Forked:
    """A forked worker, as its recorder sees it."""

    def __init__(self, nursery: Nursery, stdout: BinaryIO, held: int) -> None:
        self.stdout = stdout  # what it prints
        self.returncode: int | None = None
        self._nursery, self._held = nursery, held
        self._pid: int | None = None  # until the nursery has imported all, and says it

    def ended(self, deadline: float) -> bool:
        """Wait until it ends; its number stays taken until `close`. False where the deadline came
        first."""
        while self.returncode is None and time.monotonic() < deadline:
            self._listen()
        return self.returncode is not None

    def _listen(self) -> None:
        told = self._nursery.hear()
        if told is not None and "pid" in told:
            self._pid = told["pid"]
        elif told is not None:  # or the nursery was killed, as for memory, which takes this along
            self.returncode = told.get("status", -signal.SIGKILL)

    def kill(self) -> None:
        """Kill it with all it started. What is left of a finished one goes too."""
        if self._pid is None:
            self._nursery.end()
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill it and let its number go."""
        self.kill()
        if self._pid is not None:
            while self.returncode is None:
                self._listen()
            self._nursery.tell("let go")
        os.close(self._held)


def main(end: socket.socket) -> None:
    """Import, then fork for every order that comes; a fork runs what was ordered, and returns."""
    import_all()
    gc.collect()
    gc.freeze()  # a collection in a fork would touch, and so copy, all that is shared
    while True:
        message, files, _, _ = socket.recv_fds(end, MESSAGE_BYTES, 3)
        if not message:
            return
        pid = os.fork()
        if not pid:
            end.close()
            _become(json.loads(message), *files)
            return
        for each in files:
            os.close(each)
        end.send(json.dumps({"pid": pid}).encode())
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        killed = ended.si_code != os.CLD_EXITED
        status = -ended.si_status if killed else ended.si_status
        end.send(json.dumps({"status": status}).encode())
        end.recv(MESSAGE_BYTES)  # its group has been killed, so its number may go
        os.waitpid(pid, 0)


def import_all() -> None:
    """Import torch and `IMPORTS`, and touch no GPU."""
    import torch

    # A part of the compiler asks on import whether there is a GPU. Only the answer of a torch built
    # for CUDA is used, on a GPU; to ask the driver here would keep forks from using theirs.
    built = torch.version.cuda is not None
    with patch.object(torch.cuda, "is_available", return_value=built):
        for name in IMPORTS:
            importlib.import_module(name)


def _become(order: Mapping[str, Any], given: int, printed: int, leash: int) -> None:
    """Turn this fork into the worker that was ordered."""
    os.setsid()
    for source, target in ((given, 0), (printed, 1), (printed, 2)):
        os.dup2(source, target)
    subprocess.run(["/bin/sh", "-c", LEASH], stdin=leash, check=True)
    for each in (given, printed, leash):
        os.close(each)
    os.environ.update(order["environment"])
    runpy.run_module(order["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as own:
        main(own)
