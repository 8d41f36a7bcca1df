"""What the measurements of launches take of a device."""

from collections.abc import Iterator

from anatomy.record.requirements import Capacity, Requirement, requires

COUNT = 2**25  # elements of the vectors: together several caches of any card


@requires("launches.rates")
def rates(on: Capacity) -> Iterator[Requirement]:
    """One element, and a graph of kernels."""
    yield Requirement("100 launches", 2**20)


@requires("launches.block_sizes")
def block_sizes(on: Capacity) -> Iterator[Requirement]:
    """Two vectors, two sums, and three of float64 where they are compared."""
    yield Requirement("vector add", COUNT * (4 * 4 + 4 * 8))
