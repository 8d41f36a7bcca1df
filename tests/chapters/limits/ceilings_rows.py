"""Made-up recordings of a machine's limits: a cache, a memory and launches that the tests know."""

from pathlib import Path
from typing import Any

import numpy as np

from anatomy.table import formulas
from tests.fakes import synthetic

# Best rates, bytes per second, within the cache and beyond it; and seconds that a call costs
# before it moves anything.
RATES = {"copy": (6e12, 4.0e12), "read": (7e12, 4.2e12), "write": (5e12, 3.8e12)}
LAUNCH_S = 2e-6
CACHE = 2**26
SIZES = [2**power for power in range(16, 30)]
SIZES += [CACHE // 4 + CACHE // 8, CACHE // 2 + CACHE // 4, CACHE + CACHE // 4]
FP8_FLOPS_PER_S = 1400e12
# Costs in seconds: fixed part of a replay, and each kernel in it, by quantity.
GRAPH = {"host_enqueue": (5e-6, 1e-9), "step_wall": (8e-6, 9e-7), "gpu_warm": (3e-6, 9e-7)}
IDLE = ("record event", "nothing")
FLOORS = {
    "launch": {
        "add": 3e-6,
        "add, new result": 3.6e-6,
        "empty kernel": 1.8e-6,
        "record event": 7e-7,
        "nothing": 6e-8,
    },
    "wait": {"synchronize": 3e-6, "add, synchronize": 1.1e-5, "item": 1.4e-5, "cpu": 1.6e-5},
}


@synthetic.makes("limits.ceilings")
def ceilings(root: Path, **params: Any) -> Path:
    """A recording of `limits.ceilings`: what the toy machine can do at most."""
    rows = []
    for name, (_, memory) in RATES.items():
        rows += synthetic.compared(
            name, "gpu_warm", 2**31 / memory, {}, control="1024 MiB, a way", bytes=2**31, limit=name
        )[:1]
    for dtype, peak in (synthetic.FLOPS_PER_S | {"fp8": FP8_FLOPS_PER_S}).items():
        limit = f"matmul {dtype}"
        for side, reached in ((4096, 0.9), (8192, 1.0)):
            work, name = formulas.matmul_flops(side, side, side), f"{side} x {side} x {side}"
            base_s = work / (reached * peak)
            rows += synthetic.compared(
                limit, "gpu_warm", base_s, {}, control=name, flops=work, limit=limit
            )[:1]
    return synthetic.record(root, "limits.ceilings", rows, **params)


@synthetic.makes("limits.bandwidth")
def bandwidth(root: Path, **params: Any) -> Path:
    """A recording of `limits.bandwidth`: the share of a set that is beyond the cache is slow."""
    rows = []
    for seed, (op, (cached, memory)) in enumerate(RATES.items()):
        times = {}
        for size in sorted(SIZES):
            missing = float(np.clip(np.log2(size / CACHE) + 0.5, 0, 1))
            seconds = LAUNCH_S + size * ((1 - missing) / cached + missing / memory)
            for way, slower in (("a way", 1.0), ("another way", 1.1)):
                times[f"{size / 2**20:g} MiB, {way}"] = (size, way, slower * seconds)
        first, *others = times
        base = times[first][2]
        table = synthetic.compared(
            op, "gpu_warm", base, {name: times[name][2] / base for name in others},
            control=first, limit=op, cache_bytes=CACHE, seed=seed,
        )  # fmt: skip
        for row in table:
            size, way, _ = times[row["variant"].removesuffix(" (again)")]
            row |= {"bytes": size, "working_set_bytes": size, "way": way}
        rows += table
    return synthetic.record(root, "limits.bandwidth", rows, **params)


@synthetic.makes("limits.floors")
def floors(root: Path, **params: Any) -> Path:
    """A recording of `limits.floors`: every graph costs its fixed part and its kernels."""
    rows = []
    for op, costs in FLOORS.items():
        for quantity in GRAPH if op == "launch" else ("host_enqueue",):
            first, *others = costs
            others = [n for n in others if quantity != "gpu_warm" or n not in IDLE]
            slower = {name: costs[name] / costs[first] for name in others}
            rows += synthetic.compared(op, quantity, costs[first], slower, control=first)
    for quantity, (fixed, each) in GRAPH.items():
        costs = {length: fixed + length * each for length in (1, 10, 100, 1000)}
        slower = {f"graph of {n}": cost / costs[1] for n, cost in costs.items() if n > 1}
        table = synthetic.compared("graph", quantity, costs[1], slower, control="graph of 1")
        for row in table:
            row["kernel_count"] = int(row["variant"].removesuffix(" (again)").split()[-1])
        rows += table
    return synthetic.record(root, "limits.floors", rows, **params)


@synthetic.makes("limits.sustained")
def sustained(root: Path, **params: Any) -> Path:
    """A recording of `limits.sustained`: a card that gets slower in its first second."""
    told = {"op": "matmul fp16 8192 x 8192 x 8192", "role": "variant", "quantity": "gpu_warm"}
    told |= {"device": "cuda", "flops": formulas.matmul_flops(8192, 8192, 8192)}
    told |= {"limit": "matmul fp16", "samples": 1}
    took = {0.0: 1.3e-3, 0.1: 1.35e-3, 1.0: 1.5e-3, 3.0: 1.5e-3}
    rows = [
        told
        | {"variant": "in a row" if after_s else "after a rest", "after_s": after_s}
        | {"median_s": seconds, "blocks_s": [seconds]}
        for after_s, seconds in took.items()
    ]
    return synthetic.record(root, "limits.sustained", rows, **params)
