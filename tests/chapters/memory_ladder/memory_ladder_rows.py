"""Made-up recordings of the memory ladder, whose levels and edges the tests know."""

from pathlib import Path
from typing import Any

from anatomy.chapters.memory_ladder import requirements
from anatomy.chapters.memory_ladder.bandwidth import MOST_LEVELS
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


def with_levels(rows: list[dict], curves: Any) -> list[dict]:
    """The rows, and those that the levels of each curve are told in."""
    told = {"role": "variant", "note": "fitted to the rows of its curve"}
    names = [f"level {number}" for number in range(1, MOST_LEVELS + 1)]
    return rows + [{"op": f"{c}, levels", "variant": n} | told for c in curves for n in names]


@synthetic.makes("memory_ladder.bandwidth")
def bandwidth(root: Path, levels: dict[int, float] = RATES, **params: Any) -> Path:
    """A recording in which each curve goes by the same levels; one pass pays for its launch."""
    rows = []
    for seed, op in enumerate(requirements.OPS):
        sizes = requirements.sets(op, CACHE)
        own = {
            units.byte_count(size): {
                "working_set_bytes": size,
                "bytes": size if op in ("read once", "torch.sum") else MOVED,
            }
            for size in sizes
        }
        times = {
            name: LAUNCH_S + each["bytes"] / on_level(levels, each["working_set_bytes"])
            for name, each in own.items()
        }
        rows += synthetic.timed(op, "gpu_warm", times, own, limit="read", seed=seed)
    return synthetic.record(
        root, "memory_ladder.bandwidth", with_levels(rows, requirements.OPS), **params
    )


@synthetic.makes("memory_ladder.latency")
def latency(root: Path, levels: dict[int, float] | None = None, **params: Any) -> Path:
    """A recording of the chase, by levels: of the card, or those given."""
    rows = []
    for size in requirements.chased(CACHE):
        name, took = units.byte_count(size), LOADS * on_level(levels or LATENCIES, size)
        more = {"working_set_bytes": size, "way": "one thread"}
        more |= {"loads": LOADS, "cycles_per_load": 40.0, "seed": size % 97}
        rows += synthetic.timed(f"chase {name}", "gpu_warm", {name: took}, **more)
    return synthetic.record(root, "memory_ladder.latency", with_levels(rows, ["chase"]), **params)


@synthetic.makes("memory_ladder.levels")
def levels(root: Path, **params: Any) -> Path:
    """What the toy machine holds."""
    rows = [
        {"variant": n, "sm_bytes": h, "gpu_bytes": 4 * h, "peak_rate": 3e12}
        for n, h in HELD.items()
    ]
    rows += [{"variant": "L2", "gpu_bytes": CACHE}, {"variant": "HBM", "gpu_bytes": 2**33}]
    return synthetic.record(root, "memory_ladder.levels", rows, **params)
