"""Made-up recordings of strided reads: what moves is what costs, from HBM in pieces of 64 bytes."""

from pathlib import Path
from typing import Any

from anatomy.chapters.coalescing.requirements import HBM, L1, OFFSETS, ONE, STRIDES
from anatomy.chapters.coalescing.sectors import sectors, useful_share
from tests.fakes import synthetic

ALIGNED, USEFUL = 4e12, 2**30  # bytes per second, and bytes that a call asks for
ALL_SHARE = 0.95  # of that rate, at a stride whose elements are all read


def share_of(op: str, stride: int, offset: int, atom: int) -> float:
    """Bandwidth over that of an aligned read of neighbours; `atom` bytes move at a time."""
    if op in (ONE, L1):
        atoms = {sector * 32 // atom for sector in sectors(stride, offset)}
        return 128 / (atom * len(atoms))
    # The fifth sector is the next warp's first, and a neighbour's element is in the cache.
    return 1.0 if op == HBM or stride == 1 else ALL_SHARE


def table(op: str, places: dict[str, tuple[int, int]], atom: int, seed: int) -> list[dict]:
    """The rows of one operation."""
    seconds, own = {}, {}
    for name, place in places.items():
        asked = USEFUL // place[0]
        seconds[name] = asked / ALIGNED / share_of(op, *place, atom)
        own[name] = {"stride": place[0], "offset_bytes": place[1], "bytes": asked}
        own[name] |= {"sectors": len(sectors(*place)), "useful_share": useful_share(*place)}
    return synthetic.timed(op, "gpu_warm", seconds, own, limit="read", seed=seed)


@synthetic.makes("coalescing.strides")
def strides(root: Path, atom: int = 32, **params: Any) -> Path:
    """A recording in which `atom` bytes move at a time."""
    rows = []
    for seed, (op, steps) in enumerate(STRIDES.items()):
        rows += table(op, {f"stride {step}": (step, 0) for step in steps}, atom, seed)
    return synthetic.record(root, "coalescing.strides", rows, **params)


@synthetic.makes("coalescing.offsets")
def offsets(root: Path, **params: Any) -> Path:
    """A recording in which an offset costs in L1 alone."""
    rows = []
    for seed, op in enumerate((HBM, L1)):
        rows += table(op, {f"offset {each}": (1, each) for each in OFFSETS}, 32, seed)
    return synthetic.record(root, "coalescing.offsets", rows, **params)
