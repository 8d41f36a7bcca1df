"""What the number formats take of a device: a step in float32 and its gradients in float64, which
it is held against, are most of it."""

from collections.abc import Iterator
from itertools import product

from anatomy.parts import sizes
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

# Cells of the site's map, and of a finer one.
WIDTHS, TOKENS = (256, 1024, 2048), (1024, 8192)
FULL_WIDTHS, FULL_TOKENS = (256, 512, 1024, 2048, 4096), (512, 1024, 2048, 4096, 8192, 16384)
SIDES = (256, 1024, 2048, 4096, 8192)
FULL_SIDES = (256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288)
MLP = (8192, 16384, 4096)  # rows, width between, width of the model, in a large transformer
LAYERS = 2
SEQUENCE = 1024  # tokens of one at most; more tokens are more sequences
# Bytes for each weight of the ways that are there at once: four steps with weights in float32,
# gradients and both moments, one in bf16, the model that they copy, and one in float64 with its
# gradients and their sum.
STEP_BYTES = 4 * 4 * 4 + 4 * 2 + 4 + 3 * 8


def training_cells(scale: float, full: bool) -> list[tuple[int, int]]:
    """Width and tokens of each cell."""
    widths, tokens = (FULL_WIDTHS, FULL_TOKENS) if full else (WIDTHS, TOKENS)
    return list(product(sizes.widths(widths, scale), sizes.multiples(tokens, scale, 16)))


def waiting_cell(scale: float, full: bool) -> tuple[int, int]:
    """The middle width, and most tokens: where the wait of a loss scale is asked for."""
    cells = training_cells(scale, full)
    widths = sorted({width for width, _ in cells})
    return widths[len(widths) // 2], cells[-1][1]


def inference_cells(scale: float, full: bool) -> list[tuple[int, int]]:
    """Width and tokens of each cell."""
    widths, tokens = (FULL_WIDTHS, FULL_TOKENS) if full else (WIDTHS[1:], TOKENS)
    return list(product(sizes.widths(widths, scale), sizes.multiples(tokens, scale, 16)))


def fp8_sides(scale: float, full: bool) -> list[tuple[int, int, int]]:
    """M, N and K of the linear layers; the last is a transformer's."""
    sides = [(s, s, s) for s in sizes.multiples(FULL_SIDES if full else SIDES, scale, 16)]
    return [*sides, sizes.multiples(MLP, scale, 16)]


@requires("precision.training")
def training(on: Capacity, scale: float, full: bool) -> Iterator[Requirement]:
    """Steps of all ways, of which the largest pass is in float32, and the exact gradients."""
    for width, tokens in training_cells(scale, full):
        yield Requirement(f"train C={width} T={tokens}", _steps(width, tokens))
    width, tokens = waiting_cell(scale, full)
    yield Requirement(f"host C={width} T={tokens}", _steps(width, tokens))


def _steps(width: int, tokens: int) -> int:
    largest = max(4 * tokens, 8 * min(tokens, SEQUENCE))  # of float64 one sequence at a time
    values = sizes.kept(width, LAYERS, 1) + sizes.running(width, 1)
    return STEP_BYTES * sizes.weights(width, LAYERS) + largest * values


@requires("precision.inference")
def inference(on: Capacity, scale: float, full: bool) -> Iterator[Requirement]:
    """The block in both formats and in float64, its input in all, and its result in float64."""
    for width, tokens in inference_cells(scale, full):
        sequence = min(tokens, SEQUENCE)
        running = max(8 * sizes.running(width, sequence), 2 * sizes.running(width, tokens))
        held = (4 + 2 + 2 + 8) * sizes.weights(width, 1) + (4 + 2 + 2 + 8 + 8) * tokens * width
        need = held + running + sizes.check_bytes(tokens * width)
        yield Requirement(f"forward C={width} T={tokens}", need)


@requires("precision.fp8")
def fp8(on: Capacity, scale: float, full: bool) -> Iterator[Requirement]:
    """Factors in bf16, in fp8, and drawn in float32; the product of their like in float64."""
    bf16 = ITEM_BYTES["bf16"]
    for m, n, k in fp8_sides(scale, full):
        factors = (4 + bf16 + 2 + 8) * (m * k + n * k)
        made = (3 * bf16 + 8) * m * n + sizes.check_bytes(m * n)
        yield Requirement(f"linear {m} x {n} x {k}", factors + made, "bf16")
    tokens, between, width = fp8_sides(scale, full)[-1]
    weights = (4 + bf16 + 2 + 8) * 2 * between * width
    passed = (bf16 + 3 * 8) * tokens * between + (bf16 * 4 + 8) * tokens * width
    need = weights + passed + sizes.check_bytes(tokens * width)
    yield Requirement(f"mlp C={width} T={tokens}", need, "bf16")


@requires("precision.gradients")
def gradients(on: Capacity, width: int, tokens: int) -> Iterator[Requirement]:
    """A small transformer in float64 beside the same in other formats."""
    values = sizes.kept(width, LAYERS, tokens) + sizes.running(width, tokens)
    yield Requirement("gradients", 8 * (6 * sizes.weights(width, LAYERS) + 2 * values))
