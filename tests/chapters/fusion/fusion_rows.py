"""Made-up recordings of fusion: a kernel costs its trips, and cosines their arithmetic as well."""

from pathlib import Path
from typing import Any

from anatomy.chapters.fusion.fusion import CHAINS
from anatomy.chapters.fusion.patterns import BF16, COMPILED, EAGER, MATMULS, PATTERNS
from anatomy.chapters.fusion.requirements import LENGTHS
from tests.fakes import synthetic

ONE_S = 5e-4  # of one operation of a chain: its trip
ARITHMETIC_S = {"multiplications": 0.0, "cosines": 6e-5}  # of one operation
# Kernels of a pattern in each of its ways, eager first.
TWO = ("x.sin(), y.cos()", "x / x.sum()", "a @ b @ c")
KERNELS = dict.fromkeys(PATTERNS, (2, 1)) | dict.fromkeys(TWO, (2, 2))
KERNELS |= {"softmax by hand": (5, 1), "gate, full w and b": (4, 1), "gate, vectors": (4, 1, 4)}
KERNELS |= {"relu(a @ b + bias)": (3, 2, 1), "a @ int8.to(bf16)": (2, 2, 1)}
# Time over eager's, where it is not as the kernels are.
RATIOS = {("gate, full w and b", COMPILED): 0.4, ("gate, vectors", BF16): 0.5}


def _listed(row: dict, count: int) -> dict:
    return row | {"kernels": ["Memset (Device)", *["toy_kernel"] * count]}


@synthetic.makes("fusion.chains")
def chains(root: Path, **params: Any) -> Path:
    rows = []
    for op in CHAINS:
        times = {f"{EAGER}, {n}": n * ONE_S for n in LENGTHS}
        times |= {f"{COMPILED}, {n}": max(ONE_S, n * ARITHMETIC_S[op]) for n in LENGTHS}
        for row in synthetic.timed(op, "gpu_warm", times, limit="copy"):
            way, _, count = row["variant"].removesuffix(" (again)").partition(", ")
            kernels = int(count) if way == EAGER else 1
            row |= {"way": way, "operations": int(count), "bytes": 2**31 * kernels}
            rows.append(_listed(row, kernels))
    return synthetic.record(root, "fusion.chains", rows, **params)


def _recorded(root: Path, name: str, patterns: dict, params: dict) -> Path:
    rows = []
    for op, (kind, _, ways) in patterns.items():
        counts = dict(zip((EAGER, *ways), KERNELS[op], strict=True))
        ratios = {way: count / counts[EAGER] or 1 for way, count in counts.items()}
        times = {way: 4e-4 * RATIOS.get((op, way), over) for way, over in ratios.items()}
        for row in synthetic.timed(op, "gpu_warm", times, pattern=kind):
            row["error"] = 2e-7 if row["variant"] == COMPILED and "cos" in op else 1e-7
            rows.append(_listed(row, counts[row["variant"].removesuffix(" (again)")]))
    return synthetic.record(root, name, rows, **params)


@synthetic.makes("fusion.patterns")
def patterns(root: Path, **params: Any) -> Path:
    return _recorded(root, "fusion.patterns", PATTERNS, params)


@synthetic.makes("fusion.matmuls")
def matmuls(root: Path, **params: Any) -> Path:
    return _recorded(root, "fusion.matmuls", MATMULS, params)
