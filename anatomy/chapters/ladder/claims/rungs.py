"""What the seed says of its ladder of scripts, put to one training step on rungs like them, at
several widths. Kernels, their seconds and memory are those of the step without the optimizer."""

import re
from itertools import product

from anatomy.claims import Cases, Finding, Measured, Need, Unmeasured, claim
from anatomy.claims.cases import between
from anatomy.claims.table import (
    Table,
    bytes_over,
    decides,
    over_control,
    why_not,
    with_verdict,
)
from anatomy.judge.rows import Row
from anatomy.table import kernel_names, units

WIDTHS = (1024, 2048, 4096)
# Width by width; the first is the experiment's own. At the largest, one call of each way takes a
# second together, and the blocks are given more time.
SIZES = ({}, {"width": 2048}, {"width": 4096, "budget_s": 30.0})
TRAINING = tuple(Need("ladder.training", size) for size in SIZES)
STEP, WHOLE = "forward and backward", "with AdamW"
BASELINE, AMP_BF16, AMP_FP16, TF32 = "0 fp32", "1 amp bf16", "1 amp fp16", "1 tf32"
FUSED, COMPILED, GRAPHS = "2 amp bf16", "3 default", "3 reduce-overhead"
COMPILER = "compiler, first call"
# The seed's steps, each in the way that the ladder counts; rung 5 is not one of the seed's.
SEED_STEPS = (AMP_BF16, FUSED, COMPILED, "4 current")
SAME_MEMORY = 0.05  # two amounts that differ by no larger share are the same
# Kernels of PyTorch's own, and of those that cuBLAS brings.
PYTORCH = re.compile(r"\bat(_cuda_detail)?::")
CUBLAS = re.compile(r"cublas|nvjet|xmma_gemm|gemm|cutlass", re.IGNORECASE)
TRITON = "triton_"
# Operators of the MLP and the norms between the products, as Triton kernels are named after them.
PARTS = {"layer norm": "layer_norm", "GELU": "gelu"}
# Where the host queues a step in less than this share of the time that its kernels run, it stays
# ahead of the GPU, and no launch is waited for.
HIDDEN = 0.5
HIDES = "the host is far ahead of the kernels there, and a launch costs no time, fused or not"
GAIN = 1.05  # what graphs gain, at the least, where launches were left; one process can show it
NO_KERNELS = "no kernels were listed: that takes an NVIDIA GPU"
NO_PRODUCTS = f"no kernel of {BASELINE} is known to be a product"
NO_ACCOUNT = "only a GPU's allocator keeps an account of its memory"
NAMED = 6  # at the most, of the rungs that are not faster, in the evidence


def _width(table: Table) -> str:
    return f"C={table.params['width']}"


def _kernels(table: Table, label: str) -> list[list]:
    """[name, kind, launches, seconds] of a step's kernels; Unmeasured where there are none."""
    row = table.row(label, op=STEP)
    if not units.missing(row.get("kernel_seconds")) and row["kernel_seconds"]:
        return row["kernel_seconds"]
    raise Unmeasured(why_not(row) or NO_KERNELS)


def _products(kernels: list[list]) -> list[str]:
    return [name for name, kind, *_ in kernels if kind == "product"]


@claim(*TRAINING)
def baseline_has_no_cublas(*tables: Table) -> Finding:
    """At every width no product of rung 0 is a kernel of cuBLAS, and those of rung 1 are.

    A product is a kernel that multiplies matrices, attention's apart. Those of cuBLAS are told by
    their names: PyTorch's own are in its namespace. In rung 1 one of them is enough.
    """
    cases, seen = Cases(), dict[str, str]()
    for table in tables:
        with cases.at(width=_width(table)) as case:
            kernels = {label: _kernels(table, label) for label in (BASELINE, AMP_BF16)}
            products = {label: _products(each) for label, each in kernels.items()}
            if not products[BASELINE]:
                raise Unmeasured(NO_PRODUCTS)
            by_cublas = {label: any(map(_of_cublas, names)) for label, names in products.items()}
            case(not by_cublas[BASELINE] and by_cublas[AMP_BF16])
            for label, names in products.items():
                seen.setdefault(label, _whose(names[0]) if names else "none")
    shown = "; ".join(f"{label} {name}" for label, name in seen.items())
    return cases.finding(f"The product that takes longest: {shown}.")


