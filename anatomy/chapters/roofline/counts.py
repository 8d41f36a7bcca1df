"""What some thirty PyTorch operations must do at least: operations, bytes, and the roof that they
meet. Without torch. A function of one element counts as the additions, multiplications and calls
(`exp`, `erf`, a root) in its formula, each as one operation."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import NamedTuple

from anatomy.table import formulas

CACHES = 8  # a large tensor, in last-level caches: nothing of it is left there for the next call
COLUMNS = 4096  # of what is reduced row by row
CLASSES = 32_768  # of cross entropy, as a language model has them
SMALL = 4096  # elements of an addition that is over before it has begun
LEAST = 2**18  # elements, so that dropout drops its share of them
FP8, BF16, FP32 = 1, 2, 4  # bytes of an element
HEAD = 128  # width of attention's heads


class Work(NamedTuple):
    """Operations and least bytes of one call."""

    flops: int
    bytes: int


def pointwise(n: int, each: int = 1, reads: int = 1, beside: int = 0) -> Work:
    """A function of `n` fp32 elements with `each` operations for one; of what it writes `beside`
    the result, the bytes of each element."""
    return Work(each * n, formulas.pointwise_bytes(n, FP32, reads) + beside * n)


def reduction(rows: int, columns: int) -> Work:
    """The sum of each row: all is read, and a number for each row is written."""
    return Work(rows * columns, (rows * columns + rows) * FP32)


def softmax(rows: int, columns: int) -> Work:
    """Of each row the largest, a difference, an exponential, the sum and a division an element."""
    return pointwise(rows * columns, 5)


def layer_norm(rows: int, columns: int) -> Work:
    """Mean, difference, square, sum, root, scale, weight and bias: eight an element."""
    return Work(8 * rows * columns, formulas.layer_norm_bytes(rows, columns, FP32))


def rms_norm(rows: int, columns: int) -> Work:
    """Square, sum, scale and weight: four an element."""
    return Work(4 * rows * columns, (2 * rows * columns + columns) * FP32)


def cross_entropy(rows: int, classes: int) -> Work:
    """The log of each row's softmax, of which one element is wanted: the largest, a difference, an
    exponential and the sum. Logits and int64 targets are read, one number is written."""
    return Work(4 * rows * classes, rows * classes * FP32 + 8 * rows + FP32)


def sort(n: int) -> Work:
    """No arithmetic; values are read, values and int64 places are written."""
    return Work(0, n * (2 * FP32 + 8))


def embedding(rows: int, width: int) -> Work:
    """No arithmetic; int64 places and the rows that they name are read, the rows are written."""
    return Work(0, rows * (8 + 2 * width * FP32))


def adamw(n: int) -> Work:
    """Two moments (3 and 4 operations an element), root, division and epsilon (3), decay and step
    (4). Parameter, gradient and moments are read; all but the gradient are written. Source:
    Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2."""
    return Work(14 * n, 7 * n * FP32)


def matmul(m: int, n: int, k: int, item: int, batch: int = 1, out: int = 0) -> Work:
    """`batch` products of A (M x K) and B (K x N), of elements of `item` bytes, `out` in C."""
    more = batch * m * n * ((out or item) - item)
    moved = batch * formulas.matmul_bytes(m, n, k, item) + more
    return Work(batch * formulas.matmul_flops(m, n, k), moved)


def convolution(batch: int, channels: int, side: int) -> Work:
    """3 x 3, stride 1, as many channels out as in, bf16: a product for each of nine places."""
    image = batch * channels * side * side
    return Work(2 * 9 * channels * image, (2 * image + 9 * channels * channels) * BF16)


def attention(heads: int, tokens: int) -> Work:
    """Without a mask, bf16."""
    moved = formulas.attention_bytes(heads, tokens, HEAD, BF16)
    return Work(formulas.attention_flops(heads, tokens, HEAD), moved)


@dataclass(frozen=True)
class Operation:
    """One operation of the table."""

    op: str  # those timed together
    name: str
    dtype: str  # number format of its arithmetic
    size: str
    work: Work
    roof: str  # limit of its memory traffic, or of its products
    beside: str = ""  # what else it is known to do, which its count leaves out


@dataclass(frozen=True)
class Sizes:
    """Lengths that the operations are made of."""

    n: int  # elements of a large fp32 tensor, whole rows of COLUMNS and of CLASSES
    cached: int  # elements of one that fits the cache beside its result
    side: int  # of the square of as many bf16 elements that is read for one vector
    m: int  # side of the matrices of fp32 and TF32; twice that of the other formats
    batch: int  # images, and 64 x 64 matrices by the hundred
    image: tuple[int, int]  # channels and side of an image
    heads: int
    tokens: int

    @property
    def rows(self) -> int:
        """Rows of COLUMNS in a large tensor."""
        return self.n // COLUMNS


def sizes(cache_bytes: int, scale: float) -> Sizes:
    """Sizes for a device with such a cache; `scale` is a factor on elements."""
    wanted = max(LEAST, int(scale * CACHES * cache_bytes / FP32))
    n = -(-wanted // CLASSES) * CLASSES
    root = scale**0.5
    m, tokens = max(32, int(root * 4096) // 32 * 32), max(32, int(root * 4096))
    batch, heads = max(1, int(scale * 64)), max(1, int(root * 32))
    image = max(16, int(root * 16) * 16), max(8, int(root * 56))
    # Half of the cache for both: less is over too soon, and more does not all stay there.
    cached = max(SMALL, int(scale * cache_bytes / 16))
    return Sizes(n, cached, isqrt(2 * n) // 64 * 64, m, batch, image, heads, tokens)


def operations(s: Sizes) -> Iterator[Operation]:
    """All of them, those timed together one after the other, the control of these first."""
    n, rows, m, big = f"{s.n:,}", f"{s.rows:,} × {COLUMNS:,}", s.m, 2 * s.m
    for name, each, reads, beside, why in (
        ("relu", 1, 1, 0, ""),
        ("multiply", 1, 1, 0, ""),
        ("add", 1, 2, 0, ""),
        ("exp", 1, 1, 0, "exponentials are made by a unit of its own, at an eighth of the rate"),
        ("gelu", 5, 1, 0, "`erf` is a polynomial of some twenty operations"),
        ("dropout", 2, 1, 1, "random numbers take tens of integer operations each"),
    ):
        work = pointwise(s.n, each, reads, beside)
        yield Operation("elementwise", name, "fp32", n, work, "copy", why)
    small = pointwise(SMALL, 1, 2)
    yield Operation("short", "add, small", "fp32", f"{SMALL:,}", small, "copy")
    fits = pointwise(s.cached)
    yield Operation("short", "multiply, in the L2", "fp32", f"{s.cached:,}", fits, "copy")
    told = (
        ("sum", Work(s.n, s.n * FP32), "read", "a second pass adds up what the blocks found"),
        ("row means", reduction(s.rows, COLUMNS), "read", ""),
        ("softmax", softmax(s.rows, COLUMNS), "copy", "each row is reduced twice"),
        ("layer_norm", layer_norm(s.rows, COLUMNS), "copy", "each row is reduced"),
        ("rms_norm", rms_norm(s.rows, COLUMNS), "copy", "each row is reduced"),
        ("cumsum", pointwise(s.n), "copy", "each element waits for all before it in its row"),
    )
    for name, work, roof, why in told:
        yield Operation("reductions", name, "fp32", rows, work, roof, why)
    logits = cross_entropy(s.n // CLASSES, CLASSES)
    shape = f"{s.n // CLASSES:,} × {CLASSES:,}"
    why = "all log-probabilities are written, and one of each row is read again"
    yield Operation("reductions", "cross_entropy", "fp32", shape, logits, "read", why)
    turned = Work(0, formulas.copy_bytes(s.rows * COLUMNS, FP32))
    why = "one side of a transpose is not in the order of the memory"
    yield Operation("movement", "transposed copy", "fp32", rows, turned, "copy", why)
    gathered = embedding(s.rows, COLUMNS)
    yield Operation("movement", "embedding", "fp32", rows, gathered, "copy")
    why = "a radix sort reads and writes its keys once for every eight bits"
    yield Operation("movement", "sort", "fp32", f"{s.n // 8:,}", sort(s.n // 8), "copy", why)
    for name in ("AdamW, fused", "AdamW, foreach"):
        why = "each step of the formula is a pass over all tensors" if "foreach" in name else ""
        yield Operation("optimizer", name, "fp32", n, adamw(s.n), "copy", why)
    for dtype in ("fp32", "tf32"):
        work = matmul(m, m, m, FP32)
        yield Operation(f"matmul {dtype}", f"matmul, {dtype}", dtype, cube(m), work, _peak(dtype))
    told = (
        ("matmul, bf16", cube(big), matmul(big, big, big, BF16), _peak("bf16"), ""),
        ("matmul, small", cube(m // 8), matmul(m // 8, m // 8, m // 8, BF16), _peak("bf16"),
         "its tiles are fewer than the SMs"),
        ("matmul, 16 rows", f"16 × {s.side:,} × {s.side:,}",
         matmul(16, s.side, s.side, BF16), "read", ""),
        ("matrix × vector", f"{s.side:,} × {s.side:,}", matmul(s.side, 1, s.side, BF16), "read",
         ""),
        ("bmm", f"{s.batch * 256:,} of {cube(64)}", matmul(64, 64, 64, BF16, s.batch * 256),
         "copy", "a tile is as large as a whole matrix"),
    )  # fmt: skip
    for name, shape, work, roof, why in told:
        yield Operation("matmul bf16", name, "bf16", shape, work, roof, why)
    channels, side = s.image
    shape, work = f"{s.batch} × {channels} × {side} × {side}", convolution(s.batch, *s.image)
    yield Operation("convolution", "conv2d, 3 × 3", "bf16", shape, work, _peak("bf16"))
    why = "exponentials between its two products"
    shape = f"{s.heads} × {s.tokens:,} × {HEAD}"
    work = attention(s.heads, s.tokens)
    yield Operation("attention", "attention", "bf16", shape, work, _peak("bf16"), why)
    work = matmul(big, big, big, FP8, out=BF16)
    yield Operation("matmul fp8", "matmul, fp8", "fp8", cube(big), work, _peak("fp8"))


def cube(side: int) -> str:
    """A size of square matrices, as M x N x K."""
    return " × ".join([f"{side:,}"] * 3)


def _peak(dtype: str) -> str:
    return f"matmul {dtype}"
