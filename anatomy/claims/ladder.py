"""What the seed says of its ladder of scripts, put to one training step on rungs like them.

The rungs are held against each other at several widths. Times are those of a step as the host sees
it; kernels, their seconds and memory are those of the step without the optimizer.
"""

import re
from math import inf

from anatomy import kernel_names, units
from anatomy.claims import Case, Finding, Measured, Need, across, claim, within
from anatomy.claims.table import Table, between, over_control, told, why_not

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
# Two amounts of memory are the same if they differ by at most a twentieth.
SAME_MEMORY = 0.05
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
NO_KERNELS = "no kernels were listed: that takes an NVIDIA GPU"
NO_PRODUCTS = f"no kernel of {BASELINE} is known to be a product"


def _width(table: Table) -> dict[str, str]:
    """What tells the tables apart."""
    return {"width": f"C={table.params['width']}"}


def _kernels(table: Table, label: str) -> list[list] | str:
    """[name, kind, launches, seconds] of a step's kernels, or why there are none."""
    row = table.row(label, op=STEP)
    if not units.missing(row.get("kernel_seconds")) and row["kernel_seconds"]:
        return row["kernel_seconds"]
    return why_not(row) or NO_KERNELS


def _is_faster(word: str) -> bool | None:
    """What a verdict says of being faster; None where it is undecided."""
    return None if word == "undecided" else word == "faster"


def _paired(table: Table, label: str, over: str, op: str) -> tuple[Measured, str] | str:
    """Time of one way over that of another in one op with its verdict, or why there is none."""
    row, below = table.row(label, op=op), table.row(over, op=op)
    if reason := why_not(row) or why_not(below):
        return reason
    ratio, word = table.ratio(label, over, op=op)
    floor = row.get("noise_floor") or 0.0
    return Measured(ratio.median, ratio.low, ratio.high, floor=floor), word


@claim(*TRAINING)
def baseline_has_no_cublas(*tables: Table) -> Finding:
    """At every width no product of rung 0 is a kernel of cuBLAS, and those of rung 1 are.

    A product is a kernel that multiplies matrices, attention's apart. Those of cuBLAS are told by
    their names: PyTorch's own are in its namespace. In rung 1 one of them is enough.
    """
    cases, seen = [], {}
    for table in tables:
        listed = {label: _kernels(table, label) for label in (BASELINE, AMP_BF16)}
        if reason := next((each for each in listed.values() if isinstance(each, str)), None):
            cases.append(Case(_width(table), None, why=reason))
            continue
        products = {
            label: [name for name, kind, *_ in each if kind == "product"]
            for label, each in listed.items()
        }
        if not products[BASELINE]:
            cases.append(Case(_width(table), None, why=NO_PRODUCTS))
            continue
        by_cublas = {label: any(map(_of_cublas, names)) for label, names in products.items()}
        cases.append(Case(_width(table), not by_cublas[BASELINE] and by_cublas[AMP_BF16]))
        for label, names in products.items():
            seen.setdefault(label, _whose(names[0]) if names else "none")
    shown = "; ".join(f"{label} {name}" for label, name in seen.items())
    return across(cases, f"The product that takes longest: {shown}.")


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
    cases, seen = [], []
    for table in tables:
        row = table.row(TF32, op=STEP)
        if reason := why_not(row):
            cases.append(Case(_width(table), None, why=reason))
            continue
        cases.append(Case(_width(table), _is_faster(row["verdict"]), over_control(row)))
        seen.append(f"{_width(table)['width']} {told(row)}")
    return across(cases, f"Time with TF32 over that without: {'; '.join(seen)}.")


