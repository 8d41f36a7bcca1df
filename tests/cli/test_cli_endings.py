"""How a command ends that is not let go on: by a signal, a closed pipe, a full disk."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from anatomy import cli
from anatomy.record import recording
from tests.cli.test_cli import python
from tests.fakes.toy_recording import made
from tests.record.processes.test_isolation import CHECKOUT


@pytest.mark.parametrize("kind", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_in_the_first_second_is_one_line_and_a_status(kind):
    number = getattr(signal, kind)
    code = (
        "import builtins, os; from anatomy import cli\n"
        "load = builtins.__import__\n"
        "def loads(name, *rest):\n"
        f"    if name.startswith('typer'): os.kill(os.getpid(), {int(number)})\n"
        "    return load(name, *rest)\n"
        "builtins.__import__ = loads\n"
        "cli.main(['list'])\n"
    )
    status, out, err = python(code)
    assert status == 128 + number and out == "" and len(err.splitlines()) == 1
    assert err.endswith("Recordings that were finished are kept, and none is cut.\n")


@pytest.mark.parametrize("words", [["export"], ["--help"]])
def test_a_pipe_that_closes_early_is_quiet(words, tmp_path):
    for size in range(300):  # more than a pipe holds
        recording.save(made(params={"size": size}), tmp_path, defaults={"size": 4})
    environment = os.environ | {"ANATOMY_RECORDINGS": str(tmp_path)}
    environment.pop("PYTHONUNBUFFERED", None)  # under which Python itself never notices
    reader, writer = os.pipe()
    if words == ["--help"]:  # all of which a pipe would hold
        os.close(reader)
    command = subprocess.Popen(
        [sys.executable, "-m", "anatomy", *words],
        cwd=CHECKOUT,
        stdout=writer,
        stderr=subprocess.PIPE,
        env=environment,
    )
    os.close(writer)
    if words == ["export"]:
        assert os.read(reader, 20) == b"machine,experiment,p"
        os.close(reader)
    assert command.communicate(timeout=120)[1] == b""
    assert command.returncode == 0


@pytest.mark.parametrize("kind", ["SIGTERM", "SIGHUP"])
def test_a_command_leaves_signals_as_it_found_them(kind):
    number = getattr(signal, kind)
    before = signal.getsignal(number)
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert signal.getsignal(number) is before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_full_disk_behind_standard_output_is_one_sentence():
    with open("/dev/full", "w") as full:
        command = subprocess.run(
            [sys.executable, "-m", "anatomy", "list"],
            cwd=CHECKOUT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert command.returncode == 1 and "Traceback" not in command.stderr
    assert command.stderr.startswith("error: The result could not be printed: No space left")
    assert len(command.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("closed", "words", "status"), [(">&-", "list", 1), ("2>&-", "list", 0), ("2>&-", "lst", 2)]
)
def test_a_closed_stream_is_one_sentence_or_nothing(closed, words, status):
    command = subprocess.run(
        ["sh", "-c", f'exec "$0" -m anatomy {words} {closed}', sys.executable],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
    )
    assert command.returncode == status
    assert ("contiguity.bench" in command.stdout) == (status == 0)
    told = "error: Standard output is closed, so there is nowhere to print a result.\n"
    assert command.stderr == (told if closed == ">&-" else "")
