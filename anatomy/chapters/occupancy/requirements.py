"""What the measurements of occupancy take of a device."""

from collections.abc import Iterator

from anatomy.record.requirements import Capacity, Requirement, requires

ALONE, TOGETHER = "one block an SM", "as many as fit"  # ops of the staircase
THREADS, COUNT = 256, 64  # of a block; floats that a thread reads
ROUNDS = 8  # times that the blocks fill the GPU, where as many as can be are resident
MOST_BLOCKS = 256 * 8  # that a card of today holds at once: SMs, and blocks of each


@requires("occupancy.staircase")
def staircase(on: Capacity) -> Iterator[Requirement]:
    """A number for each thread."""
    yield from (Requirement(op, 2**26) for op in (ALONE, TOGETHER))


@requires("occupancy.throughput")
def throughput(on: Capacity) -> Iterator[Requirement]:
    """What is read, and the sums of each thread, in float64 where they are checked."""
    yield Requirement("read", MOST_BLOCKS * ROUNDS * THREADS * (4 * COUNT + 4 + 4 * 8))
