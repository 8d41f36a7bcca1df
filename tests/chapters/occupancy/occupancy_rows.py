"""Made-up recordings of a GPU with four SMs: blocks run in waves, and a load takes its time."""

from pathlib import Path
from typing import Any

from tests.fakes import synthetic

SMS, WAVE_S, LAUNCH_S = 4, 45e-6, 2e-6
WAIT_S, BYTES_PER_S = 700e-9, 1e11
BYTES, THREADS, MOST = 2**24, 256, 8


def counts(at_once: int) -> range:
    return range(1, 4 * at_once + 1)


def seconds(blocks: int, at_once: int = SMS) -> float:
    return LAUNCH_S + WAVE_S * -(-blocks // at_once)


def name(blocks: int) -> str:
    return f"{blocks} block{'s' if blocks > 1 else ''}"


@synthetic.makes("occupancy.staircase")
def staircase(root: Path, at_once: int = SMS, **params: Any) -> Path:
    """A recording of `occupancy.staircase`: by default one block has a place on each SM, and two
    where they ask for no shared memory."""
    rows = []
    for op, places in {"one block an SM": at_once, "as many as fit": 2 * at_once}.items():
        took = {name(n): seconds(n, places) for n in counts(at_once)}
        own = {name(n): {"grid_blocks": n} for n in counts(at_once)}
        held = at_once // SMS if op == "one block an SM" else 8
        rows += synthetic.timed(op, "gpu_warm", took, own, blocks_per_sm=held)
    return synthetic.record(root, "occupancy.staircase", rows, **params)


@synthetic.makes("occupancy.throughput")
def throughput(root: Path, **params: Any) -> Path:
    """A recording of `occupancy.throughput`: loads in flight set the rate, up to the memory's."""
    took, own = {}, {}
    for loads in (1, 4, 16):
        for held in range(MOST, 0, -1):
            in_flight = held * THREADS // 32 * loads
            rate = min(BYTES_PER_S, SMS * 128 * in_flight / WAIT_S)
            said = f"{loads} load{'s' if loads > 1 else ''} at a time"
            variant = f"{said}, {held} blocks per SM"
            took[variant] = BYTES / rate
            own[variant] = {"loads_each": said, "blocks_per_sm": held, "occupancy": held / MOST}
            own[variant]["loads_in_flight"] = in_flight
    rows = synthetic.timed("read", "gpu_warm", took, own, bytes=BYTES, limit="read")
    return synthetic.record(root, "occupancy.throughput", rows, **params)
