"""Operations and bytes of one call: what the mathematics needs, whatever a kernel does. Bytes are
the least that must cross the memory bus when nothing is cached and nothing is read twice, of
elements of `itemsize` bytes. A kernel that moves more is then shown as further from its limit, as
it should be. An operation counts as an addition or a multiplication, so a multiply-add is two, as
in datasheets."""


def matmul_flops(m: int, n: int, k: int) -> int:
    """Floating-point operations of C = A @ B, where A is M x K and B is K x N: 2 M N K. Each of the
    M N results is a sum of K products. The exact count is M N (2 K - 1); by custom the first
    addition, to zero, counts too. Source: Golub and Van Loan, Matrix Computations, 4th ed. (2013),
    section 1.1.15."""
    return 2 * m * n * k


def matmul_bytes(m: int, n: int, k: int, itemsize: int) -> int:
    """Least bytes of C = A @ B: A (M x K) and B (K x N) are read once, C (M x N) is written once.
    Source: Williams, Waterman and Patterson 2009, Roofline, doi:10.1145/1498765.1498785, which
    counts compulsory traffic alike."""
    return (m * k + k * n + m * n) * itemsize


def layer_norm_bytes(rows: int, cols: int, itemsize: int) -> int:
    """Least bytes of layer_norm over the last axis: x read once, y written once, weight and bias.
    `rows` rows of `cols` elements are normalised, each by itself. Its mean and variance can be had
    from one reading, if the row is kept on the chip. Source: Ba, Kiros and Hinton 2016,
    arXiv:1607.06450, equation 4."""
    return (2 * rows * cols + 2 * cols) * itemsize


def copy_bytes(n: int, itemsize: int) -> int:
    """Bytes of a copy of `n` elements of `itemsize` bytes: each is read once and written once.
    Source: STREAM Copy counts alike; McCalpin 1995, cs.virginia.edu/stream/ref.html."""
    return pointwise_bytes(n, itemsize)


def pointwise_bytes(n: int, itemsize: int, reads: int = 1, writes: int = 1) -> int:
    """Least bytes of a function of single elements over `n` places. `reads` tensors are read and
    `writes` are written, of `n` elements of `itemsize` bytes each; one that is broadcast from few
    elements counts as none. Source: as for `copy_bytes`."""
    return n * itemsize * (reads + writes)


def attention_flops(
    heads: int, sequence: int, head_width: int, *, backward: bool = False, causal: bool = False
) -> int:
    """Floating-point operations of attention, of its products alone: 4 H N^2 D forward.

    H are the heads of all sequences of the batch together, N the tokens of a sequence, D a head's
    width. Forward there are two products with N^2 entries on one side (scores, and their sum over
    v); backward there are four (gradients of v, of the probabilities, of q and of k), so that both
    together take 12 H N^2 D. A fused kernel computes the scores a second time on its way back, 2 H
    N^2 D that the mathematics does not need and that do not count here. Of a causal mask, under
    which a token sees only itself and those before it, the N (N + 1) / 2 pairs that are left count.

    Source: Dao 2023, FlashAttention-2, arXiv:2307.08691, section 4.1, which counts 4 N^2 D for each
    head forward, half of it under a causal mask, and 2.5 times that backward with the second
    computation of the scores."""
    pairs = sequence * (sequence + 1) // 2 if causal else sequence * sequence
    return (12 if backward else 4) * heads * pairs * head_width


def attention_bytes(
    heads: int, sequence: int, head_width: int, itemsize: int, *, backward: bool = False
) -> int:
    """Least bytes of attention: q, k and v are read once and the output is written once. With the
    backward pass the gradient of the output is read too, and those of q, k and v are written.
    Scores need not leave the chip: Dao et al. 2022, FlashAttention, arXiv:2205.14135, section
    3.2."""
    return (8 if backward else 4) * heads * sequence * head_width * itemsize


def layer_flops(width: int, tokens: int, sequence: int) -> int:
    """Floating-point operations of the products of one layer's forward pass: 24 C^2 for each token
    (q, k, v and out 8 C^2, the perceptron 16 C^2) and 4 C T for attention's two products over T
    tokens. Source: Narayanan et al. 2021, arXiv:2104.04473, appendix; Hoffmann et al. 2022,
    arXiv:2203.15556, appendix F, counts alike."""
    return tokens * (24 * width * width + 4 * width * sequence)
