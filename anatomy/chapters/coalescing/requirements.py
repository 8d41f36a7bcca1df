"""Which strides and offsets a warp reads at, and what that takes of a device."""

from collections.abc import Iterator

from anatomy.record.requirements import Capacity, Requirement, requires

# Reads from HBM reach over so many bytes, or so many caches where that is more: nothing is there
# from the launch before.
REACH_BYTES, CACHES = 2**30, 8
ONE, ALL, HBM, L1 = "one of each", "all of them", "from HBM", "from L1"
# Elements of float32 from thread to thread: one of them is read; or all, so that none is wasted.
STRIDES = {ONE: range(1, 33), ALL: (1, 2, 4, 8, 16, 32)}
OFFSETS = range(0, 129, 4)  # bytes from the beginning of a line to the first element


def reach(on: Capacity, scale: float) -> int:
    """Bytes that are read from."""
    return max(2**14, int(scale * max(REACH_BYTES, CACHES * on.cache_bytes)))


@requires("coalescing.strides")
def strides(on: Capacity, scale: float) -> Iterator[Requirement]:
    """The buffer, and the check of its sums."""
    yield from (Requirement(op, 4 * reach(on, scale)) for op in (ONE, ALL))


@requires("coalescing.offsets")
def offsets(on: Capacity, scale: float) -> Iterator[Requirement]:
    """As for strides."""
    yield from (Requirement(op, 4 * reach(on, scale)) for op in (HBM, L1))
