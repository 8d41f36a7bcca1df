"""Sizes of what several experiments try, and the bytes that these take: without torch, so that a
plan can tell them. Bytes are of the allocator's, at the worst moment, and rounded up where kernels
differ in what they keep."""

from collections.abc import Iterable
from dataclasses import dataclass

from anatomy.parts.demands import HEAD_WIDTH, heads_of

# Values of width C that a layer keeps of each token for its backward pass: both norms' inputs and
# results, q, k, v, what attention gives and its copy in order, and four C wide two times; and those
# that are there at once while a layer runs, forwards or backwards, beside what is kept.
KEPT, RUNNING = 18, 8
SHORTEST = 128  # of a map of sequences
# Of attention that is held against its exact result: tensors of (B, H, N, D) in float64 and in
# their own format, and tables of the scores of one block of queries, of so many scores, in float64.
WIDE_TENSORS, TENSORS, EXACT_SCORES, BLOCK_SCORES = 8, 24, 6, 2**26
CHECKED_ROWS = 2**26  # elements that `agreement` compares at a time, in float64
# Ways to run a layer, as `anatomy.parts.compiled` does.
EAGER, COMPILED, GRAPHS, TUNED = "eager", "compiled", "reduce-overhead", "max-autotune"
# (width C, tokens T) of the cells, from a layer that the host can hardly keep up with to one whose
# kernels last for a millisecond; and those of them in which CUDA graphs are tried as well. Each
# compilation takes seconds, and all of them together must fit into a minute.
WIDTHS, TOKENS = (256, 1024, 4096), (256, 4096)
GRAPH_CELLS = ((256, 256), (4096, 256), (4096, 4096))
FULL_WIDTHS, FULL_TOKENS = (256, 512, 1024, 2048, 4096, 8192), (64, 256, 1024, 4096, 16384)
TUNED_CELL = (1024, 256)


@dataclass(frozen=True)
class LayerCell:
    """One layer size, and the ways that it is run in."""

    width: int  # C
    tokens: int  # T, of one sequence
    ways: tuple[str, ...]  # without eager, which is always there

    @property
    def columns(self) -> dict[str, int]:
        """The coordinates as columns of a table."""
        return {"width": self.width, "tokens": self.tokens}


def layer_cells(scale: float, full: bool) -> list[LayerCell]:
    """Cells of a map of layers, all different; `full`: a finer map, and max-autotune in one."""
    made = []
    for tokens in FULL_TOKENS if full else TOKENS:
        for width in FULL_WIDTHS if full else WIDTHS:
            ways = [COMPILED]
            ways += [GRAPHS] if full or (width, tokens) in GRAPH_CELLS else []
            ways += [TUNED] if full and (width, tokens) == TUNED_CELL else []
            wide, many = heads_of(width * scale), max(1, int(tokens * scale))
            made.append(LayerCell(wide, many, tuple(ways)))
    return made


def multiples(sizes: Iterable[int], scale: float, step: int) -> tuple[int, ...]:
    """Sizes times `scale` as multiples of `step`; two that differ never become one."""
    grown: list[int] = []
    for size in sizes:
        scaled = max(1, round(scale * size / step)) * step
        while scaled in grown:
            scaled += step
        grown.append(scaled)
    return tuple(grown)


def widths(given: tuple[int, ...], scale: float) -> tuple[int, ...]:
    """Widths of transformers times `scale`: multiples of 16, and of a head where they have one."""
    small = tuple(width for width in given if scale * width < HEAD_WIDTH)
    return multiples(small, scale, 16) + multiples(given[len(small) :], scale, HEAD_WIDTH)


def weights(width: int, layers: int) -> int:
    """Elements of all weights of a transformer of `anatomy.parts.models`."""
    return layers * (12 * width**2 + 13 * width)


def kept(width: int, layers: int, tokens: int) -> int:
    """Elements that its forward pass keeps for the backward pass."""
    return KEPT * layers * tokens * width


def running(width: int, tokens: int) -> int:
    """Elements that are there at once while a layer runs, beside weights and what is kept."""
    return RUNNING * tokens * width


def check_bytes(elements: int) -> int:
    """Bytes in which an answer of so many elements is held against its reference in float64."""
    return 8 * elements + 3 * 8 * min(elements, CHECKED_ROWS)


def attention_bytes(
    heads: int, sequence: int, width: int, item: int, *, causal: bool, scores: int = 0
) -> int:
    """Bytes of attention over elements of `item` bytes, with its exact result: D is the `width` of
    a head, and `scores` are the bytes in which a way writes its scores out."""
    tensors = heads * sequence * width * (8 * WIDE_TENSORS + item * TENSORS)
    exact = EXACT_SCORES * 8 * min(heads * sequence**2, BLOCK_SCORES)
    return tensors + max(scores, exact) + causal * sequence**2


def sets(footprint_bytes: int, cache_bytes: int) -> int:
    """How many sets of buffers `anatomy.measure.cache.rotation` takes for a cache of that size."""
    found = -(-2 * cache_bytes // max(footprint_bytes, 1))
    return 1 if found > 32 else max(2, found)


def sequences(longest: int, step: int) -> list[int]:
    """Lengths from `longest` down by `step`, not below `SHORTEST`, in rising order."""
    found = [longest]
    while found[-1] // step >= SHORTEST:
        found.append(found[-1] // step)
    return found[::-1]
