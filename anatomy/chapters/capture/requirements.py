"""What the ways to capture a graph take of a device."""

from collections.abc import Iterator

from anatomy.parts.sizes import check_bytes
from anatomy.record.requirements import Capacity, Requirement, requires

# Elements: of one that a GPU is done with before it could be asked again, and of one of 256 MiB.
ELEMENTS = {"small input": 2**10, "large input": 2**26}


def elements(op: str, scale: float) -> int:
    """Elements of the input."""
    return max(64, int(ELEMENTS[op] * scale))


@requires("capture.calls")
def calls(on: Capacity, scale: float) -> Iterator[Requirement]:
    """Eight tensors of the input's size at once, and five in float64 of the exact result."""
    for op in ELEMENTS:
        n = elements(op, scale)
        yield Requirement(op, (4 * 8 + 8 * 5) * n + check_bytes(n))


@requires("capture.catalogue", "capture.code")
def small(on: Capacity) -> Iterator[Requirement]:
    """A few elements."""
    yield Requirement("functions", 2**21)
