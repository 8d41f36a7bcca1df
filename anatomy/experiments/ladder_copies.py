"""Copies of the rungs' scripts that share nothing, and what they hand to the compiler.

Compiled code is kept with the function that it was compiled from. Two ways of one script would
find each other's, and the second would seem to compile in no time.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch import nn

from anatomy.experiments import ladder_rungs

WHY_NO_GRAPHS = "CUDA graphs need a GPU"


def own_copy(rung: str, where: torch.device) -> ModuleType:
    """A rung's script, executed anew for this device.

    Args:
        rung: The script's name without its ending.
        where: The device, which the script would choose by itself when it runs alone.

    Raises:
        AnatomyError: It can't be run here, such as for want of Transformer Engine.
    """
    script = ladder_rungs.load.__wrapped__(rung)
    script.DEVICE = where.type
    return script


def build(script: ModuleType, width: int, layers: int, where: torch.device) -> nn.Module:
    """A rung's model, its weights drawn on the device: a CPU takes seconds for large ones.

    A rung that is built in this way has the weights of all others that are.
    """
    with where:
        return script.build(width, layers, where)


def without(way: ladder_rungs.Way, where: torch.device) -> str | None:
    """Why a way can't run on this device, or None where it can."""
    if where.type != "cuda" and way.label in ladder_rungs.GRAPHS:
        return WHY_NO_GRAPHS
    return ladder_rungs.without(way, where)


@contextmanager
def compiling_with(backend: str) -> Iterator[None]:
    """Everything that is handed to torch.compile inside is compiled by this backend.

    Args:
        backend: inductor leaves torch.compile as it is; another knows no modes.
    """
    if backend == "inductor":
        yield
        return
    plain = torch.compile

    def other(model: Callable | None = None, *, mode: str | None = None, **options: Any):
        return plain(model, **options | {"backend": backend})

    torch.compile = other
    try:
        yield
    finally:
        torch.compile = plain


def handed_over(make: Callable[[], object]) -> list[Callable]:
    """What `make` hands to torch.compile, as plain functions; nothing is compiled."""
    found: list[Callable] = []
    plain = torch.compile

    def note(model: Callable | None = None, **options: Any):
        if model is None:  # used as a decorator with options
            return lambda function: note(function, **options)
        found.append(model)
        return model

    torch.compile = note
    try:
        make()
    finally:
        torch.compile = plain
    return found
