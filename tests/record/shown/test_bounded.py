"""What a page's code may take: how long it is given, and that nothing of the bound is left over."""

import contextlib
import faulthandler
import os
import signal
import threading

import pytest

from anatomy.record import bounded
from anatomy.record.bounded import PageStopped
from anatomy.table.errors import BadParameter


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.delenv("ANATOMY_BLOCK_SECONDS", raising=False)


@pytest.fixture
def calls(monkeypatch):
    """What is asked of the system, and not done."""
    calls = []

    def note(name):
        return lambda *given, **named: calls.append((name, *given, *named.values()))

    monkeypatch.setattr(signal, "setitimer", note("timer"))
    monkeypatch.setattr(faulthandler, "dump_traceback_later", note("end"))
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", note("no end"))
    return calls


def test_a_block_has_two_minutes_or_what_the_environment_says(monkeypatch):
    assert bounded.limit_s() == 120
    for given in ("0.001", "999999"):
        monkeypatch.setenv("ANATOMY_BLOCK_SECONDS", given)
        assert bounded.limit_s() == float(given)
    for given in ("1e6", "0", "two"):
        monkeypatch.setenv("ANATOMY_BLOCK_SECONDS", given)
        with pytest.raises(BadParameter, match=f"ANATOMY_BLOCK_SECONDS='{given}' must be"):
            bounded.limit_s()


def test_the_clock_is_looked_at_each_second_and_the_process_ends_ten_after_its_time(calls):
    with bounded.bounded():
        pass
    timer = "timer", signal.ITIMER_REAL
    assert calls == [(*timer, 1, 1), ("end", 130, True, 2), (*timer, 0), ("no end",)]


def test_a_shorter_time_is_kept_to_and_another_process_may_do_the_ending(calls, monkeypatch):
    monkeypatch.setenv("ANATOMY_BLOCK_SECONDS", "0.25")
    monkeypatch.setattr(bounded, "watched", True)
    with bounded.bounded():
        pass
    assert calls[0] == ("timer", signal.ITIMER_REAL, 0.25, 1)
    assert "end" not in {name for name, *_ in calls}


def test_nothing_is_left_of_a_bound(monkeypatch):
    leave, alarm = os._exit, signal.getsignal(signal.SIGALRM)
    with pytest.raises(PageStopped, match=r"^it called os\._exit\(3\)"), bounded.bounded():
        assert signal.getsignal(signal.SIGALRM) is not alarm
        os._exit(3)
    assert os._exit is leave and signal.getsignal(signal.SIGALRM) is alarm
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_an_alarm_before_the_time_stops_nothing():
    with bounded.bounded():
        os.kill(os.getpid(), signal.SIGALRM)


def test_a_child_of_a_block_may_leave():
    leave = os._exit
    with bounded.bounded():
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                os._exit(7)
            leave(1)  # or the child would go on with the tests
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_outside_of_the_main_thread_nothing_is_bounded(calls):
    done = []

    def work():
        with bounded.bounded():
            done.append(os._exit)

    before = os._exit
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [before] and calls == []
