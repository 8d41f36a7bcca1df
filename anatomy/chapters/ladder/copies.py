"""Copies of the rungs' scripts that share nothing, and where comparisons of them run. Compiled code
is kept with its function: the second of two ways of one script would seem to compile in no time."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

from anatomy.chapters.ladder import gates, requirements, rungs
from anatomy.numerics import formats
from anatomy.parts import demands, memory
from anatomy.parts.compiled import without_caches
from anatomy.parts.grid import reason_of
from anatomy.table.errors import AnatomyError

WHY_NO_GRAPHS = "CUDA graphs need a GPU"


@contextmanager
def apart(where: torch.device) -> Iterator[None]:
    """Random numbers of its own, no TF32, nothing compiled before; then all is as it was, and the
    compiled code and memory of the device are given back."""
    with (
        torch.random.fork_rng(devices=[where] if where.type == "cuda" else []),
        formats.products_in("fp32"),
        without_caches(),
    ):
        torch.compiler.reset()
        switches = gates.switches()
        try:
            yield
        finally:
            memory.give_back(where)
            gates.left_set(switches)


def require_width(width: int) -> None:
    """Raise BadParameter for a width of more than one head that is no whole number of them."""
    if width > requirements.HEAD:
        demands.multiple(requirements.HEAD, width=width)


def own_copy(rung: str, where: torch.device) -> ModuleType:
    """A rung's script, executed anew for a device; errors as `rungs.load`."""
    script = rungs.load.__wrapped__(rung)  # the plain one keeps a script for all who ask
    script.DEVICE = where.type
    return script


def require_possible(way: rungs.Way, where: torch.device) -> None:
    """Raise AnatomyError with the reason where a way can't run on this device."""
    if way.graph and where.type != "cuda":
        raise AnatomyError(WHY_NO_GRAPHS)
    if reason := rungs.without(way, where):
        raise AnatomyError(reason)


def set_up(way: rungs.Way, make: Callable, calls: int, watch: Any) -> tuple[Callable, float]:
    """What `make` makes, called so many times, and the seconds of both: some compile when made.
    AnatomyError: torch.compile left CUDA graphs out, or a switch of the process moved."""
    made: list[Callable] = []
    switches, skipped = gates.switches(), gates.skipped_graphs()

    def first() -> None:
        made.append(make())
        for _ in range(calls):
            made[0]()

    seconds = watch.wall([first])
    if moved := gates.left_set(switches):
        raise AnatomyError(moved)
    if way.graph and gates.skipped_graphs() > skipped:
        raise AnatomyError("void: torch.compile left CUDA graphs out; its log says why")
    return made[0], seconds


def free_graphs(calls: Iterable[Callable]) -> None:
    """Give back the memory of calls that are replayed, whoever still names them. torch.compile's
    own graphs go with its code."""
    for call in calls:
        if graph := getattr(call, "graph", None):
            graph.reset()


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


def no_comparison(control: rungs.Way, error: Exception) -> AnatomyError:
    """What is raised where the way that all others are compared with can't be timed."""
    return AnatomyError(f"{control.label}, which all others are compared with: {why(error)}")


def why(error: Exception) -> str:
    """An error as the note of a row; of ours without its kind, for it is a sentence by itself."""
    told = reason_of(error)
    return told.partition(": ")[2] if isinstance(error, AnatomyError) else told
