"""Pages drawn side by side and ahead of the build, in processes that it can lose.

A page's blocks are programs: one may leave, crash, or be killed for its memory. In a process of
their own they end that page, and the build can say at which block.
"""

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from anatomy.record.showing import PageError
from anatomy.table.errors import AnatomyError

MOST = 8  # processes; there are some thirty pages
Draw = Callable[[str, Callable[[str], None]], Any]  # of a page, and who hears of each block begun


class Ahead:
    """Pages that are drawn in the order of their names, beside what this process does."""

    def __init__(self, draw: Draw, names: Sequence[str]) -> None:
        """Begin; where no process can be forked off, nothing is drawn ahead."""
        self._drawn: dict[str, Any] = {}
        self._working: dict[Connection, tuple[Any, str]] = {}  # process, and the place it is at
        self._names = set(names) if _can_fork() else set()
        if not self._names:
            return
        fork = multiprocessing.get_context("fork")
        turn = fork.Value("i", 0)
        for _ in range(min(len(os.sched_getaffinity(0)), MOST, len(names))):
            here, there = fork.Pipe(duplex=False)
            held = [*self._working, here]
            process = fork.Process(target=_work, args=(draw, names, turn, there, held), daemon=True)
            process.start()
            there.close()
            self._working[here] = process, ""

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> Any:
        """What `draw` returned of a page, once it is there; its AnatomyError is raised, and a
        PageError where a block ended its process."""
        while name not in self._drawn:
            for ready in wait(list(self._working)):
                self._hear(ready)
        found = self._drawn[name]
        if isinstance(found, AnatomyError):
            raise found
        return found

    def stop(self) -> None:
        """End what is still at work."""
        for process, _ in self._working.values():
            process.kill()
        self._working.clear()

    def _hear(self, said: Connection) -> None:
        process, place = self._working[said]
        try:
            name, drawn = said.recv()
        except EOFError:
            process.join()
            del self._working[said]
            if place:
                raise PageError(f"{place}: {_ended(process.exitcode)}") from None
            return
        if drawn is None:
            self._working[said] = process, name
        else:
            self._drawn[name] = drawn


def _can_fork() -> bool:
    """Whether a fork of this process could go on: threads, such as those of a server and of the
    converter of charts, would be missing in it."""
    alone = threading.active_count() == 1 and "vl_convert" not in sys.modules
    return alone and sys.platform == "linux"


def _work(draw: Draw, names: Sequence[str], turn, said: Connection, others: Sequence) -> None:
    for each in others:  # so that nothing but the build holds them open
        each.close()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        while True:
            with turn.get_lock():
                at = turn.value
                turn.value += 1
            if at >= len(names):
                break
            said.send((names[at], None))
            said.send((names[at], _outcome(draw, names[at], said)))
        said.send(("", None))
    except BrokenPipeError:  # the build has ended
        pass


def _outcome(draw: Draw, name: str, said: Connection) -> Any:
    try:
        return draw(name, lambda place: said.send((place, None)))
    except AnatomyError as error:
        return error
    except Exception:
        return AnatomyError(f"{name}: {traceback.format_exc()}")


def _ended(status: int) -> str:
    how = f"signal {-status}" if status < 0 else f"status {status}"
    memory = " The system may have had no memory left." if status == -signal.SIGKILL else ""
    return f"it ended the process that ran it, with {how}; a page may not end a build.{memory}"