@claim(*TRAINING)
def amp_is_fp16(*tables: Table) -> Finding:
    """At every width a step with AdamW under autocast is faster in fp16 than in bf16.

    Autocast does both. fp16 needs its loss scaled, which is part of the step; so where bf16 is as
    fast, or faster, it is the format to take. The evidence has the step without AdamW as well.
    """
    cases, seen, alone = [], [], []
    for table in tables:
        bare = _paired(table, AMP_FP16, AMP_BF16, STEP)
        if not isinstance(bare, str):
            alone.append(f"{_width(table)['width']} {bare[0].text}, {bare[1]}")
        found = _paired(table, AMP_FP16, AMP_BF16, WHOLE)
        if isinstance(found, str):
            cases.append(Case(_width(table), None, why=found))
            continue
        ratio, word = found
        cases.append(Case(_width(table), _is_faster(word), ratio))
        seen.append(f"{_width(table)['width']} {ratio.text}, {word}")
    beside = f" Without AdamW: {'; '.join(alone)}." if alone else ""
    said = f"Time in fp16 with loss scaling over that in bf16: {'; '.join(seen)}.{beside}"
    return across(cases, said)


@claim(*TRAINING)
def every_step_is_faster(*tables: Table) -> Finding:
    """Each rung from 1 to 4 is faster than the one before, at every width, with AdamW and without.

    A rung stands for itself in the way that the ladder counts.
    """
    cases, slower = [], []
    for table in tables:
        for op in (STEP, WHOLE):
            for label in SEED_STEPS:
                where = {"rung": label, "step": op} | _width(table)
                row = table.row(label, op=op)
                word = row.get("verdict_before")
                if reason := why_not(row) or (
                    "the rung before could not be measured" if units.missing(word) else ""
                ):
                    cases.append(Case(where, None, why=reason))
                    continue
                ends = (row[f"ratio_before{end}"] for end in ("", "_low", "_high"))
                ratio = Measured(*ends, floor=row.get("noise_floor") or 0.0)
                cases.append(Case(where, _is_faster(word), ratio))
                if word in ("slower", "same"):
                    slower.append(f"{label} at {where['width']} {op}, {ratio.text}")
    said = f"Not faster: {'; '.join(slower[:6])}." if slower else "No rung was slower."
    return across(cases, f"Time of a rung over that of the one before it. {said}")


@claim(*TRAINING)
def baseline_makes_intermediates(*tables: Table) -> Finding:
    """Attention written out takes over 5 % more peak memory than fused, in bf16, at every width.

    That is rung 1 over rung 2, which differ in nothing else; rung 0 writes the same tensors out in
    float32. The peak is that of one step on top of the weights.
    """
    cases, seen = [], []
    for table in tables:
        above, below = (table.row(label, op=STEP) for label in (AMP_BF16, FUSED))
        sizes = [row.get("peak_bytes") for row in (above, below)]
        if reason := why_not(above) or why_not(below):
            cases.append(Case(_width(table), None, why=reason))
            continue
        if any(map(units.missing, sizes)):
            why = "only a GPU's allocator keeps an account of its memory"
            cases.append(Case(_width(table), None, why=why))
            continue
        ratio = sizes[0] / sizes[1]
        number = Measured(ratio, ratio, ratio)
        cases.append(Case(_width(table), within(number, 1 + SAME_MEMORY, inf), number))
        seen.append(ratio)
    said = between(seen) if seen else units.NOT_MEASURED
    return across(cases, f"Peak memory of a step, attention written out over fused: {said}.")


@claim(*TRAINING)
def triton_for_the_mlp(*tables: Table) -> Finding:
    """In rung 3 the layer norm, the GELU, and the products are each Triton kernels, by their names.

    A Triton kernel is named after the operators that it does. Of the products all must be.
    """
    cases, seen = [], set()
    for table in tables:
        listed = _kernels(table, COMPILED)
        if isinstance(listed, str):
            cases += [
                Case({"part": part} | _width(table), None, why=listed)
                for part in (*PARTS, "products")
            ]
            continue
        triton = [name for name, *_ in listed if name.startswith(TRITON)]
        for part, word in PARTS.items():
            there = any(word in name for name in triton)
            cases.append(Case({"part": part} | _width(table), there))
        products = [name for name, kind, *_ in listed if kind == "product"]
        own = bool(products) and all(name.startswith(TRITON) for name in products)
        cases.append(Case({"part": "products"} | _width(table), own))
        seen |= {kernel_names.short(name) for name in products[:1] if not own}
    beside = f" Products that are not Triton's: {'; '.join(sorted(seen))}." if seen else ""
    return across(cases, f"Which parts of a compiled step are Triton kernels.{beside}")


