"""What the measurements of the allocator take of a device."""

from collections.abc import Iterator

from anatomy.parts import sizes
from anatomy.record.requirements import Capacity, Requirement, requires

# Bytes that are asked for. A smaller block comes out of a segment that others may use, which then
# is not given back to the driver.
SIZES = {"16 MiB": 2**24, "64 MiB": 2**26, "256 MiB": 2**28, "1 GiB": 2**30}

# A small transformer in float32 and its batch: so many tokens that its activations are more than
# its gradients and the optimizer's copies of them, as those of most training steps are.
STEP = WIDTH, LAYERS, BATCH, TOKENS = 1024, 3, 8, 256
WEIGHT_BYTES = 4 * sizes.weights(WIDTH, LAYERS)
ACTIVATION_BYTES = 4 * sizes.kept(WIDTH, LAYERS, BATCH * TOKENS)
RUNNING_BYTES = 4 * sizes.running(WIDTH, BATCH * TOKENS)


@requires("allocator.costs")
def costs(on: Capacity) -> Iterator[Requirement]:
    """The block from PyTorch's cache, and that of the driver beside it."""
    for name, size in SIZES.items():
        yield Requirement(name, 2 * size)


@requires("allocator.fragmentation")
def fragmentation(on: Capacity) -> Iterator[Requirement]:
    """The blocks of the pattern, in a process of their own."""
    yield Requirement("pattern", 2**30 + 2**27)


@requires("allocator.training_step")
def training_step(on: Capacity) -> Iterator[Requirement]:
    """Weights, gradients, both of AdamW's averages, its temporaries, and the activations."""
    yield Requirement("training step", 6 * WEIGHT_BYTES + ACTIVATION_BYTES + RUNNING_BYTES)


@requires("allocator.kept_losses")
def kept_losses(on: Capacity) -> Iterator[Requirement]:
    """Nine validation losses with their activations, and the gradients of training."""
    yield Requirement("kept losses", 2 * WEIGHT_BYTES + 9 * ACTIVATION_BYTES + RUNNING_BYTES)
