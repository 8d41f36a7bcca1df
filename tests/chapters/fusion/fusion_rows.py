"""Made-up recordings of fusion: a kernel costs its trips, and cosines their arithmetic as well."""

from pathlib import Path
from typing import Any

from anatomy.chapters.fusion.fusion import BF16, COMPILED, EAGER, TEMPLATE
from anatomy.chapters.fusion.patterns import COMBINED, PATTERNS
from anatomy.chapters.fusion.requirements import CHAINS, LENGTHS
from tests.fakes import synthetic

ONE_S = 5e-4  # of one operation of a chain: its trip
COSINE_S = 6e-5  # of the arithmetic of one cosine
MOST = {"multiplications": 0.0, "cosines": COSINE_S}
# Kernels of a pattern, eager and compiled.
KERNELS = {
    "x.cos().cos()": (2, 1),
    "x.sin(), x.cos()": (2, 1),
    "x.sin(), y.cos()": (2, 2),
    COMBINED: (2, 1),
    "x * row + column": (2, 1),
    "x[order].sin()": (2, 1),
    "(x * x).sum(-1)": (2, 1),
    "softmax by hand": (5, 1),
    "x / x.sum(-1)": (2, 1),
    "x / x.sum()": (2, 2),
    "x / x.sum(), 1024 elements": (2, 1),
    "gate, full w and b": (4, 1),
    "gate, vectors": (4, 1),
}
SPEED = {"gate, full w and b": 2.5, "gate, vectors": 4.0}
MATMULS = {"relu(a @ b + bias)": (3, 2, 1), "a @ int8.to(bf16)": (2, 2, 1), "a @ b @ c": (2, 2)}
FILL = "Memset (Device)"


def _named(row: dict, count: int) -> None:
    row |= {"kernels": [FILL, *["toy_kernel"] * count], "kernels_per_call": count + 1}


@synthetic.makes("fusion.chains")
def chains(root: Path, **params: Any) -> Path:
    """A recording of `fusion.chains`."""
    rows = []
    for op in CHAINS:
        times = {f"{EAGER}, {n}": n * ONE_S for n in LENGTHS}
        times |= {f"{COMPILED}, {n}": max(ONE_S, n * MOST[op]) for n in LENGTHS}
        table = synthetic.timed(op, "gpu_warm", times, limit="copy")
        for row in table:
            way, _, count = row["variant"].removesuffix(" (again)").partition(", ")
            eager = int(count) if way == EAGER else 1
            row |= {"way": way, "operations": int(count), "bytes": 2**31 * eager}
            _named(row, eager)
        rows += table
    return synthetic.record(root, "fusion.chains", rows, **params)


@synthetic.makes("fusion.patterns")
def patterns(root: Path, **params: Any) -> Path:
    """A recording of `fusion.patterns`."""
    rows = []
    for op, (eager, compiled) in KERNELS.items():
        slower = {COMPILED: 1 / SPEED.get(op, eager / max(compiled, 1))}
        slower |= {BF16: 0.5} if op == "gate, vectors" else {}
        table = synthetic.compared(op, "gpu_warm", 4e-4, slower, control=EAGER)
        for row in table:
            fused = row["variant"] == COMPILED
            _named(row, compiled if fused else eager)
            row |= {"pattern": PATTERNS[op].kind, "error": 2e-7 if fused and "cos" in op else 1e-7}
        rows += table
    return synthetic.record(root, "fusion.patterns", rows, **params)


@synthetic.makes("fusion.matmuls")
def matmuls(root: Path, **params: Any) -> Path:
    """A recording of `fusion.matmuls`: the library's matmul is as fast as one with an epilogue."""
    rows = []
    for op, counts in MATMULS.items():
        ways = (EAGER, COMPILED, TEMPLATE)[: len(counts)]
        slower = dict.fromkeys(ways[1:], 1.0 if "c" in op.split() else 0.9)
        flops = 2 * 4096**3 * (2 if len(counts) == 2 else 1)
        table = synthetic.compared(op, "gpu_warm", 2e-4, slower, control=EAGER, flops=flops)
        for row in table:
            _named(row, dict(zip(ways, counts, strict=True))[row["variant"].split(" (")[0]])
        rows += table
    return synthetic.record(root, "fusion.matmuls", rows, **params)
