"""Several GPUs of one host, each measured on by a thread of the recorder with workers of its own.

What a GPU paces is measured side by side. Where the host sets the pace, two would slow each other
down, so that workers take turns there: `anatomy.measure.turns`, in a folder that all share. And
what one compiles would take cores from what another measures, so each has cores of its own.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path

from anatomy.machine import driver
from anatomy.record.processes import isolation
from anatomy.table.errors import DeviceError

Lane = Callable[[Mapping[str, str]], None]
CPUS = Path("/sys/devices/system/cpu")


def cards(gpus: int | None) -> list[driver.Card]:
    """The first `gpus` of those that are visible and of one model, or all. DeviceError where there
    are not as many."""
    visible = driver.visible_cards()
    alike = [card for card in visible if card.name == visible[0].name]
    if gpus is not None and gpus > len(alike):
        raise DeviceError(
            f"{gpus} GPUs of one model are asked for, and {len(alike)} are visible here."
        )
    return alike[:gpus]


def run(lane: Lane, given: Sequence[driver.Card]) -> None:
    """Call `lane` with what its workers need in their environment: once, or on several GPUs at the
    same time. Its first error ends all, and is raised."""
    if len(given) < 2:
        lane({})
        return
    shares = _cores(len(given))
    with isolation.temporary_folder() as turns, ThreadPoolExecutor(len(given)) as threads:

        def keep_to(cores: set[int], uuid: str) -> None:
            if cores:
                os.sched_setaffinity(0, cores)  # this thread's, and so that of all it starts
            lane({"CUDA_VISIBLE_DEVICES": f"GPU-{uuid}", "ANATOMY_TURNS": turns})

        begun = [
            threads.submit(keep_to, cores, card.uuid)
            for cores, card in zip(shares, given, strict=True)
        ]
        try:
            wait(begun, return_when=FIRST_EXCEPTION)
        finally:  # Ctrl-C, too
            if not all(each.done() for each in begun):
                isolation.end_all()
    errors = [error for each in begun if (error := each.exception())]
    for error in sorted(errors, key=lambda error: isinstance(error, KeyboardInterrupt)):
        raise error


def _cores(count: int) -> list[set[int]]:
    """The cores of this process in as many equal shares; empty ones where it can't be bound."""
    if not hasattr(os, "sched_getaffinity"):
        return [set()] * count
    every = sorted(os.sched_getaffinity(0), key=_place)
    each = len(every) // count
    return [set(every[at * each : (at + 1) * each]) for at in range(count)]


def _place(core: int) -> tuple[int, int, int]:
    """Where a core is, as Linux tells it: its socket, the physical core that it is a thread of, its
    number. Two threads of one physical core slow each other down, so they belong to one share."""
    try:
        told = [CPUS / f"cpu{core}/topology/{name}" for name in ("physical_package_id", "core_id")]
        socket, physical = (int(file.read_text()) for file in told)
    except (OSError, ValueError):
        socket, physical = 0, core
    return socket, physical, core
