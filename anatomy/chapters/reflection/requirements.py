"""What the measurements of looking back take of a device."""

from collections.abc import Iterator

from anatomy.record.requirements import Capacity, Requirement, requires

THREADS, KEPT = 256, 32  # of a block; numbers that a thread keeps
BLOCKS_PER_SM = 8
MOST_SMS = 256  # of a card of today


@requires("reflection.registers")
def registers(on: Capacity) -> Iterator[Requirement]:
    """The numbers of each thread, in float64 too where they are checked."""
    threads = MOST_SMS * BLOCKS_PER_SM * THREADS
    yield Requirement("32 numbers a thread", threads * KEPT * (4 + 3 * 8))
