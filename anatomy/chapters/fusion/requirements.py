"""What chains, patterns and matmuls take of a device; their sizes."""

from collections.abc import Iterator

from anatomy.parts.sizes import check_bytes
from anatomy.record.requirements import Capacity, Requirement, requires

LENGTHS = (1, 2, 4, 8, 16, 32)  # operations of a chain
# A chain's tensor is so many times as large as the last cache, which then keeps no part of it that
# would count, and has no more elements than this. The side of the patterns' square tensors, of
# 256 MiB, and of the matrices.
CACHES, MOST, SIDE, MATRIX = 8, 2**27, 8192, 4096


def side(full: int, scale: float) -> int:
    """A side, scaled; a multiple of 16."""
    return max(16, int(full * scale) // 16 * 16)


def elements(cache_bytes: int, scale: float) -> int:
    """Elements of a chain's tensor."""
    return max(64, int(scale * min(MOST, CACHES * cache_bytes // 4)))


@requires("fusion.chains")
def chains(on: Capacity, scale: float) -> Iterator[Requirement]:
    """A chain at a time: the tensor, two results, and the exact result with the one before it."""
    n = elements(on.cache_bytes, scale)
    yield Requirement("chains", (3 * 4 + 2 * 8) * n + check_bytes(n))


@requires("fusion.patterns")
def patterns(on: Capacity, scale: float) -> Iterator[Requirement]:
    """A pattern at a time: seven of its tensors, and six in float64."""
    n = side(SIDE, scale) ** 2
    yield Requirement("patterns", (4 * 7 + 8 * 6) * n + check_bytes(n))


@requires("fusion.matmuls")
def matmuls(on: Capacity, scale: float) -> Iterator[Requirement]:
    """A pattern at a time, likewise, in bf16."""
    n = side(MATRIX, scale) ** 2
    yield Requirement("matmuls", (2 * 7 + 8 * 6) * n + check_bytes(n), "bf16")
