"""A worker process: started fresh, given a time limit, and ended with everything it started. What
it prints, or that it hangs, crashes or is killed, becomes one sentence here."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from anatomy.record.processes.nursery import Nursery
from anatomy.table import errors
from anatomy.table.errors import AnatomyError, Busy, MeasurementError, OutOfMemory

# How often to look whether a worker has ended. Rare enough to cost a measurement nothing.
LOOK_S = 0.05
WORKER = "anatomy.record.processes.worker"
TAIL_LINES = 15  # lines of a crashed worker's output that are kept to show

POSIX = os.name == "posix"
LOCKS = "/tmp" if POSIX else tempfile.gettempdir()  # where all processes of a machine meet
# Names of temporary folders, and of the file in them that their process has locked.
PREFIX, HELD = "anatomy-", "held"
BEGUN_S = 60  # a folder of that age has been locked by whoever made it
# Begins a process in a group beside a shell that waits at a pipe of which this process alone holds
# the other end. However this process ends, the pipe closes then, and the shell kills the group. It
# is nobody's child, so that a script may wait for all of its own. $0 becomes standard input.
LEASHED = 'exec 3<&0; ( (read -r _; kill -9 0) <&3 & ); exec 3<&-; exec "$@" <"$0"'


_running: list[Any] = []  # processes that a call waits for
_ending = threading.Event()  # whoever waits for one is to leave


class TimeLimit(MeasurementError):
    """A worker took longer than it was given."""


def ask(
    spec: Mapping[str, Any],
    *,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    warm: Nursery | None = None,
) -> dict[str, Any]:
    """Start the worker, give it a task for `worker.measure`, and return what it wrote. It is forked
    off the nursery `warm` where there is one, else it begins from nothing. After `timeout_s`
    seconds it is killed with all its children; `environment` adds to that of this process. Raises
    what the experiment refused, by the same name; OutOfMemory also where it was killed for its
    memory; and MeasurementError where it took too long, crashed, or failed in a way it did not
    foresee. The error's `output` is the end of what it printed."""
    with temporary_folder() as folder:
        result = Path(folder) / "result.json"
        process = "forked before it touched a GPU" if warm else "fresh"
        task = {**spec, "result": str(result), "spawned": time.time(), "process": process}
        given = Path(folder) / "task.json"
        given.write_text(json.dumps(task), encoding="utf-8")
        status, output = _run(_worker(given, environment or {}, warm), timeout_s)
        if status != 0 or not result.is_file():
            raise _with_output(_crash(status), output)
        outcome = json.loads(result.read_text(encoding="utf-8"))
    if "error" in outcome:
        raise _with_output(revive(outcome["error"], outcome["message"]), outcome["trace"])
    return outcome


def _worker(task: Path, environment: Mapping[str, str], warm: Nursery | None) -> Any:
    if warm:
        return warm.fork(WORKER, task, environment)
    # A file called torch.py in the current folder must not be imported, hence -P.
    return _Launched(["-P", "-m", WORKER], environment, task)


@contextlib.contextmanager
def script_run(
    command: Sequence[str],
    *,
    name: str,
    variable: str,
    timeout_s: float | None = None,
    heard: Callable[[str], None] | None = None,
) -> Iterator[Path]:
    """Run a reader's script, a file and its arguments, in a fresh process; give the file that
    `variable` names in its environment, if it wrote one. Errors call it `name`; `heard` gets each
    line that it prints, in another thread. A status other than 0 is a MeasurementError too."""
    with temporary_folder() as folder:
        file = Path(folder) / "found"
        own = {"PYTHONUNBUFFERED": "1", variable: str(file)}
        try:
            status, output = _run(_Launched(command, own), timeout_s, heard)
            if status:
                left = MeasurementError(f"It left with status {status}.")
                raise _with_output(left if status > 0 else _crash(status), output)
        except MeasurementError as error:
            error.args = (f"{name} failed. {error}",)
            raise
        yield file


