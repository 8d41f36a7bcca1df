"""A layer as a compiler sees it: operations in order, each with the tensors it takes and makes."""

from typing import NamedTuple


class Op(NamedTuple):
    """One operation. `kind` is `pointwise` (each element by itself) or `matmul`."""

    makes: str
    kind: str
    takes: tuple[str, ...]


# relu(x @ W + b)
LAYER = [
    Op("y", "matmul", ("x", "W")),
    Op("z", "pointwise", ("y", "b")),
    Op("h", "pointwise", ("z",)),
]


def trips(kernels: list[list[Op]]) -> int:
    """How often a tensor goes between memory and chip: a kernel reads each tensor that it has not
    made itself once, and writes what it made last, or what another kernel takes."""
    count = 0
    for number, kernel in enumerate(kernels):
        made = {op.makes for op in kernel}
        others = [op for k, each in enumerate(kernels) for op in each if k != number]
        wanted = {name for op in others for name in op.takes}
        count += len({name for op in kernel for name in op.takes} - made)
        count += len({name for name in made if name in wanted or name == kernel[-1].makes})
    return count
