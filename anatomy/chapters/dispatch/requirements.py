"""What the measurement of single calls takes of a device."""

from collections.abc import Iterator

from anatomy.record.requirements import Capacity, Requirement, requires


@requires("dispatch.calls")
def calls(on: Capacity) -> Iterator[Requirement]:
    """Tensors of a few elements, two hundred at a time at the most."""
    yield from (Requirement(op, 2**20) for op in ("one call", "one matmul"))


@requires("dispatch.keys")
def keys(on: Capacity) -> Iterator[Requirement]:
    """Tensors of one element."""
    yield Requirement("keys", 2**10)
