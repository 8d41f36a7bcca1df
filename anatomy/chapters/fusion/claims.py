"""What is said of operator fusion, put to chains, patterns and matmuls."""

from anatomy.claims import Cases, Finding, Measured, Need, answer, claim
from anatomy.claims.table import Table, judged, known, over_control, speed_up, trusted
from anatomy.judge.rows import Row

CHAINS, PATTERNS, MATMULS = (Need(f"fusion.{name}") for name in ("chains", "patterns", "matmuls"))
ATTENTION = Need("attention.backends")
EAGER, COMPILED, TEMPLATE = "eager", "compiled", "Triton template"
SOFTMAX, BY_ROWS, BY_ALL = "softmax by hand", "x / x.sum(-1)", "x / x.sum()"
FULL, VECTORS = "gate, full w and b", "gate, vectors"


def kernels(row: Row) -> Measured:
    """Kernels that one call launches."""
    why = "no kernels were listed: that takes CUPTI, and a GPU"
    return Measured.counted(known(trusted(row), "launched", why), "count")


def _several(patterns: Table, *ops: str, also=()) -> Finding:
    """Whether each pattern is more than one kernel, compiled, and what `also` is."""
    rows = [*patterns.select(variant=COMPILED, op=ops), *also]
    each = (({"pattern": row["op"]}, row) for row in rows)
    cases = judged(each, lambda count: count.value > 1, kernels)
    return cases.finding(f"Kernels, compiled: {cases.spans('pattern')}.")


# ---- Chains.


@claim(CHAINS, topic="fusion")
def a_fused_chain_is_one_trip(chains: Table) -> Finding:
    """A compiled chain of 32 multiplications takes as long as one multiplication.

    Within a tenth, on a tensor that no cache holds."""
    ratio = chains.ratio("compiled, 32", "compiled, 1", op="multiplications")
    return answer(ratio.at_most(1.1), f"32 over 1, compiled: {ratio.text}.", ratio)


@claim(CHAINS, topic="fusion")
def eager_chains_pay_every_trip(chains: Table) -> Finding:
    """An eager chain of 32 multiplications takes 32 times as long as one.

    Within a tenth."""
    ratio = chains.ratio("eager, 32", "eager, 1", op="multiplications")
    return answer(ratio.near(32), f"32 over 1, eager: {ratio.text}.", ratio)


@claim(CHAINS, topic="fusion")
def the_second_cosine_is_free(chains: Table) -> Finding:
    """In x.cos().cos() the second cosine is free, compiled.

    Two cosines take at most a twentieth longer than one, in one kernel each."""
    ratio = chains.ratio("compiled, 2", "compiled, 1", op="cosines")
    return answer(ratio.at_most(1.05), f"Two over one, compiled: {ratio.text}.", ratio)


@claim(CHAINS, topic="fusion")
def fused_chains_meet_the_ridge(chains: Table) -> Finding:
    """Fused arithmetic is not free for ever: 32 cosines take longer than their trip.

    32 cosines in one kernel take at least twice as long as one."""
    ratio = chains.ratio("compiled, 32", "compiled, 1", op="cosines")
    return answer(ratio.at_least(2.0), f"32 over 1, compiled: {ratio.text}.", ratio)


# ---- What is one kernel.


@claim(PATTERNS)
def pointwise_needs_same_shapes(patterns: Table) -> Finding:
    """A multiplication and an addition with a row and a column, and a sine of gathered rows, are
    more than one kernel."""
    return _several(patterns, "x * row + column", "x[order].sin()")


@claim(PATTERNS, MATMULS)
def other_consumers_never_fuse(patterns: Table, matmuls: Table) -> Finding:
    """A sum that takes squares, the sums of a softmax, and a matmul that takes a conversion are
    more than one kernel each."""
    also = matmuls.select(variant=TEMPLATE, op="a @ int8.to(bf16)")
    return _several(patterns, "(x * x).sum(-1)", SOFTMAX, also=also)


@claim(PATTERNS)
def nothing_shared_never_fuses(patterns: Table) -> Finding:
    """A sine and a cosine of different tensors are two kernels, large ones by default and small
    ones with the option combo_kernels."""
    ops = "x.sin(), y.cos()", "x.sin(), y.cos(), 1024 elements, combo kernels"
    return _several(patterns, *ops)


