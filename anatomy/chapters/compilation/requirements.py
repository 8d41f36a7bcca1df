"""What eager and compiled layers and chains take of a device, with what they are held against."""

from collections.abc import Iterator

from anatomy.parts import sizes
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

LAYERS = 17  # breaks lie between layers, so 17 layers have room for 16
# Sides of the square matrices: 16384 elements keep a GPU busy for less time than a launch takes,
# and the product of two of the larger ones for longer than a hundred launches.
SMALL, LARGE = 128, 4096
ELEMENTS = 2**25  # elements of the chain that is not made of products: more than any L2 cache holds
CHAINS = {"small products": SMALL, "large products": LARGE}  # and the sides of their matrices
ELEMENTWISE = "large elementwise"
SHORTEST, STEP = 101, 37  # lengths T as a tokenizer leaves them, no multiples of 8: first, step


@requires("compilation.map")
def map(on: Capacity, task: str, dtype: str, scale: float, full: bool) -> Iterator[Requirement]:
    """The layer in its format, the pool of a graph, and a pass of a copy in float32."""
    item = ITEM_BYTES[dtype]
    for cell in sizes.layer_cells(scale, full):
        weights, running = sizes.weights(cell.width, 1), sizes.running(cell.width, cell.tokens)
        step, answers = running, cell.tokens * cell.width
        largest = answers
        if task == "training":
            step += sizes.kept(cell.width, 1, cell.tokens) + weights
            answers, largest = weights, 4 * cell.width**2
        # CUDA graphs keep a pool; of all else, only answers are left when the next way runs.
        held = weights + 2 * answers + (step if sizes.GRAPHS in cell.ways else 0)
        exact = 4 * answers + max(4 * (weights + step), sizes.check_bytes(largest))
        need = item * held + exact
        yield Requirement(f"{task} C={cell.width} T={cell.tokens}", need, dtype)


@requires("compilation.breaks")
def breaks(on: Capacity, scale: float) -> Iterator[Requirement]:
    """Chains, their weights in bf16 and in float64, and results of two links at once."""
    for name, size in CHAINS.items():
        n = side(size, scale) ** 2
        wide = 8 * (LAYERS + 4) * n + sizes.check_bytes(n)
        # On a CPU, which has no fast bf16, they are in float32.
        yield Requirement(name, (LAYERS + 6) * 4 * n + wide, "bf16")
    n = elements(scale)
    yield Requirement(ELEMENTWISE, (6 * 4 + 3 * 8) * n + sizes.check_bytes(n))


def side(size: int, scale: float) -> int:
    """A matrix's side, at least 8."""
    return max(8, int(size * scale))


def elements(scale: float) -> int:
    """Elements of the elementwise chain; they shrink as a matrix does."""
    return max(64, int(ELEMENTS * scale * scale))


@requires("compilation.recompiles")
def recompiles(on: Capacity, lengths: int, width: int) -> Iterator[Requirement]:
    """Inputs of all lengths, a copy of them, and what one call makes."""
    tokens = sum(SHORTEST + i * STEP for i in range(lengths))
    longest = SHORTEST + lengths * STEP
    yield Requirement("recompiles", 4 * width * (2 * tokens + 4 * longest))


@requires("compilation.detection", "compilation.modes")
def small(on: Capacity) -> Iterator[Requirement]:
    """A few elements, or nothing."""
    yield Requirement("functions", 2**20)
