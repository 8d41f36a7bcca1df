"""What graphs and their eager calls take of a device: a graph's pool is there beside them."""

from collections.abc import Iterator

from anatomy.parts import sizes
from anatomy.parts.demands import HEAD_WIDTH
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires

DTYPE = "bf16"  # of all chains and models
# Elements of a pointwise chain's tensor, and sides of a product chain's matrices: kernels from
# about a microsecond to a few hundred. The finer map has the ones between as well.
ELEMENTS = (2**10, 2**16, 2**20, 2**22, 2**23, 2**24, 2**26, 2**29)
FINER_ELEMENTS = tuple(2**power for power in (10, 13, 16, 18, 20, 21, 22, 23, 24, 25, 26, 28, 30))
SIDES = (64, 256, 1024, 2048, 4096)
FINER_SIDES = (64, 128, 256, 512, 768, 1024, 1536, 2048, 4096)
# Width and tokens of the training steps: the first are bound by launches, the last by kernels.
STEPS = ((128, 1024), (512, 1024), (1024, 4096), (2048, 4096))
FINER_STEPS = (*STEPS[:2], (1024, 1024), *STEPS[2:], (4096, 8192))
BATCHES = (16, 8, 4, 2)  # whose graphs lie in pools, largest first: what comes later then fits
# Tensors of a chain: its input and the graph's copy of it, and two of its links, twice.
CHAIN_TENSORS = 6


def chain_cells(links: int, scale: float, full: bool) -> list[dict[str, object]]:
    """The chains: `work`, the `elements` of a tensor, its `side` or length, and their `op`."""
    made = [max(16, int(scale * n)) for n in (FINER_ELEMENTS if full else ELEMENTS)]
    sides = [max(4, int(scale**0.5 * n)) for n in (FINER_SIDES if full else SIDES)]
    found = [("pointwise", n, n) for n in dict.fromkeys(made)]
    found += [("products", side, side * side) for side in dict.fromkeys(sides)]
    return [
        {"op": f"{work} {size}", "work": work, "elements": count, "links": links}
        for work, size, count in found
    ]


def step_cells(layers: int, sequence: int, scale: float, full: bool) -> list[dict[str, object]]:
    """The training steps; scaled down, two can be one."""
    found = {}
    for wide, many in FINER_STEPS if full else STEPS:
        width = max(HEAD_WIDTH, int(scale * wide) // HEAD_WIDTH * HEAD_WIDTH)
        tokens = max(sequence, int(scale * many) // sequence * sequence)
        told = {"op": f"training C={width} tokens={tokens}", "work": "training"}
        found[told["op"]] = told | {"width": width, "tokens": tokens, "layers": layers}
    return list(found.values())


@requires("graph_capture.map")
def map(on: Capacity, links: int, scale: float, full: bool) -> Iterator[Requirement]:
    """Chains in bf16, and the same in float64; a product's factor is wide as well."""
    for cell in chain_cells(links, scale, full):
        n = cell["elements"]
        wide = 8 * n * (1 if cell["work"] == "pointwise" else 3)
        held = CHAIN_TENSORS * n * ITEM_BYTES[DTYPE]
        yield Requirement(cell["op"], held + wide + sizes.check_bytes(n), DTYPE)


@requires("graph_capture.training")
def training(
    on: Capacity, layers: int, sequence: int, scale: float, full: bool
) -> Iterator[Requirement]:
    """An eager step, the pool of its graph, and the answer that both are held against."""
    for cell in step_cells(layers, sequence, scale, full):
        width, tokens = cell["width"], cell["tokens"]
        weights = sizes.weights(width, layers)
        step = sizes.kept(width, layers, tokens) + sizes.running(width, tokens) + weights
        wide = sizes.check_bytes(4 * width**2)
        yield Requirement(cell["op"], (2 * weights + 2 * step) * ITEM_BYTES[DTYPE] + wide, DTYPE)


@requires("graph_capture.pools")
def pools(on: Capacity, width: int, layers: int, sequence: int) -> list[Requirement]:
    """The model, and graphs of its forward pass of all batches."""
    weights = sizes.weights(width, layers)
    passes = sum(sizes.running(width, batch * sequence) for batch in BATCHES)
    # The weights are drawn in float32.
    need = weights * ITEM_BYTES["fp32"] + 2 * passes * ITEM_BYTES[DTYPE]
    return [Requirement("memory", need, DTYPE)]
