"""What the workloads of the stopwatches take of a device, and the worked example."""

from collections.abc import Iterator

from anatomy.parts import sizes
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

MORE = 1.02  # the second variant of the worked example has so many times the rows
LARGEST = "W4 copy 2 GiB"
COPIED_BYTES = 2 * 2**30  # from one tensor to another; only its beginning is checked
REST_BYTES = 2 * 2**30  # everything else, which is there at the same time


@requires("harnesses.estimates", "harnesses.reference")
def workloads(on: Capacity, scale: float) -> Iterator[Requirement]:
    """All of them at once, for they take turns: without the largest, the others."""
    yield Requirement("the others", int(scale * REST_BYTES), "bf16")
    yield Requirement(LARGEST, int(scale * (2 * COPIED_BYTES + REST_BYTES)))


def rows(m: int) -> int:
    """Rows of the second softmax."""
    return max(m + 1, round(MORE * m))


@requires("worked_example.kernel")
def kernel(on: Capacity, dtype: str, m: int, k: int) -> Iterator[Requirement]:
    """Two matrices, a softmax of each, and one in float64."""
    held = (m + rows(m)) * k + 3 * rows(m) * k
    wide = 8 * rows(m) * k + sizes.check_bytes(rows(m) * k)
    yield Requirement("softmax", held * ITEM_BYTES[dtype] + wide, dtype)
