"""What eager and compiled layers and chains take of a device, with what they are held against."""

from collections.abc import Iterator
from dataclasses import dataclass

from anatomy.parts import sizes
from anatomy.parts.demands import heads_of
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires
from anatomy.table import formulas

LAYERS = 17  # breaks lie between layers, so 17 layers have room for 16
# Sides of the square matrices: 16384 elements keep a GPU busy for less time than a launch takes,
# and the product of two of the larger ones for longer than a hundred launches.
SMALL, LARGE = 128, 4096
ELEMENTS = 2**25  # elements of the chain that is not made of products: more than any L2 cache holds
CHAINS = {"small products": SMALL, "large products": LARGE}  # and the sides of their matrices
ELEMENTWISE = "large elementwise"
SHORTEST, STEP = 101, 37  # lengths T as a tokenizer leaves them, no multiples of 8: first, step
PLAIN, WRITTEN = "few kernels", "written out"
BF16, AMP = "bf16", "amp bf16"  # all in bf16, or weights in float32 under autocast to bf16
# (layer, number format, width C, sequences B, their tokens, layers). The first four fill the GPU
# for milliseconds, and differ in what there is to fuse; the host can hardly keep up with the fifth.
# The rest are one graph each: what a call costs whatever is in it is a small part of many layers.
STACK = (PLAIN, BF16, 1024, 1, 1024)
CELLS = (
    (PLAIN, BF16, 1024, 32, 1024, 1),
    (WRITTEN, BF16, 1024, 32, 1024, 1),
    (PLAIN, AMP, 1024, 32, 1024, 1),
    (WRITTEN, AMP, 1024, 32, 1024, 1),
    (WRITTEN, BF16, 256, 1, 256, 1),
    *((*STACK, layers) for layers in (2, 4, 8)),
)
# float32 results as large as the input that the step and its check keep at most: of a layer that is
# written out, with all that is at work, and of each further layer of a stack.
RESULTS, FURTHER = 100, 40
BYTES_PER_WEIGHT = 16  # weights, two sets of gradients, and the same in float32 for the check


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


def hidden_width(width: int) -> int:
    """Width of SwiGLU's middle: two thirds of four times C, so that it multiplies as much."""
    return max(8, 8 * width // 3 // 64 * 64)


@dataclass(frozen=True)
class Cell:
    """One layer, or a stack of them, in one number format and size."""

    layer: str
    dtype: str
    width: int
    batch: int
    sequence: int
    layers: int = 1

    @property
    def op(self) -> str:
        """As the table has it."""
        at = f"C={self.width} B={self.batch} T={self.sequence}"
        stack = f" L={self.layers}" if self.layers > 1 else ""
        return f"training {self.layer}, {self.dtype}, {at}{stack}"

    @property
    def columns(self) -> dict[str, object]:
        """The coordinates as columns of a table; `tokens` are those of the whole step."""
        told = {"task": "training", "layer": self.layer, "dtype": self.dtype, "width": self.width}
        told |= {"tokens": self.batch * self.sequence, "sequence": self.sequence}
        return told | {"layers": self.layers}

    @property
    def flops(self) -> int:
        """Of the products of a forward and a backward pass."""
        tokens, C = self.batch * self.sequence, self.width
        if self.layer == PLAIN:
            return 3 * self.layers * formulas.layer_flops(C, tokens, self.sequence)
        each = 8 * C * C + 6 * C * hidden_width(C) + 4 * C * self.sequence
        return 3 * self.layers * tokens * each

    @property
    def required(self) -> Requirement:
        """What it takes at its worst moment, about."""
        result = 4 * self.batch * self.sequence * self.width
        weights = 12 * self.layers * self.width**2
        kept = result * (RESULTS + FURTHER * (self.layers - 1))
        return Requirement(self.op, kept + BYTES_PER_WEIGHT * weights, "bf16")


def layer_cells(scale: float) -> list[Cell]:
    """The cells of `compilation.layers`, all different."""
    return list(dict.fromkeys(scaled_cell(scale, *cell) for cell in CELLS))


def scaled_cell(
    scale: float, layer: str, dtype: str, width: int, batch: int, sequence: int, layers: int
) -> Cell:
    """A cell whose width, sequences and tokens are so many times as large."""
    many, length = max(1, round(batch * scale)), max(4, int(sequence * scale))
    return Cell(layer, dtype, heads_of(width * scale), many, length, layers)


@requires("compilation.layers")
def layers(on: Capacity, scale: float) -> list[Requirement]:
    """A training step of each cell, and its check in float32."""
    return [cell.required for cell in layer_cells(scale)]


@requires("compilation.autotuned")
def autotuned(on: Capacity, layers: int, scale: float) -> list[Requirement]:
    """As of the layers, of one stack."""
    return [scaled_cell(scale, *STACK, layers).required]
