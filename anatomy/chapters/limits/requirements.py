"""What the limits take of a device: working sets, and products, of one number format at a time."""

from collections.abc import Iterator

from anatomy.parts.sizes import CHECKED_ROWS, check_bytes
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

COLUMNS = 4096  # of the matrix: long rows, so that the vector and the result weigh nothing
STEP_BYTES = COLUMNS * ITEM_BYTES["fp32"]  # each way divides a working set of multiples of this
OPS = ("copy", "read", "write")
# Working sets of the bandwidth ceilings, in multiples of the last-level cache. All that is written
# is checked in float64, which is twice as large, so the largest is half of the others' there.
CACHES = {"copy": (4, 16, 64), "read": (4, 16, 64), "write": (4, 16, 32)}
# Square products, and one with a long and one with a short reduction; multiples of 128 all.
SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (16384, 8192, 4096), (8192, 8192, 16384))
FORMATS = ("fp16", "bf16", "tf32", "fp32", "fp8")
# The curve over working-set size: powers of two from here to a third of the cache, then these
# multiples of the cache, close together where it is full.
SMALLEST_BYTES = 2**16
AROUND = (0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.25, 1.5, 2, 4, 8)
TOGETHER = 7  # sizes timed together


@requires("limits.ceilings")
def ceilings(on: Capacity, scale: float) -> Iterator[Requirement]:
    """What is timed together is there at once: of a size, also all below it."""
    for op, sizes in ceiling_sets(on.cache_bytes, scale).items():
        yield from _moved(op, sizes)
    for dtype in FORMATS:
        item, held = ITEM_BYTES[dtype], 0
        for m, n, k in sides(scale):
            held += (m * k + k * n) * item
            wide = 8 * (m * k + k * n) + check_bytes(m * n)
            made = 3 * m * n * max(item, 2)
            yield Requirement(f"matmul {dtype} {m} x {n} x {k}", held + made + wide, dtype)


@requires("limits.bandwidth")
def bandwidth(on: Capacity, scale: float) -> Iterator[Requirement]:
    """As for the ceilings, of each group of sizes."""
    sizes = working_sets(on.cache_bytes, scale)
    for op in OPS:
        for first in range(0, len(sizes), TOGETHER):
            yield from _moved(op, sizes[first : first + TOGETHER])


@requires("limits.floors")
def floors(on: Capacity) -> Iterator[Requirement]:
    """One element, and graphs of kernels over it."""
    yield Requirement("floors", 2**20)


@requires("limits.sustained")
def sustained(on: Capacity, side: int) -> Iterator[Requirement]:
    """Two factors, drawn in float32, and a result in fp16; and all of them in float64."""
    item = ITEM_BYTES["fp16"]
    need = 3 * item * side**2 + 8 * 2 * side**2 + check_bytes(side**2)
    yield Requirement(sustained_op(side), need, "fp16")


def sustained_op(side: int) -> str:
    """As the table has it."""
    return f"matmul fp16 {side} x {side} x {side}"


def _moved(op: str, sizes: list[int]) -> Iterator[Requirement]:
    for place, size in enumerate(sizes):
        part = min(size // ITEM_BYTES["fp32"], CHECKED_ROWS)  # of what is compared at a time
        check = {
            # The answer's like in float64, or a part of it beside another answer.
            "copy": max(size, size // 2 + 3 * 8 * part),
            "read": 2 * 8 * part,
            "write": 2 * size + 3 * 8 * part,
        }[op]
        yield Requirement(f"{op} {size_name(size)}", sum(sizes[: place + 1]) + check)


def ceiling_sets(cache_bytes: int, scale: float) -> dict[str, list[int]]:
    """Bytes of the working sets of each operation of the bandwidth ceilings, rising."""
    return {op: [_size(scale * each * cache_bytes) for each in CACHES[op]] for op in CACHES}


def sides(scale: float) -> list[tuple[int, int, int]]:
    """M, N and K of the products."""
    return [tuple(max(16, int(scale * side) // 16 * 16) for side in shape) for shape in SHAPES]


def working_sets(cache_bytes: int, scale: float = 1.0) -> list[int]:
    """Sizes in bytes of the curve: from 64 KiB to eight caches, rising, each only once."""
    powers = []
    while SMALLEST_BYTES * 2 ** len(powers) <= cache_bytes / 3:
        powers.append(SMALLEST_BYTES * 2 ** len(powers))
    return sorted({_size(scale * each) for each in (*powers, *(m * cache_bytes for m in AROUND))})


def _size(wanted: float) -> int:
    """A working set of about so many bytes that every way of moving it divides."""
    return max(STEP_BYTES, round(wanted / STEP_BYTES) * STEP_BYTES)


def size_name(size: int) -> str:
    """A size as part of a row's name: `64 KiB`, `52.5 MiB`."""
    return f"{size / 2**10:g} KiB" if size < 2**20 else f"{size / 2**20:.4g} MiB"
