"""What a rank may do wrong, for tests: each rank calls one of these. What needs no torch loads
none, which would take most of a test's time."""

import os
import signal
import time
from dataclasses import replace


def _rank(act, patience_s=60.0):
    from anatomy.parts import ranks

    with ranks.joined("cpu", 60) as group:
        if group.rank == 1:
            act()
        replace(group, patience_s=patience_s).barrier("the next step")
        return group.gathered(group.rank)


def _alone(act):
    if os.environ["RANK"] == "1":
        act()
    time.sleep(600)


def raises(device):
    _alone(lambda: 1 / 0)


def outgrows(device):
    _alone(lambda: bytearray(2**60))


def hangs_long(device):
    _alone(lambda: None)


def killed(device):
    return _rank(lambda: os.kill(os.getpid(), signal.SIGKILL))


def hangs(device):
    return _rank(lambda: time.sleep(600), 0.5)


def disagrees(device):
    from anatomy.parts import ranks
    from anatomy.record.processes.ranks import NO_MULTICAST

    assert {name: os.environ[name] for name in NO_MULTICAST} == NO_MULTICAST
    with ranks.joined(device, 60) as group:
        group.agree("the shape of x", [4, 4 + group.rank])
