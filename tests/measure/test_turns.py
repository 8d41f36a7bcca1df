"""Processes that measure on GPUs of their own: beside each other where the GPU sets the pace."""

import select
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from anatomy.comparison import compare
from anatomy.measure import turns
from tests.fakes.fake_stopwatch import Fake, FakeStopwatch

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


def test_what_a_turn_was_waited_for_is_known(begun):
    first = begun(alone=True)
    assert first.inside()
    before = turns.waited_s
    threading.Timer(0.3, first.leave).start()
    with turns.turn(alone=True):
        waited_s = turns.waited_s - before
        time.sleep(0.1)  # its own turn is not waited for
    assert 0.2 < waited_s == turns.waited_s - before < PATIENCE_S


def test_what_others_take_is_no_part_of_the_budget(monkeypatch):
    def blocks_taken(watch):
        fake = Fake(watch, 1e-3)
        how = {"budget_s": 0.3, "precision": 0.0, "settle_cap_s": 0.0, "profile": False}
        return len(compare({"a": fake}, watch=watch, **how).table.blocks_s[0])

    @contextmanager
    def turn(*, alone):
        watch.time_s += 1.0
        turns.waited_s += 1.0
        yield

    alone = blocks_taken(FakeStopwatch(noise=0.002))
    watch = FakeStopwatch(noise=0.002)
    monkeypatch.setattr(turns, "turn", turn)
    monkeypatch.setattr(turns, "waited_s", 0.0)
    assert blocks_taken(watch) == alone == turns.waited_s
    assert 24 < alone < 48, "the budget ended them"


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
