"""What the measurements of measuring take of a device."""

from collections.abc import Iterator

from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

SHAPES = range(512, 512 + 13 * 32, 32)  # sides of the matrices whose first calls are timed
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


@requires("timing.first_calls")
def first_calls(on: Capacity) -> Iterator[Requirement]:
    """A matrix of each shape, and results of all sizes."""
    held = sum(3 * side * side for side in SHAPES) * ITEM_BYTES["bf16"]
    yield from (Requirement(op, held, "bf16") for op in ("GEMM", "softmax"))


@requires("timing.equals")
def equals(on: Capacity, side: int) -> Iterator[Requirement]:
    """The same GEMM, and the same addition, again and again."""
    yield Requirement("GEMM", _gemm(side), "bf16")
    yield Requirement("addition", 2**20)
