"""What the measurements of the allocator take of a device."""

from collections.abc import Iterator
from typing import NamedTuple

from anatomy.record.requirements import Capacity, Requirement, requires

# Bytes that are asked for. A smaller block comes out of a segment that others may use, which then
# is not given back to the driver.
SIZES = {"16 MiB": 2**24, "64 MiB": 2**26, "256 MiB": 2**28, "1 GiB": 2**30}
FRAGMENTS = 2**30 + 2**27  # what the pattern takes at most


class Step(NamedTuple):
    """A small transformer in float32 and its batch."""

    width: int = 1024
    layers: int = 3
    batch: int = 4
    tokens: int = 256


STEP = Step()
# Elements of each layer's weights and of what it keeps of each token, in units of the width.
_WEIGHTS, _KEPT = 12 * STEP.width**2, 24 * STEP.width
WEIGHT_BYTES = 4 * STEP.layers * _WEIGHTS
ACTIVATION_BYTES = 4 * STEP.layers * STEP.batch * STEP.tokens * _KEPT


@requires("allocator.costs")
def costs(on: Capacity) -> Iterator[Requirement]:
    """The block from PyTorch's cache, and that of the driver beside it."""
    for name, size in SIZES.items():
        yield Requirement(name, 2 * size)


@requires("allocator.fragmentation")
def fragmentation(on: Capacity) -> Iterator[Requirement]:
    """The blocks of the pattern, in a process of their own."""
    yield Requirement("pattern", FRAGMENTS)


@requires("allocator.training_step")
def training_step(on: Capacity) -> Iterator[Requirement]:
    """Weights, gradients, both of AdamW's averages, its temporaries, and the activations."""
    yield Requirement("training step", 6 * WEIGHT_BYTES + 2 * ACTIVATION_BYTES)


@requires("allocator.kept_losses")
def kept_losses(on: Capacity) -> Iterator[Requirement]:
    """Nine validation losses with their activations, and the gradients of training."""
    yield Requirement("kept losses", 2 * WEIGHT_BYTES + 10 * ACTIVATION_BYTES)
