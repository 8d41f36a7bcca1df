"""Which working sets the memory ladder climbs, and what they take of a device."""

from collections.abc import Iterator

from anatomy.parts.sizes import CHECKED_ROWS
from anatomy.record.requirements import Capacity, Requirement, requires
from anatomy.table import units

# Curves: every SM reads all of the set; each SM reads its own part; the same, but only once a
# launch; PyTorch's own sum; each SM writes its own part, or all of a set with no part for each.
OPS = "read by all", "read in parts", "read once", "torch.sum", "write"
BY_ALL, IN_PARTS, ONCE, TORCH, WRITE = OPS
POWERS, CHASED = range(16, 33), range(12, 31)  # of two: 64 KiB to 4 GiB, and 4 KiB to 1 GiB
PARTS_FROM = 2**22  # bytes from which on every SM has a part of its own
L1_ENDS = 2**16, 2**19  # bytes between which the L1 cache of any card does
LINE_BYTES = 128  # of a cache; one address of the chain lies in each


def sets(op: str, cache_bytes: int, scale: float = 1.0) -> list[int]:
    """About how many bytes the working sets of a curve have. More than four caches would take long
    to be read by each SM, and are in HBM anyway."""
    least = PARTS_FROM if op in (IN_PARTS, ONCE, TORCH) else 0
    most = 4 * cache_bytes if op == BY_ALL else 2 ** POWERS[-1]
    sizes = _sizes(POWERS, 0 if op in (ONCE, TORCH) else cache_bytes)
    return sorted({int(scale * size) for size in sizes if least <= size <= most})


def chased(cache_bytes: int, scale: float = 1.0) -> list[int]:
    """Bytes of the working sets of the pointer chase."""
    return sorted({max(1024, int(scale * size)) for size in _sizes(CHASED, cache_bytes)})


def _sizes(powers: range, cache_bytes: int) -> list[int]:
    """Powers of two, and one size more between any two where a cache may end."""
    found = [2**power for power in powers]
    ends = (L1_ENDS, (cache_bytes / 4, 2 * cache_bytes))
    return found + [3 * n // 2 for n in found if any(low <= 1.5 * n <= top for low, top in ends)]


@requires("memory_ladder.bandwidth")
def bandwidth(on: Capacity, scale: float) -> Iterator[Requirement]:
    """A buffer, of which each set is the beginning, and the check: what is written is compared in
    float64. Sets are rounded to whole rows of all SMs."""
    for op in OPS:
        for size in sets(op, on.cache_bytes, scale):
            held = (5 if op == WRITE else 1) * size
            check = min(24 * CHECKED_ROWS, 6 * size)
            yield Requirement(f"{op} {units.byte_count(size)}", held + size // 8 + check)


@requires("memory_ladder.latency")
def latency(on: Capacity, scale: float) -> Iterator[Requirement]:
    """The chain, and the order of its lines, from which it is made."""
    for size in chased(on.cache_bytes, scale):
        name = f"chase {units.byte_count(size)}"
        yield Requirement(name, size + 4 * 8 * (size // LINE_BYTES))


@requires("memory_ladder.levels")
def levels(on: Capacity) -> Iterator[Requirement]:
    """Nothing: the device is only asked."""
    yield Requirement("levels", 0)
