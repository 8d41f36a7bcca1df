"""What PyTorch operations must do at least: operations, bytes, and the roof that they meet.
Without torch. A function of one element counts as the additions, multiplications and calls (`exp`,
`erf`, a root) in its formula, each as one operation. Bytes are the least: each input is read once,
each result is written once."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt

from anatomy.table import formulas

CACHES = 8  # a large tensor, in last-level caches: nothing of it is left there for the next call
COLUMNS = 4096  # of what is reduced row by row
CLASSES = 32_768  # of cross entropy, as a language model has them
SMALL = 4096  # elements of an addition that is over before it has begun
LEAST = 2**18  # elements
BF16, FP32, INT64 = 2, 4, 8  # bytes of an element
HEAD = 128  # width of attention's heads


@dataclass(frozen=True)
class Operation:
    """One operation of the table."""

    op: str  # those timed together
    name: str
    dtype: str  # number format of its arithmetic
    size: str
    flops: int
    bytes: int
    roof: str  # the limit of its memory traffic, or of its products
    beside: str = ""  # what else it is known to do, which its counts leave out


@dataclass(frozen=True)
class Sizes:
    """Lengths that the operations are made of."""

    n: int  # elements of a large fp32 tensor, whole rows of COLUMNS and of CLASSES
    cached: int  # elements of one that fits the cache beside its result
    side: int  # of the square of as many bf16 elements that is read for one vector
    m: int  # side of the matrices of fp32 and TF32; twice that of the other formats
    heads: int
    tokens: int

    @property
    def rows(self) -> int:
        """Rows of COLUMNS in a large tensor."""
        return self.n // COLUMNS


def sizes(cache_bytes: int, scale: float) -> Sizes:
    """Sizes for a device with such a cache; `scale` is a factor on elements."""
    wanted, root = max(LEAST, int(scale * CACHES * cache_bytes / FP32)), scale**0.5
    n = -(-wanted // CLASSES) * CLASSES
    m, tokens = max(32, int(root * 4096) // 32 * 32), max(32, int(root * 4096))
    heads = max(1, int(root * 32))
    # Half of the cache for both: less is over too soon, and more does not all stay there.
    cached = max(SMALL, int(scale * cache_bytes / 16))
    return Sizes(n, cached, isqrt(2 * n) // 64 * 64, m, heads, tokens)


def operations(s: Sizes) -> Iterator[Operation]:
    """All of them, those timed together one after the other, the control of these first."""
    for name, (op, size, flops, moved, roof, beside) in (_in_fp32(s) | _optimizers(s)).items():
        yield Operation(op, name, "fp32", size, flops, moved, roof, beside)
    for name, m, n, k, dtype, roof, beside in matmuls(s):
        item = {"bf16": BF16, "fp8": 1}.get(dtype, FP32)
        moved = formulas.matmul_bytes(m, n, k, item) + (m * n if dtype == "fp8" else 0)
        work = f"{m:,} × {n:,} × {k:,}", formulas.matmul_flops(m, n, k), moved
        yield Operation(f"matmul {dtype}", name, dtype, *work, roof, beside)
    work = (
        formulas.attention_flops(s.heads, s.tokens, HEAD),
        formulas.attention_bytes(s.heads, s.tokens, HEAD, BF16),
    )
    size, why = f"{s.heads} × {s.tokens:,} × {HEAD}", "exponentials between its two products"
    yield Operation("attention", "attention", "bf16", size, *work, "matmul bf16", why)


def _in_fp32(s: Sizes) -> dict[str, tuple]:
    """Name -> those timed together, size, operations, least bytes, roof, what else it does."""
    n, one, both = s.n, s.n * FP32, 2 * s.n * FP32  # a tensor read; read, and one written
    whole, rows, logits = f"{n:,}", f"{s.rows:,} × {COLUMNS:,}", s.n // CLASSES
    return {
        "relu": ("elementwise", whole, n, both, "copy", ""),
        "exp": ("elementwise", whole, n, both, "copy",
                "a unit of its own makes exponentials, at an eighth of the rate"),
        "gelu": ("elementwise", whole, 5 * n, both, "copy",
                 "`erf` is a polynomial of some twenty operations"),
        "add, small": ("short", f"{SMALL:,}", SMALL, 3 * SMALL * FP32, "copy", ""),
        "multiply, in the L2": ("short", f"{s.cached:,}", s.cached, 2 * s.cached * FP32, "copy",
                                ""),
        "sum": ("reductions", whole, n, one, "read", "a second pass adds up what blocks found"),
        # The largest, a difference, an exponential, the sum, a division.
        "softmax": ("reductions", rows, 5 * n, both, "copy", "each row is reduced twice"),
        # Mean, difference, square, sum, root, scale, weight and bias.
        "layer_norm": ("reductions", rows, 8 * n,
                       formulas.layer_norm_bytes(s.rows, COLUMNS, FP32), "copy",
                       "each row is reduced"),
        "cumsum": ("reductions", rows, n, both, "copy",
                   "each element waits for all before it in its row"),
        # As softmax without the division; of each row one logarithm is wanted.
        "cross_entropy": ("reductions", f"{logits:,} × {CLASSES:,}", 4 * n,
                          one + logits * INT64 + FP32, "read",
                          "all log-probabilities are written, and one of a row is read again"),
        "transposed copy": ("movement", rows, 0, both, "copy",
                            "one side of a transpose is not in the order of the memory"),
        "sort": ("movement", f"{n // 8:,}", 0, n // 8 * (2 * FP32 + INT64), "copy",
                 "a radix sort reads and writes its keys once for every eight bits"),
    }  # fmt: skip


def _optimizers(s: Sizes) -> dict[str, tuple]:
    """As `_in_fp32`. Two moments take 3 and 4 operations an element, root, division and epsilon 3,
    decay and step 4; parameter, gradient and moments are read, all but the gradient are written.
    Source: Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2."""
    told = "optimizer", f"{s.n:,}", 14 * s.n, 7 * s.n * FP32, "copy"
    passes = "each step of the formula is a pass over all tensors"
    return {"AdamW, fused": (*told, ""), "AdamW, foreach": (*told, passes)}


def matmuls(s: Sizes) -> Iterator[tuple[str, int, int, int, str, str, str]]:
    """Name, M, N, K, number format, roof, and what else it does; FP8's result is in bf16."""
    m, big, few, side = s.m, 2 * s.m, s.m // 8, s.side
    for dtype in ("fp32", "tf32"):
        yield f"matmul, {dtype}", m, m, m, dtype, f"matmul {dtype}", ""
    yield "matmul, bf16", big, big, big, "bf16", "matmul bf16", ""
    why = "its tiles are fewer than the SMs"
    yield "matmul, small", few, few, few, "bf16", "matmul bf16", why
    yield "matmul, 16 rows", 16, side, side, "bf16", "read", ""
    yield "matrix × vector", side, 1, side, "bf16", "read", ""
    yield "matmul, fp8", big, big, big, "fp8", "matmul fp8", ""
