"""What the seed says of its ladder of scripts, put to one training step on rungs like them, without
the optimizer where kernels and memory are meant, and to the bytes that attentions move."""

import re
from itertools import product

from anatomy.claims import Cases, Finding, Measured, Need, Unmeasured, claim
from anatomy.claims.cases import between
from anatomy.claims.table import Table, bytes_over, decides, over_control, why_not, with_verdict
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
NO_PRODUCTS = f"no kernel of {BASELINE} is known to be a matmul"
NO_ACCOUNT = "only a GPU's allocator keeps an account of its memory"
NAMED = 6  # at the most, of the rungs that are not faster, in the evidence
TRAFFIC = Need("ladder.traffic")
# The two ways to write attention out: as the ladder's rung 1 does, and with the fewest operators.
WRITTEN_OUT = ("written out", "written out, all in bf16")
FUSED_ATTENTION, CLAIMED = "fused", 5.0
# The mask is filled into a copy of the scores, and the counters see kernels alone: a copy is none.
# How often one reads and writes them, in the way that has a mask.
COPIED = {"forward": 2, "forward and backward": 4}


def _width(table: Table) -> str:
    return f"width {table.params['width']}"


def _kernels(table: Table, label: str) -> list[list]:
    """[name, kind, launches, seconds] of a step's kernels; Unmeasured where there are none."""
    row = table.row(label, op=STEP)
    if units.missing(found := row.get("kernel_seconds")) or not found:
        raise Unmeasured(why_not(row) or NO_KERNELS)
    return found


def _products(kernels: list[list]) -> list[str]:
    return [name for name, kind, *_ in kernels if kind == "product"]


@claim(*TRAINING)
def baseline_has_no_cublas(*tables: Table) -> Finding:
    """At every width no matmul of rung 0 is a kernel of cuBLAS, and those of rung 1 are.

    A matmul is a kernel that multiplies matrices, attention's apart; of rung 1 one is enough.
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
                whose = "of cuBLAS" if names and _of_cublas(names[0]) else "not of cuBLAS"
                first = f"{kernel_names.short(names[0])}, {whose}" if names else "none"
                seen.setdefault(label, first)
    shown = "; ".join(f"{label} {name}" for label, name in seen.items())
    return cases.finding(f"The matmul that takes longest: {shown}.")


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
            case(ratio.says("faster"), ratio, f"at {_width(table)} {with_verdict(row)}")
    return cases.finding(f"Time with TF32 over that without: {cases.said()}.")


@claim(*TRAINING)
def amp_is_fp16(*tables: Table) -> Finding:
    """At every width a step with AdamW under autocast is faster in fp16 than in bf16.

    fp16 needs its loss scaled, which is part of the step: bf16 is the one to take where as fast.
    """
    cases, alone = Cases(), Cases()
    for table, (op, found) in product(tables, ((WHOLE, cases), (STEP, alone))):
        with found.at(width=_width(table)) as case:
            ratio = table.ratio(AMP_FP16, AMP_BF16, op=op)
            case(ratio.says("faster"), ratio, f"at {_width(table)} {ratio.text}, {ratio.verdict}")
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
            slower = f"{label} at {_width(table)}, {op}: {ratio.text}"
            case(ratio.says("faster"), ratio, slower if word in ("slower", "same") else "")
    slower = "; ".join([case.said for case in cases if case.said][:NAMED])
    seen = f"Not faster: {slower}." if slower else "No rung was slower."
    return cases.finding(f"Time of a rung over that of the one before it. {seen}")


@claim(*TRAINING)
def baseline_makes_intermediates(*tables: Table) -> Finding:
    """Unfused attention takes over 5 % more peak memory than fused, in bf16, at every width.

    That is rung 1 over rung 2, which differ in nothing else; the peak is on top of the weights.
    """
    cases = Cases()
    for table in tables:
        with cases.at(width=_width(table)) as case:
            rows = [table.measured(label, op=STEP) for label in (AMP_BF16, FUSED)]
            ratio = bytes_over(*rows, "peak_bytes", NO_ACCOUNT)
            case(ratio.at_least(1 + SAME_MEMORY), ratio)
    written_out = "unfused attention over fused"
    return cases.finding(f"Peak memory of a step, {written_out}: {cases.range}.")


@claim(*TRAINING)
def triton_for_the_mlp(*tables: Table) -> Finding:
    """In rung 3 the layer norm, the GELU, and the matmuls are each Triton kernels, by their names.

    A Triton kernel is named after the operators that it does. Of the matmuls all must be.
    """
    cases, others = Cases(), set()
    for table, part in product(tables, (*PARTS, "products")):
        with cases.at(part=part, width=_width(table)) as case:
            kernels = _kernels(table, COMPILED)
            if part in PARTS:
                names = [name for name, *_ in kernels if name.startswith(TRITON)]
                case(any(PARTS[part] in name for name in names))
                continue
            products = _products(kernels)
            own = bool(products) and all(name.startswith(TRITON) for name in products)
            case(own)
            others |= {kernel_names.short(name) for name in products[:1] if not own}
    beside = f" Matmuls that are not Triton's: {'; '.join(sorted(others))}." if others else ""
    return cases.finding(f"Which parts of a compiled step are Triton kernels.{beside}")


@claim(*TRAINING)
def whole_block_fused(*tables: Table) -> Finding:
    """In rung 3 a layer's forward pass and its backward pass are one kernel each, at every width.

    All kernels but clears and copies over twice the layers; with the loss, less than two is one.
    """
    cases = Cases()
    for table in tables:
        row = table.row(COMPILED, op=STEP)
        count, before = _launched(row), _launched(table.row(FUSED, op=STEP))
        with cases.at(width=_width(table)) as case:
            if count is None:
                raise Unmeasured(why_not(row) or NO_KERNELS)
            each = count / (2 * row["layers"])
            was = "" if before is None else f", {before / (2 * row['layers']):.1f} eager"
            seen = f"at {_width(table)} {each:.1f} compiled{was}"
            case(each < 2, Measured.counted(each, "count"), seen)
    return cases.finding(f"Kernels of one layer in one direction: {cases.said()}.")


def _launched(row: Row) -> int | None:
    """Kernels of a step, without what clears or copies memory; None where they were not counted."""
    if units.missing(row.get("kernels_per_call")):
        return None
    listed = row.get("kernel_seconds") or []
    return row["kernels_per_call"] - sum(count for _, kind, count, _ in listed if kind == "other")


@claim(*TRAINING)
def compile_avoids_launches(*tables: Table) -> Finding:
    """In rung 3 CUDA graphs, which launch all kernels at once, make no step 5 % faster.

    Were launches free by fusing alone, nothing would be left for graphs. It can't be told where the
    host queues a step in less than half the time that its kernels run: no launch is waited for.
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
            counts.append(f"{fused} of {eager} at {_width(table)}")
    left = f" Kernels that are left after fusing: {', '.join(counts)}." if counts else ""
    times = f"Time with CUDA graphs over that without, both compiled: {between(taken)}."
    return cases.finding(f"{times}{left}")


