"""What matrices in several layouts take of a device, in as many sets as keep them out of the
cache."""

from collections.abc import Iterator

from anatomy.parts import sizes
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

ALIGNED_BYTES = 128  # what aligned means: the seed's grid, and a cache line of the L2
OPS = ("matmul", "layer_norm", "layer_norm_chain")  # of `contiguity.bench`


def _product(m: int, n: int, k: int) -> int:
    """Bytes of a product in float64, and of the check against it."""
    return 8 * (m * k + k * n) + sizes.check_bytes(m * max(n, k))


@requires("contiguity.bench")
def bench(on: Capacity, dtype: str, m: int, n: int, k: int) -> Iterator[Requirement]:
    """Six layouts of A share two buffers and two copies; a float64 reference comes on top."""
    item = ITEM_BYTES[dtype]
    held = sizes.sets(m * k * item, on.cache_bytes) * (4 * m * k + k * n) * item
    for op in OPS:
        answers = 3 * m * (n if op == "matmul" else k) * item
        yield Requirement(op, held + answers + _product(m, n, k), dtype)


@requires("alignment.factorial", "alignment.thresholds")
def places(on: Capacity, op: str, dtype: str, m: int, n: int, k: int) -> Iterator[Requirement]:
    """All places share one buffer in turn: what differs is where in it the operand is read."""
    item = ITEM_BYTES[dtype]
    wide = k + ALIGNED_BYTES // item
    columns = n if op == "matmul" else 1
    held = (
        sizes.sets(m * wide * item, on.cache_bytes) * m * (wide + 1) * item + wide * columns * item
    )
    answers = 3 * m * max(columns, wide) * item
    yield Requirement(op, held + answers + _product(m, columns, wide), dtype)


@requires("remedies.payback")
def payback(on: Capacity, dtype: str, m: int, n: int, k: int) -> Iterator[Requirement]:
    """As `bench`, with copies of A for each remedy, and two of B."""
    item = ITEM_BYTES[dtype]
    held = sizes.sets(m * k * item, on.cache_bytes) * (9 * m * k + 2 * k * n) * item
    yield Requirement("matmul", held + 3 * m * max(n, k) * item + _product(m, n, k), dtype)


@requires("remedies.compiled")
def compiled(on: Capacity, dtype: str, m: int, n: int, k: int) -> Iterator[Requirement]:
    """A and B once, padded copies of them, and products."""
    item = ITEM_BYTES[dtype]
    held = (3 * m * (k + 1) + 3 * k * n + 3 * m * n) * item
    yield Requirement("matmul", held + _product(m, n, k), dtype)


@requires("tensor_layout.report", "tensor_layout.check")
def layouts(on: Capacity, dtype: str, m: int, k: int) -> Iterator[Requirement]:
    """Two matrices, a copy, and a half; the format is only stored."""
    yield Requirement("layouts", 4 * m * k * ITEM_BYTES[dtype])
