"""What chains, patterns and matmuls take of a device; their sizes."""

from collections.abc import Iterator

from anatomy.parts.sizes import check_bytes
from anatomy.record.requirements import Capacity, Requirement, requires

LENGTHS = (1, 2, 4, 8, 16, 32)  # operations of a chain
CHAINS = ("multiplications", "cosines")
# Elements of a chain's tensor: 1 GiB, so that no cache keeps a part of it that would count. The
# side of the patterns' square tensors, of 256 MiB, and of the matrices.
ELEMENTS, SIDE, MATRIX = 2**28, 8192, 4096
# Tensors that are there at once: a pattern's, in float32 and in float64.
TENSORS, WIDE = 7, 6


def side(full: int, scale: float) -> int:
    """A side, scaled; a multiple of 16."""
    return max(16, int(full * scale) // 16 * 16)


@requires("fusion.chains")
def chains(on: Capacity, scale: float) -> Iterator[Requirement]:
    """The tensor, two results, and the exact result with the one before it."""
    n = int(ELEMENTS * scale)
    for op in CHAINS:
        yield Requirement(op, (3 * 4 + 3 * 8) * n + check_bytes(n))


@requires("fusion.patterns")
def patterns(on: Capacity, scale: float) -> Iterator[Requirement]:
    """A pattern at a time."""
    n = side(SIDE, scale) ** 2
    yield Requirement("patterns", (4 * TENSORS + 8 * WIDE) * n + check_bytes(n))


@requires("fusion.matmuls")
def matmuls(on: Capacity, scale: float) -> Iterator[Requirement]:
    """Matrices in bf16 and in float64."""
    n = side(MATRIX, scale) ** 2
    yield Requirement("matmuls", (2 * TENSORS + 8 * WIDE) * n + check_bytes(n), "bf16")
