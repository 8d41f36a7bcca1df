"""What the ladder takes of a device. All ways of a comparison are there at once, beside rung 0's
attention, which is written out in float32. Bytes for each weight are of what they keep of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from anatomy.parts import sizes
from anatomy.record.requirements import ITEM_BYTES, Capacity, Requirement, requires
from anatomy.table import formulas

HEAD = 128  # width D of one attention head, as in the rungs' scripts
FORWARD_BACKWARD, WITH_OPTIMIZER = "forward and backward", "with AdamW"
FORWARD, DECODING = "forward", "decoding"
DIRECTIONS = (FORWARD, FORWARD_BACKWARD)  # in which attention's bytes are counted
# Bytes for each weight while all ways are set up. Transformer Engine's models and all graphs keep
# what is theirs: gradients, and weights cast to another format.
SET_UP = {
    "weights and gradients in float32, held once": 4 + 4,
    "those in bfloat16, held once": 2 + 2,
    "four models of Transformer Engine, and two graphs of them": 4 * (2 + 2 + 2) + 2 * (2 + 2),
    "four graphs of compiled steps": (4 + 2) + 3 * (2 + 2),
    "rung 0's gradients, a way's own, and its casts": 4 + 4 + 4,
    "the optimizer that takes a loss scale out": 4 + 4,
}
# The same with AdamW: two moments for each rung, and float32 weights where its model has none; rung
# 5's copies the gradients as well.
WITH_OPTIMIZERS = {
    "weights and gradients in float32, held once, and four rungs' moments": 4 + 4 + 4 * 8,
    "those in bfloat16, and an optimizer's": 2 + 2 + 4 + 4 + 8,
    "one model of Transformer Engine": 2 + 2 + 2 + 4 + 8,
    "graphs of compiled steps, and a way's casts": (4 + 2) + 3 * (2 + 2) + 4,
}
BYTES_PER_WEIGHT = max(sum(SET_UP.values()), sum(WITH_OPTIMIZERS.values()))
BYTES_PER_ACTIVATION = 400  # for each element of a layer's input: of rung 0 and of six CUDA graphs
# Of the forward pass alone: eight models in float32, six of Transformer Engine with what it keeps
# of them, and rung 5's three, two of them in FP8 as well.
FORWARD_BYTES_PER_WEIGHT = 64
CACHES = 20  # ways of decoding at most, each with keys and values of its own
FEW_BYTES_PER_WEIGHT = 70  # weights, gradients and copies in several formats, of six models
RESULTS = 40  # in float32, as large as a layer's input, that one layer's step keeps at most
SCORES = 5  # tables of scores in float32 at work, of attention written out
# M, N, K of large products. The best shape is looked for in bf16, which most rungs multiply in.
LARGE = ((8192, 8192, 8192), (16384, 8192, 8192), (8192, 16384, 4096))
ONE = ((8192, 8192, 4096),)
SIDES = {"bf16": LARGE, "fp8": LARGE, "fp16": LARGE[:1], "tf32": LARGE[:1], "fp32": ONE}
LAYERS = 1  # of a regime: what is compiled has to be compiled in every cell, four times
# Width C, sequences B, tokens T of each: few tokens, where the host sets the pace, at the least
# width, and a whole batch at each.
CELLS = ((1024, 1, 1024), (1024, 8, 1024), (2048, 8, 1024), (4096, 8, 1024))
FULL_WIDTHS = (512, 1024, 2048, 4096, 6144)
FULL_INPUTS = ((1, 256), (1, 1024), (2, 2048), (8, 1024), (4, 4096), (16, 2048))
SHORTEST, LENGTHS = 512, 3  # a profiler takes a fiftieth of a second for each kernel, or more
SCORE_BYTES = dict(zip(DIRECTIONS, (12, 16), strict=True))  # of each, by attention written out
VECTORS = 12  # tensors of (B, H, T, D) in bfloat16 of one attention
FLUSHES = 8  # caches that are read to empty one


@dataclass(frozen=True)
class Size:
    """The transformer and the tokens of one step."""

    width: int
    layers: int
    batch: int
    sequence: int

    @property
    def tokens(self) -> int:
        """Of all sequences together."""
        return self.batch * self.sequence

    @property
    def weights(self) -> int:
        """Elements of all matrices."""
        return 12 * self.width**2 * self.layers

    @property
    def score_bytes(self) -> int:
        """Of one layer's table of scores in float32."""
        return 4 * heads(self.width) * self.tokens * self.sequence

    @property
    def flops(self) -> int:
        """Of the forward pass's products: those of the backward pass are twice as many."""
        return self.layers * formulas.layer_flops(self.width, self.tokens, self.sequence)

    @property
    def attention_flops(self) -> int:
        """The part of these that is attention's own: its two products over the sequence."""
        return self.layers * self.tokens * 4 * self.width * self.sequence

    @property
    def columns(self) -> dict[str, int]:
        """The same as columns of a table."""
        return {
            "width": self.width,
            "layers": self.layers,
            "batch": self.batch,
            "sequence": self.sequence,
        }

    @property
    def op(self) -> str:
        """What tables call it where there are several."""
        return f"training C={self.width} B={self.batch} T={self.sequence}"


