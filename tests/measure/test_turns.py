"""Processes that measure on GPUs of their own: beside each other where the GPU sets the pace."""

import select
import subprocess
import sys
import threading

import pytest

from anatomy.measure import turns

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="takes turns by POSIX locks")
PATIENCE_S = 60


HOLD = """
import runpy, sys
turn = runpy.run_path(sys.argv[1])["turn"]
print("asks", flush=True)
with turn(alone=sys.argv[2] == "True"):
    print("inside", flush=True)
    sys.stdin.read()
"""


class Process:
    """Another process that waits for a turn, and keeps it until it is told."""

    def __init__(self, *, alone: bool) -> None:
        command = [sys.executable, "-c", HOLD, turns.__file__, str(alone)]
        ends = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.own = subprocess.Popen(command, bufsize=0, **ends)
        assert self.own.stdout.readline() == b"asks\n"

    def inside(self, within_s: float = PATIENCE_S) -> bool:
        """Whether it has its turn in time."""
        return bool(select.select([self.own.stdout], [], [], within_s)[0])

    def leave(self) -> None:
        self.own.stdin.close()


@pytest.fixture
def begun(tmp_path, monkeypatch):
    monkeypatch.setenv("ANATOMY_TURNS", str(tmp_path))
    processes = []

    def begin(*, alone):
        processes.append(Process(alone=alone))
        return processes[-1]

    yield begin
    for each in processes:
        each.own.kill()
        for end in (each.own.stdin, each.own.stdout):
            end.close()
        each.own.wait()


def test_what_the_gpu_paces_runs_side_by_side(begun):
    first, second = begun(alone=False), begun(alone=False)
    assert first.inside() and second.inside()


@pytest.mark.parametrize(("holds", "comes"), [(True, False), (False, True), (True, True)])
def test_what_the_host_paces_runs_alone(begun, holds, comes):
    first = begun(alone=holds)
    assert first.inside()
    second = begun(alone=comes)
    assert not second.inside(0.3)
    first.leave()
    assert second.inside()


def test_who_waits_to_be_alone_is_not_kept_out_by_others_that_share(begun):
    shares = begun(alone=False)
    assert shares.inside()
    alone = begun(alone=True)
    assert not alone.inside(0.3)
    late = begun(alone=False)
    assert not late.inside(0.3)
    shares.leave()
    assert alone.inside() and not late.inside(0.0)


def test_a_process_that_dies_keeps_nobody_waiting(begun):
    first = begun(alone=True)
    assert first.inside()
    first.own.kill()
    assert begun(alone=True).inside()


def test_alone_on_its_machine_nobody_waits(monkeypatch):
    monkeypatch.delenv("ANATOMY_TURNS", raising=False)
    with turns.turn(alone=True):
        other = threading.Thread(target=lambda: turns.turn(alone=True).__enter__(), daemon=True)
        other.start()
        other.join(PATIENCE_S)
        assert not other.is_alive()