@claim(PATTERNS)
def reductions_come_first(patterns: Table) -> Finding:
    """A softmax, and a division by the sum of a row or of all, are more than one kernel."""
    return _several(patterns, SOFTMAX, BY_ROWS, BY_ALL)


@claim(PATTERNS)
def softmax_like_is_two_kernels(patterns: Table) -> Finding:
    """A division by the sum of all elements, of many and of 1024, and by that of a row, is more
    than one kernel."""
    return _several(patterns, BY_ALL, f"{BY_ALL}, 1024 elements", BY_ROWS)


@claim(PATTERNS, topic="fusion")
def siblings_share_their_read(patterns: Table) -> Finding:
    """Two operations on one input are one kernel: the input is read once.

    A sine and a cosine of the same tensor, compiled."""
    count = kernels(patterns.row(COMPILED, op="x.sin(), x.cos()"))
    return answer(count.value == 1, f"Compiled: {count.text}.", count)


@claim(MATMULS, topic="fusion")
def templates_take_epilogues(matmuls: Table) -> Finding:
    """A matmul of Inductor's own takes the bias and the ReLU behind it into its kernel.

    One kernel, of relu(a @ b + bias) with a Triton template."""
    count = kernels(matmuls.row(TEMPLATE, op="relu(a @ b + bias)"))
    return answer(count.value == 1, f"With a template: {count.text}.", count)


# ---- The quiz's chain, sigmoid(relu(x * w + b)).


@claim(PATTERNS)
def chain_moves_40n(patterns: Table) -> Finding:
    """With w and b of full size the fused chain is 2.5 times as fast, within a tenth: as 40 bytes
    an element are to 16, if the bytes are all that takes time."""
    gain = speed_up(patterns.row(COMPILED, op=FULL))
    return answer(gain.near(2.5), f"Eager over compiled: {gain.text}.", gain)


@claim(PATTERNS)
def fusion_saves_60_percent(patterns: Table) -> Finding:
    """Of the chain's time, with w and b of full size and as vectors, within a tenth."""
    rows = [({"chain": op}, patterns.row(COMPILED, op=op)) for op in (FULL, VECTORS)]
    cases = judged(rows, lambda share: share.near(0.6), _saved)
    return cases.finding(f"Time saved: {cases.spans('chain')}.")


def _saved(row: Row) -> Measured:
    left = over_control(row)
    ends = 1 - left.value, 1 - left.high, 1 - left.low
    return Measured(*ends, "share", floor=left.floor, exact=left.exact)


@claim(PATTERNS)
def four_launches_become_one(patterns: Table) -> Finding:
    """The chain launches four kernels eager and one compiled."""
    eager, fused = (kernels(patterns.row(way, op=FULL)).value for way in (EAGER, COMPILED))
    seen = f"{eager:.0f} eager, {fused:.0f} compiled."
    return answer((eager, fused) == (4, 1), seen, Measured.counted(eager / fused))


@claim(PATTERNS)
def fusion_comes_first(patterns: Table) -> Finding:
    """The fused chain in float32 is faster than the eager one in bf16, which halves its bytes."""
    ratio = patterns.ratio(COMPILED, "eager bf16", op=VECTORS)
    return answer(ratio.says("faster"), f"Fused over halved: {ratio.text}.", ratio)


@claim(PATTERNS)
def fusion_changes_numbers(patterns: Table) -> Finding:
    """The error of a compiled pattern against float64 is another than that of the eager one."""
    cases = Cases()
    for op in patterns.distinct("op"):
        with cases.at(pattern=op) as case:
            eager, fused = (trusted(patterns.row(way, op=op)) for way in (EAGER, COMPILED))
            case(eager["error"] != fused["error"])
    return cases.finding(f"The errors differ in {cases.true} of {len(cases.measurable)} patterns.")


# ---- Where it does not help.


@claim(MATMULS, ATTENTION)
def fusing_products_rarely_helps(matmuls: Table, attention: Table) -> Finding:
    """Compiled, two large matmuls take at least 0.95 of their eager time; and attention, two
    matmuls with a softmax between them, is not faster as one kernel."""
    rows = (matmuls.row(COMPILED, op="a @ b @ c"), attention.row("flash", op="forward N=8192"))
    which = ({"which": "a @ b @ c"}, {"which": "attention over 8192 tokens"})
    cases = judged(zip(which, rows, strict=True), lambda ratio: ratio.at_least(0.95))
    return cases.finding(f"Fused over unfused: {cases.spans('which')}.")
