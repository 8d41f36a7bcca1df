"""What ranks on GPUs do, and do wrong, for tests: each rank calls one of these."""

import os
import signal
import time

import torch
from torch import distributed

from anatomy.parts import ranks


def devices(device):
    """Where each rank is, and the sum of ones over all."""
    with ranks.joined(device, 60) as group:
        ones = torch.ones(4, device=group.where)
        distributed.all_reduce(ones)
        return group.gathered([group.where.index, ones.tolist()])


def _while_the_other_waits(act, patience_s):
    with ranks.joined("cuda:0", patience_s) as group:
        ones = torch.ones(4, device=group.where)
        distributed.all_reduce(ones)  # both have a communicator now
        torch.cuda.synchronize()
        if group.rank == 1:
            act()
        distributed.all_reduce(ones)
        torch.cuda.synchronize()


def killed(device):
    _while_the_other_waits(lambda: os.kill(os.getpid(), signal.SIGKILL), 60)


def hangs(device):
    _while_the_other_waits(lambda: time.sleep(600), 10)


def outgrows(device):
    _while_the_other_waits(lambda: torch.empty(2**50, device="cuda"), 60)