def _whose(kernel: str) -> str:
    """A product's kernel, and whether it is one of cuBLAS."""
    own = "of cuBLAS" if _of_cublas(kernel) else "not of cuBLAS"
    return f"{kernel_names.short(kernel)}, {own}"


def _of_cublas(kernel: str) -> bool:
    own_name = re.split("[<(]", kernel, maxsplit=1)[0]  # those of types stand behind it
    return bool(CUBLAS.search(kernel)) and not PYTORCH.search(own_name)


@claim(*TRAINING)
def tf32_for_fp32(*tables: Table) -> Finding:
    """At every width a step of float32 weights is faster with TF32 than without."""
    cases = Cases()
    for table in tables:
        with cases.at(width=_width(table)) as case:
            row = table.measured(TF32, op=STEP)
            ratio = over_control(row)
            case(ratio.says("faster"), ratio, f"{_width(table)} {with_verdict(row)}")
    return cases.finding(f"Time with TF32 over that without: {cases.said()}.")


@claim(*TRAINING)
def amp_is_fp16(*tables: Table) -> Finding:
    """At every width a step with AdamW under autocast is faster in fp16 than in bf16.

    Autocast does both. fp16 needs its loss scaled, which is part of the step; so where bf16 is as
    fast, or faster, it is the format to take. The evidence has the step without AdamW as well.
    """
    cases, alone = Cases(), Cases()
    for table in tables:
        for op, found in ((WHOLE, cases), (STEP, alone)):
            with found.at(width=_width(table)) as case:
                ratio = table.ratio(AMP_FP16, AMP_BF16, op=op)
                seen = f"{_width(table)} {ratio.text}, {ratio.verdict}"
                case(ratio.says("faster"), ratio, seen)
    rest = f" Without AdamW: {alone.said()}." if alone.measurable else ""
    return cases.finding(f"Time in fp16 with loss scaling over that in bf16: {cases.said()}.{rest}")


@claim(*TRAINING)
def every_step_is_faster(*tables: Table) -> Finding:
    """Each rung from 1 to 4 is faster than the one before, at every width, with AdamW and without.

    A rung stands for itself in the way that the ladder counts.
    """
    cases = Cases()
    for table, op, label in product(tables, (STEP, WHOLE), SEED_STEPS):
        with cases.at(rung=label, step=op, width=_width(table)) as case:
            row = table.measured(label, op=op)
            word = row.get("verdict_before")
            if units.missing(word):
                raise Unmeasured("the rung before could not be measured")
            ends = (row[f"ratio_before{end}"] for end in ("", "_low", "_high"))
            floor, exact = row.get("noise_floor") or 0.0, decides(row)
            ratio = Measured(*ends, floor=floor, exact=exact, verdict=word)
            slower = f"{label} at {_width(table)} {op}, {ratio.text}"
            case(ratio.says("faster"), ratio, slower if word in ("slower", "same") else "")
    slower = "; ".join([case.said for case in cases if case.said][:NAMED])
    seen = f"Not faster: {slower}." if slower else "No rung was slower."
    return cases.finding(f"Time of a rung over that of the one before it. {seen}")


@claim(*TRAINING)
def baseline_makes_intermediates(*tables: Table) -> Finding:
    """Attention written out takes over 5 % more peak memory than fused, in bf16, at every width.

    That is rung 1 over rung 2, which differ in nothing else; rung 0 writes the same tensors out in
    float32. The peak is that of one step on top of the weights.
    """
    cases = Cases()
    for table in tables:
        with cases.at(width=_width(table)) as case:
            rows = [table.measured(label, op=STEP) for label in (AMP_BF16, FUSED)]
            ratio = bytes_over(*rows, "peak_bytes", NO_ACCOUNT)
            case(ratio.at_least(1 + SAME_MEMORY), ratio)
    written_out = "attention written out over fused"
    return cases.finding(f"Peak memory of a step, {written_out}: {cases.range}.")