def heads(width: int) -> int:
    """Attention heads H of a model of this width C; the scripts' own are wider than `models`'."""
    return max(1, width // HEAD)


def batch_of(width: int) -> int:
    """Sequences of a step, where nobody says how many and there is room."""
    return 8 if width <= 1024 else 4


def training_size(on: Capacity, width: int, layers: int, batch: int, sequence: int) -> Size:
    """The step of all rungs; where `batch` is 0, with as many sequences as fit."""
    size = Size(width, layers, batch or batch_of(width), sequence)
    while not batch and size.batch > 1 and all_ways(FORWARD_BACKWARD, size).why_not(on):
        size = replace(size, batch=size.batch // 2)
    return size


def all_ways(op: str, size: Size) -> Requirement:
    """Of every way's step, set up; of each layer rung 0 keeps a table of scores."""
    scores = (size.layers + SCORES) * size.score_bytes
    kept = BYTES_PER_ACTIVATION * size.layers * size.tokens * size.width
    return Requirement(op, size.weights * BYTES_PER_WEIGHT + scores + kept)


def few_ways(op: str, size: Size) -> Requirement:
    """Of the steps in bf16 and FP8 alone, and of what rung 0 keeps for the backward pass."""
    kept = RESULTS * 4 * size.tokens * size.width
    need = size.weights * FEW_BYTES_PER_WEIGHT + size.layers * (SCORES * size.score_bytes + kept)
    return Requirement(op, need, "bf16")


def without_gradients(op: str, size: Size, context: int = 0) -> Requirement:
    """Of every way's forward pass, or one token's over keys and values of `context` tokens."""
    scores = SCORES * 4 * heads(size.width) * size.tokens * (context or size.sequence)
    kept = CACHES * 4 * 2 * size.layers * size.width * context
    passing = RESULTS * 4 * size.tokens * size.width
    return Requirement(op, size.weights * FORWARD_BYTES_PER_WEIGHT + scores + kept + passing)


def model_products(size: Size) -> list[tuple[int, int, int]]:
    """M, N, K of the model's own largest products."""
    return [(size.tokens, 4 * size.width, size.width), (size.tokens, size.width, 4 * size.width)]


def ceiling_op(products: str) -> str:
    """What tables call the products of one number format."""
    return f"ceiling {products}"


def ceiling_sides(
    products: str, own: Sequence[tuple[int, int, int]], scale: float
) -> list[tuple[int, int, int]]:
    """M, N, K of the products of one number format; in bf16 the model's `own` are among them."""
    large = [tuple(max(16, int(scale * s) // 16 * 16) for s in each) for each in SIDES[products]]
    return list(dict.fromkeys([*(own if products == "bf16" else ()), *large]))


def ceilings(own: Sequence[tuple[int, int, int]], scale: float = 1.0) -> Iterator[Requirement]:
    """Factors of all shapes of a format, and of one its products and the exact one."""
    for products in SIDES:
        item, wide = ITEM_BYTES[products], 8 if products == "fp32" else 4
        shapes = ceiling_sides(products, own, scale)
        held = sum(item * (m * k + k * n) for m, n, k in shapes)
        most = max(
            wide * (m * k + k * n + m * n) + 3 * max(item, 2) * m * n + sizes.check_bytes(m * n)
            for m, n, k in shapes
        )
        yield Requirement(ceiling_op(products), held + most, products)


@requires("ladder.training")
def training(
    on: Capacity, width: int, layers: int, batch: int, sequence: int
) -> Iterator[Requirement]:
    """The card's best products, then both comparisons."""
    size = training_size(on, width, layers, batch, sequence)
    yield from ceilings(model_products(size))
    for op in (FORWARD_BACKWARD, WITH_OPTIMIZER):
        yield all_ways(op, size)


@requires("ladder.inference")
def inference(
    on: Capacity, width: int, layers: int, batch: int, sequence: int
) -> Iterator[Requirement]:
    """Every way's forward pass."""
    yield without_gradients(FORWARD, Size(width, layers, batch, sequence))


@requires("ladder.decoding")
def decoding(on: Capacity, width: int, layers: int, context: int) -> Iterator[Requirement]:
    """Every way's next token."""
    yield without_gradients(DECODING, Size(width, layers, 1, 1), context)


@requires("ladder.graphs", "ladder.autotuned")
def graphs(
    on: Capacity, width: int, layers: int, batch: int, sequence: int
) -> Iterator[Requirement]:
    """One step in three modes."""
    yield few_ways(FORWARD_BACKWARD, Size(width, layers, batch, sequence))


def regime_cells(scale: float, full: bool) -> list[Size]:
    """The cells of the map of regimes, all different."""

    def wide(width: int) -> int:
        scaled = int(width * scale)
        return scaled // HEAD * HEAD or max(16, scaled // 16 * 16)  # FP8 asks for sixteens

    wanted = [(width, *each) for each in FULL_INPUTS for width in FULL_WIDTHS] if full else CELLS
    found = (
        Size(wide(width), LAYERS, batch, max(16, int(sequence * scale)))
        for width, batch, sequence in wanted
    )
    return list(dict.fromkeys(found))


@requires("ladder.regimes")
def regimes(on: Capacity, scale: float, full: bool) -> list[Requirement]:
    """Of each cell by itself."""
    return [few_ways(size.op, size) for size in regime_cells(scale, full)]


def shapes(heads: int, longest: int) -> list[tuple[int, int]]:
    """Tokens T and heads H whose attention is counted, shortest first: with `heads` heads, whose
    scores fit a cache where T is short, and with as many as the tokens of the longest make up, as
    a batch has."""
    lengths = []
    while longest >= SHORTEST and len(lengths) < LENGTHS:
        lengths.insert(0, longest)
        longest //= 4
    lengths = lengths or [longest]
    return list(dict.fromkeys((T, H) for T in lengths for H in (heads, heads * lengths[-1] // T)))


def traffic_op(direction: str, sequence: int, heads: int) -> str:
    """What tables call one attention whose bytes are counted."""
    return f"{direction} T={sequence} H={heads}"


@requires("ladder.traffic")
def traffic(on: Capacity, heads: int, head_width: int, longest: int) -> Iterator[Requirement]:
    """Attention written out, one call at a time, and what empties the cache."""
    for T, H in shapes(heads, longest):
        for direction in DIRECTIONS:
            scores = SCORE_BYTES[direction] * H * T**2 + T**2
            held = VECTORS * ITEM_BYTES["bf16"] * H * T * head_width + FLUSHES * on.cache_bytes
            yield Requirement(traffic_op(direction, T, H), scores + held, "bf16")