@claim(*TRAINING)
def whole_block_fused(*tables: Table) -> Finding:
    """In rung 3 a layer's forward pass and its backward pass are one kernel each, at every width.

    Counted are all kernels of a step over twice its layers; what only clears or copies memory is
    left out. The few of the loss are among them, so less than two is one.
    """
    cases, seen = [], []
    for table in tables:
        row = table.row(COMPILED, op=STEP)
        count, before = _launched(row), _launched(table.row(FUSED, op=STEP))
        if count is None:
            cases.append(Case(_width(table), None, why=why_not(row) or NO_KERNELS))
            continue
        each = count / (2 * row["layers"])
        number = Measured(each, each, each, "count")
        cases.append(Case(_width(table), each < 2, number))
        was = "" if before is None else f", {before / (2 * row['layers']):.1f} before"
        seen.append(f"{_width(table)['width']} {each:.1f}{was}")
    return across(cases, f"Kernels of a layer in one direction, compiled: {'; '.join(seen)}.")


def _launched(row: dict) -> int | None:
    """Kernels of a step, without what clears or copies memory; None where they were not counted."""
    if units.missing(row.get("kernels_per_call")):
        return None
    listed = row.get("kernel_seconds") or []
    return row["kernels_per_call"] - sum(count for _, kind, count, _ in listed if kind == "other")


@claim(*TRAINING)
def compile_avoids_launches(*tables: Table) -> Finding:
    """In rung 3 CUDA graphs, which launch all kernels at once, make no step faster.

    Were the overhead of launches gone by fusing alone, there would be nothing left for them. A step
    that they don't make faster says so only where launches could be waited for: it can't where the
    host queues the step in less than half the time that its kernels run.
    """
    cases, seen, counts = [], [], []
    for table in tables:
        for op in (STEP, WHOLE):
            where = {"step": op} | _width(table)
            found = _paired(table, GRAPHS, COMPILED, op)
            if isinstance(found, str):
                cases.append(Case(where, None, why=found))
                continue
            ratio, word = found
            faster = _is_faster(word)
            if not faster and _hides_launches(table, op):
                cases.append(Case(where, None, ratio, why=HIDES))
            else:
                cases.append(Case(where, None if faster is None else not faster, ratio))
            seen.append(ratio.value)
        fused, eager = (_launched(table.row(label, op=STEP)) for label in (COMPILED, FUSED))
        if fused is not None and eager:
            counts.append(f"{_width(table)['width']} {fused} of {eager}")
    said = between(seen) if seen else units.NOT_MEASURED
    left = f" Launches that fusing leaves: {', '.join(counts)}." if counts else ""
    return across(cases, f"Time with CUDA graphs over that without, both compiled: {said}.{left}")


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
    listed = _kernels(table, COMPILED)
    cases = []
    if isinstance(listed, str):
        cases.append(Case({"device": "GPU"}, None, why=listed))
    else:
        ran = any(name.startswith(TRITON) for name, *_ in listed)
        cases.append(Case({"device": "GPU"}, codes["GPU"] == "triton" and ran))
    cases.append(Case({"device": "CPU"}, codes["CPU"] == "cpp"))
    said = ", ".join(f"{code or units.NOT_MEASURED} for a {name}" for name, code in codes.items())
    return across(cases, f"torch.compile writes {said}: the device decides, not the user.")