@claim(*TRAINING)
def triton_for_the_mlp(*tables: Table) -> Finding:
    """In rung 3 the layer norm, the GELU, and the products are each Triton kernels, by their names.

    A Triton kernel is named after the operators that it does. Of the products all must be.
    """
    cases, others = Cases(), set()
    for table, part in product(tables, (*PARTS, "products")):
        with cases.at(part=part, width=_width(table)) as case:
            kernels = _kernels(table, COMPILED)
            triton = [name for name, *_ in kernels if name.startswith(TRITON)]
            if part in PARTS:
                case(any(PARTS[part] in name for name in triton))
                continue
            products = _products(kernels)
            own = bool(products) and all(name in triton for name in products)
            case(own)
            others |= {kernel_names.short(name) for name in products[:1] if not own}
    beside = f" Products that are not Triton's: {'; '.join(sorted(others))}." if others else ""
    return cases.finding(f"Which parts of a compiled step are Triton kernels.{beside}")


@claim(*TRAINING)
def whole_block_fused(*tables: Table) -> Finding:
    """In rung 3 a layer's forward pass and its backward pass are one kernel each, at every width.

    Counted are all kernels of a step over twice its layers; what only clears or copies memory is
    left out. The few of the loss are among them, so less than two is one.
    """
    cases = Cases()
    for table in tables:
        row = table.row(COMPILED, op=STEP)
        count, before = _launched(row), _launched(table.row(FUSED, op=STEP))
        with cases.at(width=_width(table)) as case:
            if count is None:
                raise Unmeasured(why_not(row) or NO_KERNELS)
            each = count / (2 * row["layers"])
            was = "" if before is None else f", {before / (2 * row['layers']):.1f} before"
            seen = f"{_width(table)} {each:.1f}{was}"
            case(each < 2, Measured.counted(each, "count"), seen)
    return cases.finding(f"Kernels of a layer in one direction, compiled: {cases.said()}.")


def _launched(row: Row) -> int | None:
    """Kernels of a step, without what clears or copies memory; None where they were not counted."""
    if units.missing(row.get("kernels_per_call")):
        return None
    listed = row.get("kernel_seconds") or []
    return row["kernels_per_call"] - sum(count for _, kind, count, _ in listed if kind == "other")


@claim(*TRAINING)
def compile_avoids_launches(*tables: Table) -> Finding:
    """In rung 3 CUDA graphs, which launch all kernels at once, make no step 5 % faster.

    Were the overhead of launches gone by fusing alone, there would be nothing left for them. A step
    that they don't make faster says so only where launches could be waited for: it can't where the
    host queues the step in less than half the time that its kernels run.
    """
    cases, taken, counts = Cases(), [], []
    for table in tables:
        for op in (STEP, WHOLE):
            with cases.at(step=op, width=_width(table)) as case:
                ratio = table.ratio(GRAPHS, COMPILED, op=op)
                taken.append(ratio.value)
                faster = ratio.at_most(1 / GAIN)
                if not faster and _hides_launches(table, op):
                    raise Unmeasured(HIDES)
                case(None if faster is None else not faster, ratio)
        fused, eager = (_launched(table.row(label, op=STEP)) for label in (COMPILED, FUSED))
        if fused is not None and eager:
            counts.append(f"{_width(table)} {fused} of {eager}")
    left = f" Launches that fusing leaves: {', '.join(counts)}." if counts else ""
    return cases.finding(
        f"Time with CUDA graphs over that without, both compiled: {between(taken)}.{left}"
    )


def _hides_launches(table: Table, op: str) -> bool:
    """Whether the host stays so far ahead in rung 3 that no kernel waits for its launch."""
    queued = table.row(COMPILED, op=op).get("enqueue_s")
    busy = table.row(COMPILED, op=STEP).get("busy_s")  # of the whole step at least as much
    if units.missing(queued) or units.missing(busy):
        return False
    return queued < HIDDEN * busy


@claim(TRAINING[0])
def cpp_backend(table: Table) -> Finding:
    """The compiler writes Triton for a GPU, which rung 3 then runs, and C++ for a CPU."""
    compiler = table.row(COMPILER)
    codes = {device: compiler.get(f"{device.lower()}_code") for device in ("GPU", "CPU")}
    cases = Cases()
    with cases.at(device="GPU") as case:
        ran = any(name.startswith(TRITON) for name, *_ in _kernels(table, COMPILED))
        case(codes["GPU"] == "triton" and ran)
    with cases.at(device="CPU") as case:
        case(codes["CPU"] == "cpp")
    seen = ", ".join(f"{code or units.NOT_MEASURED} for a {name}" for name, code in codes.items())
    return cases.finding(f"torch.compile writes {seen}: the device decides, not the user.")
