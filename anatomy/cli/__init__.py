"""The command line: parse, call, print. What is decided is decided in the package. Commands,
options, defaults and help of experiments come from their sources by `anatomy.record.signatures`, so
that `--help`, `list`, `show`, `export`, `check` and completion never wait for torch. Results go to
standard output, progress and errors to standard error."""

import codecs
import errno
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from anatomy.table.errors import AnatomyError

NAME = "pytorch-gpu-anatomy"
# Signals that end a command in order, as Ctrl-C does: its workers, and their temporary folders.
ENDING = [signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
# What writing to standard output fails with: no room, no device, nobody who listens.
UNPRINTABLE = (errno.ENOSPC, errno.EIO, errno.EPIPE, errno.EBADF)
# What stands for characters that a terminal's encoding lacks; `?` for any other.
PLAIN = {"×": "x", "…": "...", "≤": "<=", "≥": ">=", "→": "->", "±": "+-", "·": "*", "′": "'"}
PLAIN |= dict.fromkeys("–—−─━", "-") | dict.fromkeys("µμ", "u") | dict.fromkeys("│┃", "|")
PLAIN |= dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼", "+")


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Have what `ENDING` names end a command in here, unless it is ignored, as under nohup."""
    before = {each: signal.getsignal(each) for each in ENDING}
    for each, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(each, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@_ending_in_order()
def main(arguments: Sequence[str] | None = None, package: Path | None = None) -> NoReturn:
    """Run one command, by default this process's, and leave with its status. `package` is the
    folder of another package with experiments, for tests."""
    codecs.register_error("plainly", _plainly)
    if sys.stderr is None:  # closed: a file that is opened would get its number, and what is told
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
        os.set_inheritable(sys.stderr.fileno(), True)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(errors="plainly")
    try:
        if sys.stdout is None:
            raise AnatomyError("Standard output is closed, so there is nowhere to print a result.")
        status = _run(arguments, package)
    except AnatomyError as error:
        status = _told(error)
    except OSError as error:
        # Whatever has to do with a file names it.
        if error.filename is not None or error.errno not in UNPRINTABLE:
            raise
        # Python would complain at exit when it flushes what is left, so give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        told = (
            f"The result could not be printed: {error.strerror}. What it was printed to may hold a "
            "part of it; make room there, or print to somewhere else."
        )
        status = _told(AnatomyError(told))
    except (KeyboardInterrupt, SystemExit) as end:
        status = 130 if isinstance(end, KeyboardInterrupt) else end.code
    if status in [130, *(128 + each for each in ENDING)]:
        how = "Interrupted" if status == 130 else f"Ended by {signal.Signals(status - 128).name}"
        told = f"{how}. Recordings that were finished are kept, and none is cut."
        print(told, file=sys.stderr)
    sys.exit(status)


def _run(arguments: Sequence[str] | None, package: Path | None) -> int:
    """Parse and call; return the status of what went as it should."""
    # Here, where a Ctrl-C while they are imported is caught.
    from typer.main import get_command

    from anatomy.cli.app import build

    try:
        command = get_command(build(package))
        return command(args=arguments, prog_name=NAME, standalone_mode=False) or 0
    except SystemExit as end:
        if end.code != 1:
            raise
        return 0  # typer's own, where who reads its help has gone away (`| head`)
    except Exception as error:
        if not hasattr(error, "format_message"):  # of what could not be parsed
            raise
        context = getattr(error, "ctx", None)
        message = error.format_message().strip().replace(": Value error, ", ": ")  # a type's name
        if message and type(error).__name__ != "NoArgsIsHelpError":
            path = context.command_path if context else NAME
            end = "" if message[-1] in ".?" else "."
            print(f"error: {message}{end} Try: {path} --help", file=sys.stderr)
        return error.exit_code


def _told(error: AnatomyError) -> int:
    """Print an error, and the end of what a script said; return the status to leave with."""
    print(f"error: {error}", file=sys.stderr)
    if output := getattr(error, "output", ""):
        print("\n".join(f"    {line}" for line in output.splitlines()), file=sys.stderr)
    return error.exit_status


def _plainly(error: UnicodeError) -> tuple[str, int]:
    """What can be printed instead of characters that an encoding lacks."""
    lacking = error.object[error.start : error.end]
    return "".join(PLAIN.get(each, "?") for each in lacking), error.end