class _Launched:
    """Python with a command, and a file as its standard input, in a process that dies with ours."""

    def __init__(self, command, environment, task=os.devnull, keep=(), printed=subprocess.PIPE):
        checkout = str(Path(__file__).resolve().parents[3])
        path = os.pathsep.join(filter(None, (checkout, os.environ.get("PYTHONPATH"))))
        words = [sys.executable, *command]
        self._held = None
        if POSIX:
            words = ["/bin/sh", "-c", LEASHED, str(task), *words]
            end, self._held = os.pipe()  # children inherit neither
        else:
            end = os.open(task, os.O_RDONLY)
        try:
            # A session of its own makes the process and its children one group, which can be killed
            # as one, and keeps a Ctrl-C meant for this process from reaching them half-way.
            self._process = subprocess.Popen(
                words,
                stdin=end,
                stdout=printed,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": path, **environment},
                start_new_session=POSIX,
                pass_fds=keep,
            )
        finally:
            os.close(end)
        self.stdout = self._process.stdout

    @property
    def returncode(self) -> int:
        return self._process.returncode

    def ended(self, deadline: float) -> bool:
        """Wait until it ends, without reaping it: its number must stay taken until `close`. False
        where the deadline came first."""
        while time.monotonic() < deadline:
            if self.has_ended:
                return True
            time.sleep(LOOK_S)
        return False

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by now."""
        if not POSIX:
            return self._process.poll() is not None
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def kill(self) -> None:
        """Kill it with all it started. What is left of a finished one goes too."""
        pid = self._process.pid
        if POSIX:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        elif self._process.poll() is None:
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(pid)], capture_output=True)

    def close(self) -> None:
        """Kill it and let its number go."""
        self.kill()
        self._process.wait()
        if self._held is not None:
            os.close(self._held)


def _run(process, timeout_s, heard=None) -> tuple[int, str]:
    """Wait for a process that was just started; return its status and the end of what it printed.
    Neither it nor what it started outlives this call, or this process."""
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    given = (process.stdout, tail, heard)
    reader = threading.Thread(target=_keep_tail, args=given, daemon=True)
    reader.start()
    deadline = inf if timeout_s is None else time.monotonic() + timeout_s
    _running.append(process)
    try:
        in_time = not _ending.is_set() and process.ended(deadline)
    finally:
        _running.remove(process)
        process.close()
    if _ending.is_set():
        raise KeyboardInterrupt
    reader.join(timeout=1)
    output = "\n".join(tail)
    if in_time:
        return process.returncode, output
    late = TimeLimit(f"It ran for {timeout_s:.0f} s, its time limit, and was ended.")
    raise _with_output(late, output)


def end_all() -> None:
    """End what runs for other threads; their calls raise KeyboardInterrupt, and none begins."""
    _ending.set()
    for process in list(_running):
        process.kill()


def nursery() -> Nursery:
    """Starts workers warm, where the system can."""

    def launch(command: Sequence[str], file: int) -> _Launched:
        return _Launched(["-P", *command], {}, keep=(file,), printed=subprocess.DEVNULL)

    return Nursery(launch)


def revive(name: str, message: str) -> AnatomyError:
    """The error that a worker met, by its name; one this process has no name for keeps its text."""
    kind = getattr(errors, name, MeasurementError)
    if kind is errors.UnknownName:  # it is made from what was looked for, and that stayed behind
        kind = errors.BadParameter
    return kind(message)


@contextlib.contextmanager
def only_recorder() -> Iterator[None]:
    """Hold the right to measure on this machine; Busy where another process of this user does.
    Which process does is written in one place of the machine, whatever TMPDIR says, unless
    ANATOMY_LOCKS names another folder."""
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    try:
        common = LOCKS if os.access(LOCKS, os.W_OK) else tempfile.gettempdir()
        folder = Path(os.environ.get("ANATOMY_LOCKS") or common) / f"pytorch-gpu-anatomy-{user}"
        holder = folder / "measuring.json"
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = FileLock(folder / "measuring.lock", timeout=0)
        lock.acquire()
    except Timeout:
        raise Busy(_holder_in_words(holder)) from None
    except OSError as error:
        raise _no_temporary(error) from None
    try:
        now = datetime.now().astimezone().strftime("%H:%M:%S")
        with contextlib.suppress(OSError):  # a full disk must not keep anybody from measuring
            holder.write_text(json.dumps({"pid": os.getpid(), "since": now}))
        yield
    finally:
        with contextlib.suppress(OSError):
            holder.unlink()
        lock.release()


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder that is removed in the end; where its process is killed, by the next that needs one.
    MeasurementError where none can be made."""
    with contextlib.ExitStack() as held:
        try:
            _remove_abandoned()
            folder = held.enter_context(tempfile.TemporaryDirectory(prefix=PREFIX))
            held.enter_context(FileLock(Path(folder) / HELD))
        except OSError as error:
            raise _no_temporary(error) from None
        yield folder


def _remove_abandoned() -> None:
    """Remove temporary folders that nobody holds: the system lets go of what was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # held, of another user, or just removed by another
            if (folder / HELD).is_file() and time.time() - folder.stat().st_mtime > BEGUN_S:
                with FileLock(folder / HELD, timeout=0):
                    shutil.rmtree(folder)


def _no_temporary(error: OSError) -> MeasurementError:
    return MeasurementError(
        f"The folder for temporary files can't be used: {error.strerror}. Make room or give write "
        "access there, or name another in the environment as TMPDIR."
    )


def _holder_in_words(holder: Path) -> str:
    try:
        held = json.loads(holder.read_text())
        who = f"Process {held['pid']} has been measuring on this machine since {held['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        who = "Another process is measuring on this machine"
    return f"{who}. Two at once would slow each other down: wait for it, or end it."


def _keep_tail(stream: Any, tail: deque[str], heard: Callable[[str], None] | None) -> None:
    with stream:
        for line in stream:
            text = line.decode(errors="replace").rstrip()
            tail.append(text[:500])
            if heard:
                heard(text)


def _crash(status: int) -> AnatomyError:
    if POSIX and status == -signal.SIGKILL:
        return OutOfMemory(
            "The system killed it, as it does when the host's memory runs out. Take smaller sizes, "
            "or free host memory."
        )
    if status >= 0:
        return MeasurementError(f"Its process ended with status {status} and left no result.")
    name = signal.Signals(-status).name
    return MeasurementError(f"It crashed ({name}), and its process with it.")


def _with_output(error: AnatomyError, output: str) -> AnatomyError:
    error.output = output
    return error
