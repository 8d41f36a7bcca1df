"""What profiled training steps take of a device."""

from collections.abc import Iterator
from typing import NamedTuple

from anatomy.parts import sizes
from anatomy.parts.demands import heads_of
from anatomy.record.requirements import Capacity, Requirement, requires


class Size(NamedTuple):
    """A transformer and its batch."""

    width: int
    layers: int
    batch: int
    tokens: int


SMALL, LARGE = "small step", "large step"
# One whose kernels are shorter than their launches, and one whose kernels are long.
SIZES = {SMALL: Size(256, 2, 4, 64), LARGE: Size(2048, 4, 8, 1024)}


def scaled(op: str, scale: float) -> Size:
    """A step with its width, in whole heads, and its tokens by a factor."""
    size = SIZES[op]
    tokens = max(1, round(size.tokens * scale))
    return size._replace(width=heads_of(size.width * scale), tokens=tokens)


def bytes_of(size: Size, device: str) -> int:
    """Weights, gradients and AdamW's state with its temporaries, and activations; in bfloat16, or
    in float32 on a CPU."""
    tokens = size.batch * size.tokens
    held = sizes.kept(size.width, size.layers, tokens) + sizes.running(size.width, tokens)
    item = 4 if device.startswith("cpu") else 2
    return item * (6 * sizes.weights(size.width, size.layers) + held)


@requires("profiling.overhead")
def overhead(on: Capacity, device: str, scale: float) -> Iterator[Requirement]:
    """Each step with its model."""
    for op in SIZES:
        yield Requirement(op, bytes_of(scaled(op, scale), device))


@requires("profiling.trace", "profiling.averages")
def small(on: Capacity, device: str) -> Iterator[Requirement]:
    """The small step with its model."""
    yield Requirement(SMALL, bytes_of(SIZES[SMALL], device))
