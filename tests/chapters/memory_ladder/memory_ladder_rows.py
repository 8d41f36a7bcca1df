"""Made-up recordings of the memory ladder, whose levels and edges the tests know."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from anatomy.chapters.memory_ladder import requirements
from anatomy.chapters.memory_ladder.bandwidth import with_levels
from anatomy.table import units
from tests.fakes import synthetic

CACHE = 2**26  # of the toy machine's L2, of which all SMs together use half
# Bytes per second, and seconds of a load, of sets up to so many bytes.
RATES = {2**18: 30e12, CACHE // 2: 7e12, 2**40: 4e12}
LATENCIES = {2**18: 20e-9, CACHE // 2: 150e-9, 2**40: 600e-9}
LAUNCH_S, MOVED, LOADS = 4e-6, 2**33, 2**14
HELD = {"registers": 2**20, "shared memory": 900 * 2**10, "L1 and shared memory": 2**20}


def on_level(levels: dict[int, float], size: int) -> float:
    """What the first level that holds so many bytes has."""
    return next(value for most, value in levels.items() if size <= most)


def levels_of(curves: Sequence[str]) -> list[dict]:
    """The rows in which the levels of each curve are told."""
    return with_levels(pd.DataFrame(), curves).to_dict("records")


@synthetic.makes("memory_ladder.bandwidth")
def bandwidth(root: Path, levels: dict[int, float] = RATES, **params: Any) -> Path:
    """A recording in which each curve goes by the same levels; one pass pays for its launch."""
    rows = []
    for seed, op in enumerate(requirements.OPS):
        seconds, own = {}, {}
        for size in requirements.sets(op, CACHE):
            name = units.byte_count(size)
            moved = size if op in ("read once", "torch.sum") else MOVED
            seconds[name] = LAUNCH_S + moved / on_level(levels, size)
            own[name] = {"working_set_bytes": size, "bytes": moved}
        rows += synthetic.timed(op, "gpu_warm", seconds, own, limit="read", seed=seed)
    rows += levels_of(requirements.OPS)
    return synthetic.record(root, "memory_ladder.bandwidth", rows, **params)


@synthetic.makes("memory_ladder.latency")
def latency(root: Path, levels: dict[int, float] | None = None, **params: Any) -> Path:
    """A recording of the chase, by levels: of the card, or those given."""
    rows = []
    for size in requirements.chased(CACHE):
        name, took = units.byte_count(size), LOADS * on_level(levels or LATENCIES, size)
        more = {"working_set_bytes": size, "way": "one thread"}
        more |= {"loads": LOADS, "cycles_per_load": 40.0, "seed": size % 97}
        rows += synthetic.timed(f"chase {name}", "gpu_warm", {name: took}, **more)
    rows += levels_of(["chase"])
    return synthetic.record(root, "memory_ladder.latency", rows, **params)


@synthetic.makes("memory_ladder.levels")
def levels(root: Path, **params: Any) -> Path:
    """What the toy machine holds."""
    rows = [
        {"variant": n, "sm_bytes": h, "gpu_bytes": 4 * h, "peak_rate": 3e12}
        for n, h in HELD.items()
    ]
    rows += [{"variant": "L2", "gpu_bytes": CACHE}, {"variant": "HBM", "gpu_bytes": 2**33}]
    return synthetic.record(root, "memory_ladder.levels", rows, **params)
