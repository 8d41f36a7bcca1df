"""What the measurements of measuring take of a device."""

from collections.abc import Iterator

from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

COPIED_BYTES = 2**23  # of the source of a copy that fits any L2 cache of today


def _gemm(side: int) -> int:
    """Bytes of two matrices, their GEMM, and the same in float64."""
    return 3 * side * side * (ITEM_BYTES["bf16"] + ITEM_BYTES["fp64"])


@requires("timing.ways")
def ways(on: Capacity, side: int) -> Iterator[Requirement]:
    """One GEMM; a few elements; a source, its copy, and both where they are checked."""
    yield Requirement("GEMM", _gemm(side), "bf16")
    yield Requirement("addition", 2**20)
    yield Requirement("copy", 4 * COPIED_BYTES)
    yield Requirement("values", 2 * _gemm(2 * side), "bf16")


@requires("timing.equals")
def equals(on: Capacity, side: int) -> Iterator[Requirement]:
    """The same GEMM, and the same addition, again and again."""
    yield Requirement("GEMM", _gemm(side), "bf16")
    yield Requirement("addition", 2**20)
