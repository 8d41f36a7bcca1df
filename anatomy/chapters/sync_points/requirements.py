"""What waits, loops and copies take of a device."""

from collections.abc import Iterator
from dataclasses import dataclass

from anatomy.parts import sizes
from anatomy.parts.demands import HEAD_WIDTH
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

# Sides of the products: the second and fifth are the seed's. On an H200 in fp16, the third should
# last the 18 us that the seed's small product took, and the last the 25 ms of its big one.
SIDES = (128, 512, 1728, 4096, 8192, 21504)
FULL_SIDES = (
    *(128, 256, 512, 1024, 1408, 1728, 1792, 2048, 3072, 4096),
    *(6144, 8192, 12288, 16384, 20480, 21504),
)
# Elements of a step's kernels, and how many kernels.
ELEMENTS, COUNTS = (2**10, 2**20, 2**23, 2**26), (5, 50)
FULL_ELEMENTS, FULL_COUNTS = tuple(2**power for power in range(10, 28, 2)), (1, 5, 20, 100)
# Bytes that are copied; side of a product, and bytes of a copy beside it that takes about as long.
COPIED = (2**16, 2**19, 2**22, 2**25, 2**28)
FULL_COPIED = tuple(2**power for power in range(12, 30))
SIDE, BESIDE_BYTES = 8192, 2**26
DIRECTIONS = ("to the GPU", "to the host")


@dataclass(frozen=True)
class Size:
    """A model by its name: width C, sequences B of `tokens` tokens T, and layers."""

    model: str
    width: int
    batch: int
    tokens: int
    layers: int


# The small model is bound by its host, which queues a hundred short kernels a step. Those of the
# large one take twice as long as queueing them, on an H200; of the medium one, about as long.
SMALL, LARGE = Size("small", 256, 1, 256, 2), Size("large", 2048, 2, 2048, 2)
MODELS = (SMALL, LARGE)
FULL_MODELS = (
    *(Size("smallest", 64, 1, 64, 1), SMALL),
    *(Size("medium", 2048, 1, 2048, 2), LARGE, Size("largest", 4096, 2, 2048, 2)),
)


@requires("sync_points.bench")
def bench(on: Capacity, dtype: str, largest: int, full: bool) -> Iterator[Requirement]:
    """Both factors and the product, and one factor drawn in float32, or wide for the reference."""
    for side in bench_sides(largest, full):
        need = (3 * ITEM_BYTES[dtype] + 12) * side**2
        yield Requirement(f"loop {side}", need, dtype)


def bench_sides(largest: int, full: bool) -> list[int]:
    """Sides of the products up to the largest, or that alone."""
    return [side for side in (FULL_SIDES if full else SIDES) if side <= largest] or [largest]


def models(scale: float, full: bool) -> list[Size]:
    """The models that are trained, whole heads wide."""
    return [
        Size(
            each.model,
            max(HEAD_WIDTH, int(each.width * scale) // HEAD_WIDTH * HEAD_WIDTH),
            each.batch,
            max(16, int(each.tokens * scale)),
            each.layers,
        )
        for each in (FULL_MODELS if full else MODELS)
    ]


@requires("sync_points.training_loop")
def training_loop(on: Capacity, scale: float, full: bool) -> Iterator[Requirement]:
    """Weights, gradients and both moments, and what a layer keeps."""
    for size in models(scale, full):
        tokens = size.batch * size.tokens
        kept = sizes.kept(size.width, size.layers, tokens) + sizes.running(size.width, tokens)
        need = 4 * sizes.weights(size.width, size.layers) + kept
        yield Requirement(size.model, need * ITEM_BYTES["bf16"], "bf16")


@requires("sync_points.timeline")
def timeline(on: Capacity, side: int) -> Iterator[Requirement]:
    """Three matrices in fp16, and one that is drawn in float32."""
    yield Requirement("timeline", (3 * 2 + 4) * side**2)


@requires("sync_points.found", "synchronizations.detected")
def lines(on: Capacity) -> Iterator[Requirement]:
    """A small model, or tensors of some MiB."""
    yield Requirement("lines", 2**27)


def step_elements(scale: float, full: bool) -> list[int]:
    """Elements of the tensors that a step's kernels run over."""
    return sorted({max(ELEMENTS[0], int(n * scale)) for n in (FULL_ELEMENTS if full else ELEMENTS)})


@requires("synchronizations.costs")
def costs(on: Capacity, scale: float, full: bool) -> Iterator[Requirement]:
    """A tensor and its sum in float32, and both in float64."""
    for count in FULL_COUNTS if full else COUNTS:
        for elements in step_elements(scale, full):
            need = (3 * 4 + 8) * elements + sizes.check_bytes(elements)
            yield Requirement(f"step {count} x {elements}", need)


def copied_bytes(scale: float, full: bool) -> list[int]:
    """Sizes of the copies, multiples of 4."""
    found = FULL_COPIED if full else COPIED
    return sorted({max(2**12, int(n * scale)) // 4 * 4 for n in found})


def copy_op(direction: str, size: int) -> str:
    """The `op` of copies of `size` bytes."""
    whole = size % 2**20 == 0
    return f"{direction} {size >> 20} MiB" if whole else f"{direction} {size / 2**10:g} KiB"


def beside_sizes(scale: float) -> tuple[int, int]:
    """Side of the product, and elements of the copy beside it."""
    side = max(64, int(SIDE * scale ** (1 / 3)) // 64 * 64)
    return side, max(2**10, int(BESIDE_BYTES * scale) // 4)


@requires("transfers.to_device")
def to_device(on: Capacity, scale: float, full: bool) -> Iterator[Requirement]:
    """What is copied, three copies of it, and its like in float64."""
    for direction in DIRECTIONS:
        for size in copied_bytes(scale, full):
            need = 4 * size + sizes.check_bytes(size // 4)
            yield Requirement(copy_op(direction, size), need)
    side, count = beside_sizes(scale)
    product = (2 * 5 + 3 * 8) * side**2 + sizes.check_bytes(side**2)
    yield Requirement("beside a product", product + (3 * 4 + 2 * 8) * count, "bf16")


@requires("transfers.hazard")
def hazard(on: Capacity, elements: int) -> Iterator[Requirement]:
    """The tensor that is copied, and one to copy it to."""
    yield Requirement("hazard", 2 * 4 * elements)
