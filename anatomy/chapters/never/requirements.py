"""What the entries of the Never list take of a device."""

from collections.abc import Iterator

from anatomy.parts import sizes
from anatomy.parts.demands import heads_of
from anatomy.record.requirements import Capacity, Requirement, requires

TRAVELLING, LOOPED = (2**10, 2**18, 2**24), 256  # elements of what travels, and is looped over
LOGGED = ((256, 128), (2048, 4096))  # (width, tokens) of a layer bound by the host, and by the GPU
INITIALIZED = (4096, 4096, 4)  # width, tokens, layers: products, and next to nothing else
WAYS = 5  # to initialize
FIRST = "first calls"
FORMAT = "bf16"  # of large layers on a GPU; a CPU has them in float32, so that takes 4 bytes each
ITEM = 4


@requires("never.costs")
def costs(on: Capacity, scale: float) -> Iterator[Requirement]:
    """Layers and their gradients, and the same in float64 where that is what they are held to."""
    side, width, tokens = first_sizes(scale)
    layer = 3 * sizes.weights(width, 1) + sizes.kept(width, 1, tokens)
    need = ITEM * (4 * side**2 + 2 * layer + sizes.running(width, tokens))
    yield Requirement(FIRST, need, FORMAT)
    for elements in travelling(scale):
        need = (4 * 4 + 3 * 8) * elements + sizes.check_bytes(elements)
        yield Requirement(f"ping-pong {elements}", need)
    yield Requirement("loop over elements", 2**20)
    for width, tokens in logged(scale):
        step = 4 * sizes.weights(width, 1) + sizes.kept(width, 1, tokens)
        need = ITEM * (step + sizes.running(width, tokens))
        yield Requirement(f"logging C={width} T={tokens}", need, FORMAT)
    width, tokens = (sized(full, scale) for full in INITIALIZED[:2])
    weights, held = INITIALIZED[2] * width**2, tokens * width
    need = ITEM * (WAYS * weights + 2 * weights + 3 * INITIALIZED[2] * held)
    exact = 8 * (2 * weights + 3 * INITIALIZED[2] * held) + sizes.check_bytes(width**2)
    yield Requirement("initialization", need + exact, FORMAT)


def travelling(scale: float) -> list[int]:
    """Elements of the tensors that travel."""
    return sorted({max(16, int(n * scale)) for n in TRAVELLING})


def logged(scale: float) -> list[tuple[int, int]]:
    """Width and tokens of the steps that are logged."""
    return sorted({(wide(width, scale), sized(n, scale)) for width, n in LOGGED})


def first_sizes(scale: float) -> tuple[int, int, int]:
    """Of what a process has not done yet: the side of a product, width and tokens of a layer."""
    return sized(4096, scale), wide(1024, scale), sized(2048, scale)


def sized(full: int, scale: float) -> int:
    """The side of a matrix or a number of tokens: its share, as a multiple of 16."""
    return max(16, int(full * scale) // 16 * 16)


def wide(full: int, scale: float) -> int:
    """The width of a transformer's layer: its share, as whole heads where it has one."""
    return heads_of(sized(full, scale))