def _hides_launches(table: Table, op: str) -> bool:
    """Whether the host stays so far ahead in rung 3 that no kernel waits for its launch."""
    queued = table.row(COMPILED, op=op).get("enqueue_s")
    busy = table.row(COMPILED, op=STEP).get("busy_s")  # of the whole step at least as much
    return not (units.missing(queued) or units.missing(busy)) and queued < HIDDEN * busy


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


@claim(TRAFFIC)
def dram_access_falls(table: Table) -> Finding:
    """Bytes of unfused attention, over those of the fused one, are 5 within 10 %, everywhere.

    Bytes are those of the card's counters, from the least of the repeats to the most; the copies of
    the scores that a mask makes, which they miss, are in the upper end in full. Where they could
    not be read, what the operators read and write counts instead.
    """
    cases, measured, counted, fewer = Cases(), [], [], 0
    for op in table.distinct("op"):
        fused = table.row(FUSED_ATTENTION, op=op)
        for way in WRITTEN_OUT:
            row = table.row(way, op=op)
            where = {name: row[name] for name in ("direction", "sequence", "heads")}
            ratio = _by_counters(row, fused)
            (measured if ratio else counted).append(row)
            fewer += ratio is not None and ratio.low > 1
            ratio = ratio or Measured.counted(row["formula_over_fused"])
            with cases.at(way=way, **where) as case:
                case(ratio.near(CLAIMED), ratio)
    parts = []
    if measured:
        seen = between(row["over_fused"] for row in measured)
        on_paper = between(row["formula_over_fused"] for row in measured)
        parts.append(
            f"The fused one moves fewer bytes in {fewer} of {len(measured)} cases. By the card's "
            f"counters unfused attention moves {seen} the bytes of the fused one; on paper, "
            f"where no cache helps, it is {on_paper}."
        )
    if counted:
        on_paper = between(row["formula_over_fused"] for row in counted)
        parts.append(
            f"In {len(counted)} cases the counters were not read; by the operators' inputs and "
            f"outputs it is {on_paper} the bytes."
        )
    return cases.finding(" ".join(parts))


def _by_counters(row: Row, fused: Row) -> Measured | None:
    """The ratio that the counters saw, from the lowest repeat to the highest and the copies."""
    if units.missing(row.get("dram_bytes")) or units.missing(fused.get("dram_bytes")):
        return None
    masked = row["variant"] == WRITTEN_OUT[0]
    copied = COPIED[row["direction"]] * row["score_bytes"] if masked else 0
    return Measured(
        row["dram_bytes"] / fused["dram_bytes"],
        row["dram_low_bytes"] / fused["dram_high_bytes"],
        (row["dram_high_bytes"] + copied) / fused["dram_low_bytes"],
    )
