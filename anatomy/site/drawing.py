"""Pages worked on side by side and ahead of the build, in processes that it can lose.

A page's blocks are programs: one may leave, crash, be killed for its memory, or never come back. In
a process of its own it ends that page alone, and the build can say at which block.
"""

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from anatomy.record import bounded
from anatomy.record.showing import PageError
from anatomy.table.errors import AnatomyError

HINT = "Pages only show what is recorded, which takes seconds."
PR_SET_PDEATHSIG = 1  # of Linux' prctl: the signal that this process gets when its parent ends
MOST = 8  # processes; there are some thirty pages
PIPE_BYTES = 1 << 20  # a page's worth: who hands one over need not wait until the build takes it
Heard = Callable[[str], None]
Work = Callable[[str, Heard], Any]  # on a page; who hears the place of each block begun


@dataclass
class Worker:
    """A process that works on one page after the other."""

    process: Any
    page: str = ""
    place: str = ""  # `page.md:line` of the block that it is at
    since: float = 0.0

    @property
    def late(self) -> bool:
        """Whether it should have come back from where it is by itself."""
        allowed = bounded.limit_s() + bounded.GRACE_S
        return bool(self.page) and time.monotonic() - self.since > allowed

    @property
    def ended(self) -> str:
        """Why the page that it was at is not there."""
        status = self.process.exitcode
        how = f"signal {-status}" if status < 0 else f"status {status}"
        if self.late:
            return f"{self.place}: it was ended after {time.monotonic() - self.since:.0f} s. {HINT}"
        memory = " The system may have had no memory left." if -status == signal.SIGKILL else ""
        said = f"it ended the process that ran it, with {how}; a page may not end a build."
        return f"{self.place}: {said}{memory}"


class Ahead:
    """What `work` returns of each page, worked on in the order of their names."""

    def __init__(self, work: Work, names: Sequence[str]) -> None:
        """Begin. Where no process can be forked off, the work is done when it is asked for."""
        self._work, self._names = work, names
        self._done: dict[str, Any] = {}
        self._workers: dict[Connection, Worker] = {}
        if _can_fork():
            self._fork = multiprocessing.get_context("fork")
            self._turn = self._fork.Value("i", 0)
            for _ in range(min(len(os.sched_getaffinity(0)), MOST, len(names))):
                self._start()

    def __getitem__(self, name: str) -> Any:
        """What the work on a page returned, once it is there; its AnatomyError is raised, and a
        PageError where a block ended its process, or had to be ended with it."""
        while name not in self._done and self._workers:
            for said in wait(list(self._workers), bounded.AGAIN_S):
                self._hear(said)
            for worker in self._workers.values():
                if worker.late:
                    worker.process.kill()
        if name not in self._done:
            self._done[name] = _outcome(self._work, name, lambda place: None)
        if isinstance(done := self._done[name], AnatomyError):
            raise done
        return done

    def stop(self) -> None:
        """End what is still at work."""
        for worker in self._workers.values():
            worker.process.kill()
        self._workers.clear()

    def _start(self) -> None:
        import fcntl  # as forks, not everywhere

        here, there = self._fork.Pipe(duplex=False)
        with suppress(OSError):  # more than this user may have
            fcntl.fcntl(there.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        given = self._work, self._names, self._turn, there, [*self._workers, here]
        process = self._fork.Process(target=_work, args=given, daemon=True)
        process.start()
        there.close()
        self._workers[here] = Worker(process)

    def _hear(self, said: Connection) -> None:
        worker = self._workers[said]
        try:
            worker.page, worker.place, done = said.recv()
        except (EOFError, OSError):
            worker.process.join()
            del self._workers[said]
            if worker.page:
                self._done[worker.page] = PageError(worker.ended)
                self._start()  # in its place
            return
        worker.since = time.monotonic()
        if worker.page and not worker.place:
            self._done[worker.page], worker.page = done, ""


def _can_fork() -> bool:
    """Whether a fork of this process could go on: threads, such as those of a server and of the
    converter of charts, would be missing in it."""
    alone = threading.active_count() == 1 and "vl_convert" not in sys.modules
    return alone and sys.platform == "linux"


def _work(work: Work, names: Sequence[str], turn, said: Connection, others: Sequence) -> None:
    for each in others:  # so that nothing but the build holds them open
        each.close()
    # However the build ends, so does this: a block may be at work that never looks around.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    bounded.watched = True
    gc.disable()  # its memory goes with it, and cycles hold little of that
    with suppress(BrokenPipeError):  # the build has ended
        while True:
            with turn.get_lock():
                at = turn.value
                turn.value += 1
            if at >= len(names):
                return
            name = names[at]
            said.send((name, name, None))
            done = _outcome(work, name, lambda place, name=name: said.send((name, place, None)))
            said.send((name, "", done))


def _outcome(work: Work, name: str, heard: Heard) -> Any:
    try:
        return work(name, heard)
    except AnatomyError as error:
        return error
    except Exception:
        return AnatomyError(f"{name}: {traceback.format_exc()}")
