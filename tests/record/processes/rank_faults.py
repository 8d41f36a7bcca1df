"""What a rank may do wrong, for tests: each rank calls one of these."""

import os
import signal
import time

import torch

from anatomy.parts import ranks
from anatomy.record.processes.ranks import NO_MULTICAST


def _rank(act, patience_s=2.0):
    with ranks.joined("cpu", patience_s) as group:
        if group.rank == 1:
            act()
        group.barrier("the next step")
        return group.gathered([group.rank, *(os.environ[name] for name in NO_MULTICAST)])


def none(device):
    return _rank(lambda: None)


def raises(device):
    return _rank(lambda: 1 / 0)


def killed(device):
    return _rank(lambda: os.kill(os.getpid(), signal.SIGKILL), 60)


def hangs(device):
    return _rank(lambda: time.sleep(600))


def hangs_long(device):
    return _rank(lambda: time.sleep(600), 60)


def outgrows(device):
    return _rank(lambda: torch.empty(2**58))


def shapes(device):
    with ranks.joined(device, 10) as group:
        group.agree("the shape of x", [4, 4 + group.rank])
