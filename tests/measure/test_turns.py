"""Processes that measure on GPUs of their own: beside each other where the GPU sets the pace."""

import multiprocessing
import sys
import threading

import pytest

from anatomy.measure import turns

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="takes turns by POSIX locks")
PATIENCE_S = 60


def hold(alone: bool, inside, leave) -> None:
    with turns.turn(alone=alone):
        inside.set()
        leave.wait(PATIENCE_S)


class Process:
    """Another process that waits for a turn, and keeps it until it is told."""

    def __init__(self, *, alone: bool) -> None:
        fork = multiprocessing.get_context("fork")
        self.inside, self.leave = fork.Event(), fork.Event()
        self.own = fork.Process(target=hold, args=(alone, self.inside, self.leave), daemon=True)
        self.own.start()


@pytest.fixture
def begun(tmp_path, monkeypatch):
    monkeypatch.setenv("ANATOMY_TURNS", str(tmp_path))
    processes = []

    def begin(*, alone):
        processes.append(Process(alone=alone))
        return processes[-1]

    yield begin
    for each in processes:
        each.leave.set()
        each.own.join(PATIENCE_S)


def test_what_the_gpu_paces_runs_side_by_side(begun):
    first, second = begun(alone=False), begun(alone=False)
    assert first.inside.wait(PATIENCE_S) and second.inside.wait(PATIENCE_S)


@pytest.mark.parametrize(("holds", "comes"), [(True, False), (False, True), (True, True)])
def test_what_the_host_paces_runs_alone(begun, holds, comes):
    first = begun(alone=holds)
    assert first.inside.wait(PATIENCE_S)
    second = begun(alone=comes)
    assert not second.inside.wait(0.3)
    first.leave.set()
    assert second.inside.wait(PATIENCE_S)


def test_who_waits_to_be_alone_is_not_kept_out_by_others_that_share(begun):
    shares = begun(alone=False)
    assert shares.inside.wait(PATIENCE_S)
    alone = begun(alone=True)
    assert not alone.inside.wait(0.3)
    late = begun(alone=False)
    assert not late.inside.wait(0.3)
    shares.leave.set()
    assert alone.inside.wait(PATIENCE_S) and not late.inside.is_set()


def test_a_process_that_dies_keeps_nobody_waiting(begun):
    first = begun(alone=True)
    assert first.inside.wait(PATIENCE_S)
    first.own.kill()
    assert begun(alone=True).inside.wait(PATIENCE_S)


def test_alone_on_its_machine_nobody_waits(monkeypatch):
    monkeypatch.delenv("ANATOMY_TURNS", raising=False)
    with turns.turn(alone=True):
        other = threading.Thread(target=lambda: turns.turn(alone=True).__enter__(), daemon=True)
        other.start()
        other.join(PATIENCE_S)
        assert not other.is_alive()
