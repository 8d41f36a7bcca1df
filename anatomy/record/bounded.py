"""Bounds for the code of a page: it ends in time, and can't end the build from within."""

import faulthandler
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from anatomy.table.errors import AnatomyError, BadParameter

VARIABLE = "ANATOMY_BLOCK_SECONDS"
# What is measured runs in the recorder, before: a block draws, and the slowest takes some seconds.
LIMIT_S = 120.0
# Between two looks at the clock. They also wake an interpreter that a library's thread has kept
# from noticing Ctrl-C, and come again to a block that catches the first PageStopped.
AGAIN_S = 1.0
watched = False  # whether another process ends this one where it does not come back
GRACE_S = 10.0  # after which code that catches them all, or never comes back to Python, is ended


class PageStopped(BaseException):
    """A page's code was stopped. No Exception, so that the code's own `except` lets it pass."""


def limit_s() -> float:
    """Seconds that one block or reference may take: ANATOMY_BLOCK_SECONDS, else 120. BadParameter
    where the variable is no number above 0 and below 1e6."""
    given = os.environ.get(VARIABLE) or LIMIT_S
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise BadParameter(f"{VARIABLE}={given!r} must be a number of seconds, such as 600.")
    return seconds


@contextmanager
def bounded() -> Iterator[None]:
    """Raise PageStopped in what takes longer than `limit_s`, or calls `os._exit`. Where that can't
    be raised the process ends with the traceback, which names the block's file. Outside of the main
    thread there are no signals, and nothing is bounded."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seconds, process, leave = limit_s(), os.getpid(), os._exit
    end = time.monotonic() + seconds

    def late(*_) -> None:
        if time.monotonic() < end:
            return
        raise PageStopped(
            f"it was stopped after {seconds:g} s. Pages only show what is recorded, which takes "
            f"seconds; {VARIABLE}={4 * seconds:g} allows more."
        )

    def left(status: int) -> None:
        if os.getpid() != process:  # a child that was forked may
            leave(status)
        raise PageStopped(f"it called os._exit({status!r}); a page may not end a build.")

    before = signal.signal(signal.SIGALRM, late)
    os._exit = left
    signal.setitimer(signal.ITIMER_REAL, min(seconds, AGAIN_S), AGAIN_S)
    if not watched:
        faulthandler.dump_traceback_later(seconds + GRACE_S, exit=True, file=2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()
        os._exit = leave


def line_of(error: BaseException, filename: str) -> int:
    """Line of the block, from 1, at which it failed; 0 where the traceback does not say."""
    if isinstance(error, SyntaxError) and error.filename == filename:
        return error.lineno or 0
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno or 0 for f in reversed(frames) if f.filename == filename), 0)


def in_words(error: BaseException, what: str) -> str:
    """Why `what`, a block or a reference, gave no figure."""
    if isinstance(error, AnatomyError | PageStopped):
        return str(error)
    if isinstance(error, SystemExit):
        return f"{what} ended with SystemExit({error.code!r}); a page block may not end a build."
    return f"{what} failed with {type(error).__name__}: {' '.join(str(error).split())}"
