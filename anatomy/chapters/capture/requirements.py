"""What the ways to capture a graph take of a device."""

from collections.abc import Iterator

from anatomy.parts.sizes import check_bytes
from anatomy.record.requirements import Capacity, Requirement, requires

SMALL, LARGE = "small input", "large input"
# Elements: of one that a GPU is done with before it could be asked again, and of one of 256 MiB.
ELEMENTS = {SMALL: 2**10, LARGE: 2**26}
# float32 tensors of the input's size that are there at once, and float64 ones of the exact result.
RESULTS, WIDE = 8, 5


def elements(op: str, scale: float) -> int:
    """Elements of the input."""
    return max(64, int(ELEMENTS[op] * scale))


@requires("capture.calls")
def calls(on: Capacity, scale: float) -> Iterator[Requirement]:
    """The input, what the operations make of it, and the exact result."""
    for op in ELEMENTS:
        n = elements(op, scale)
        yield Requirement(op, (4 * RESULTS + 8 * WIDE) * n + check_bytes(n))


@requires("capture.catalogue", "capture.code")
def small(on: Capacity) -> Iterator[Requirement]:
    """A few elements."""
    yield Requirement("functions", 2**21)
