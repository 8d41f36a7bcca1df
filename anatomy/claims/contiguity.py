"""What the seed says of contiguity, put to the recordings of `contiguity.bench`.

Times are warm and back to back, as the seed's were. `as_strided_view` is compared with a contiguous
matrix of half the columns, which is the same work; the others with the contiguous matrix.
"""

from anatomy import units
from anatomy.claims import FAILS, HOLDS, NOT_MEASURABLE, Case, Finding, Need, across, claim, seeds
from anatomy.claims.table import Table, span, told

DTYPES = ("fp16", "bf16", "tf32", "fp32")
SIZES = (2048, 4096, 8192)
OPS = ("matmul", "layer_norm", "layer_norm_chain")
VIEWS = ("transposed_view", "sliced_offset_view", "as_strided_view")
WARM = {"quantity": "gpu_warm"}
# How far a ratio may lie from the seed's and still be called the same finding.
NEAR = 0.1


def bench(dtype: str, size: int) -> Need:
    """The recording of `contiguity.bench` for square matrices."""
    return Need("contiguity.bench", {"dtype": dtype, "m": size, "n": size, "k": size})


EVERY = tuple(bench(dtype, size) for dtype in DTYPES for size in SIZES)
FP16, TF32, FP32 = bench("fp16", 2048), bench("tf32", 8192), bench("fp32", 8192)


def _slower(row) -> bool | None:
    """Whether a row is slower than its control; None where that is not decided."""
    return None if row["verdict"] == "undecided" else row["verdict"] == "slower"


def _ratios(tables, variants, ops) -> list[tuple[dict, dict]]:
    """(what tells it apart, row) of each variant, operation and recording."""
    return [
        ({"variant": variant, "op": op} | table.where, table.row(variant, op=op, **WARM))
        for op in ops
        for variant in variants
        for table in tables
    ]


def _all_slower(tables, variants, ops) -> Finding:
    found = _ratios(tables, variants, ops)
    seen = span([row["ratio"] for _, row in found])
    return across(
        [Case(where, _slower(row)) for where, row in found],
        f"Over {len(found)} cases they take {seen} of the control's time.",
    )


@claim(*EVERY)
def non_contiguous_is_slower(*tables: Table) -> Finding:
    """Every view, operation, format and size takes 2 to 10 times the control's time."""
    found = _ratios(tables, VIEWS, OPS)
    seen = span([row["ratio"] for _, row in found])
    return across(
        [Case(where, 2 <= row["ratio"] <= 10) for where, row in found],
        f"Over {len(found)} cases the views take {seen} of the control's time.",
    )


@claim(Need("tensor_layout.report"))
def transposed_view_copies_nothing(report: Table) -> Finding:
    """The layout report says whether the transposed variant only describes another's elements."""
    row = report.row("transposed_view")
    strides = units.format_value(row["strides"])
    return Finding(
        HOLDS if row["is_view"] else FAILS,
        f"The transposed variant is {'' if row['is_view'] else 'not '}a view, strides ({strides}).",
    )


@claim(*EVERY)
def transposed_view_forces_slower_kernels(*tables: Table) -> Finding:
    """The transposed view is slower than contiguous in every operation, format and size."""
    return _all_slower(tables, ("transposed_view",), OPS)


@claim(*EVERY)
def always_check_is_contiguous(*tables: Table) -> Finding:
    """As a rule: every view, none of which is contiguous, is slower than its control."""
    return _all_slower(tables, VIEWS, OPS)


@claim(*EVERY)
def contiguous_is_optimal(*tables: Table) -> Finding:
    """No view is faster than a contiguous matrix with the same work."""
    return _none_faster(tables)


@claim(*EVERY)
def contiguous_is_fastest(*tables: Table) -> Finding:
    """No view is faster than a contiguous matrix with the same work."""
    return _none_faster(tables)


def _none_faster(tables) -> Finding:
    found = _ratios(tables, VIEWS, OPS)
    fastest = min((row for _, row in found), key=lambda row: row["ratio"])
    return across(
        [Case(where, row["verdict"] != "faster") for where, row in found],
        f"The fastest of {len(found)} cases, {fastest['variant']} in {fastest['op']}, takes "
        f"{told(fastest)}.",
    )


def _time_here(table: Table, run: str, also: str = "") -> Finding:
    row = table.row("contiguous", op="matmul", **WARM)
    figure = seeds.figure(run, "matmul", "contiguous")
    here = units.seconds(row["median_s"], row["low_s"], row["high_s"])
    factor = units.ratio(figure.seconds / row["median_s"])
    return Finding(
        NOT_MEASURABLE,
        f"That is another card. Here ({table.label}) it takes {here}; {figure.text} is {factor} "
        f"of that.{also}",
    )


@claim(FP16)
def fp16_2048_time(fp16: Table) -> Finding:
    """The same product here; the statement is about a card that is not."""
    return _time_here(fp16, "fp16-2048")


@claim(TF32, FP32)
def fp32_8192_time(tf32: Table, fp32: Table) -> Finding:
    """The same product here, with TF32 allowed and without: the seed's label does not say which."""
    row = fp32.row("contiguous", op="matmul", **WARM)
    plain = units.seconds(row["median_s"], row["low_s"], row["high_s"])
    return _time_here(tf32, "fp32-8192", f" Without TF32 it takes {plain} here.")


@claim(bench("bf16", 4096))
def bf16_4096_time(bf16: Table) -> Finding:
    """The same product here; the statement is about a card that is not."""
    return _time_here(bf16, "bf16-4096")


@claim(*EVERY)
def views_often_slower(*tables: Table) -> Finding:
    """More than half of all cases of the transposed and the strided view are slower."""
    found = _ratios(tables, ("transposed_view", "as_strided_view"), OPS)
    slower = [row for _, row in found if _slower(row)]
    return Finding(
        HOLDS if 2 * len(slower) > len(found) else FAILS,
        f"{len(slower)} of {len(found)} cases are slower than a contiguous matrix with the same "
        f"work; they take {span([row['ratio'] for _, row in found])} of its time.",
    )


@claim(*EVERY)
def copy_runs_faster_kernels(*tables: Table) -> Finding:
    """The copy's time over the transposed view's, block by block, is below 1 in every case."""
    cases, seen = [], []
    for op in OPS:
        for table in tables:
            ratio, verdict = table.ratio("transposed_contig_copy", "transposed_view", op=op, **WARM)
            seen.append(ratio.median)
            outcome = None if verdict == "undecided" else verdict == "faster"
            cases.append(Case({"op": op} | table.where, outcome))
    return across(cases, f"The copy takes {span(seen)} of the view's time, its making not counted.")


@claim(*EVERY)
def transposed_and_strided_slower(*tables: Table) -> Finding:
    """Both views are slower than a contiguous matrix with the same work in every case."""
    return _all_slower(tables, ("transposed_view", "as_strided_view"), OPS)


@claim(FP16)
def transpose_costs_2_percent(fp16: Table) -> Finding:
    """The transposed view is slower in this very product, beyond the noise floor."""
    row = fp16.row("transposed_view", op="matmul", **WARM)
    floor = units.percent(row["noise_floor"], 2)
    return across([Case({}, _slower(row))], f"Here it is {told(row)}; noise floor {floor}.")


def _near(table: Table, variant: str, run: str, op: str = "matmul") -> tuple[bool, str]:
    """Whether a ratio is within `NEAR` of the seed's, and both of them."""
    row = table.row(variant, op=op, **WARM)
    theirs = seeds.figure(run, op, variant)
    near = abs(row["ratio"] / theirs.ratio - 1) <= NEAR
    return near, f"{told(row)} ({table.label}; the seed {units.ratio(theirs.ratio)})"


@claim(FP16)
def slice_doubles_fp16(fp16: Table) -> Finding:
    """The sliced view's ratio in this very product lies within 10 % of the seed's."""
    near, seen = _near(fp16, "sliced_offset_view", "fp16-2048")
    return across([Case({}, near)], f"Here it is {seen}.")


@claim(*EVERY)
def as_strided_no_overhead(*tables: Table) -> Finding:
    """The strided view takes as long as a contiguous matrix of as many elements."""
    found = _ratios(tables, ("as_strided_view",), OPS)
    cases = [
        Case(where, None if row["verdict"] == "undecided" else row["verdict"] in ("same", "faster"))
        for where, row in found
    ]
    kernels = tables[0].row("as_strided_view", op="matmul", **WARM).get("kernels_per_call")
    copied = f" Kernels in a call of its product: {kernels}." if kernels else ""
    seen = span([row["ratio"] for _, row in found])
    return across(cases, f"It takes {seen} of the time of as much contiguous work.{copied}")


@claim(FP16)
def layer_norm_transposed(fp16: Table) -> Finding:
    """The chain's ratio here lies within 10 % of the seed's; layer_norm's is beside it."""
    near, seen = _near(fp16, "transposed_view", "fp16-2048", "layer_norm_chain")
    real = told(fp16.row("transposed_view", op="layer_norm", **WARM))
    return across([Case({}, near)], f"The chain takes {seen}; F.layer_norm {real}.")


@claim(*EVERY)
def layer_norm_within_10_percent(*tables: Table) -> Finding:
    """The views' ratios, in the chain and in layer_norm, all lie between 0.9 and 1.1."""
    found = _ratios(tables, VIEWS, ("layer_norm", "layer_norm_chain"))
    cases = [Case(where, abs(row["ratio"] - 1) < 0.1) for where, row in found]
    return across(cases, f"They take {span([row['ratio'] for _, row in found])}.")


@claim(FP16)
def chain_is_layer_norm(fp16: Table) -> Finding:
    """The chain launches as many kernels as layer_norm and takes as long."""
    chain = fp16.row("contiguous", op="layer_norm_chain", **WARM)
    real = fp16.row("contiguous", op="layer_norm", **WARM)
    same = chain.get("kernels_per_call") == real.get("kernels_per_call")
    factor = units.ratio(chain["median_s"] / real["median_s"])
    return Finding(
        HOLDS if same else FAILS,
        f"The hand-written chain launches {chain.get('kernels_per_call')} kernels, F.layer_norm "
        f"{real.get('kernels_per_call')}; it takes {factor} as long ({fp16.label}).",
    )


@claim(TF32, FP32)
def tn_kernel_is_better(*tables: Table) -> Finding:
    """The transposed product is faster than the contiguous one, beyond the noise floor."""
    found = [(table, table.row("transposed_view", op="matmul", **WARM)) for table in tables]
    cases = [
        Case(t.where, None if row["verdict"] == "undecided" else row["verdict"] == "faster")
        for t, row in found
    ]
    return across(cases, "; ".join(f"{t.label}: {told(row)}" for t, row in found) + ".")


@claim(TF32, FP32)
def slice_costs_6_percent(*tables: Table) -> Finding:
    """The sliced view's ratio lies within 10 % of the seed's, with TF32 and without."""
    found = [(table.where, *_near(table, "sliced_offset_view", "fp32-8192")) for table in tables]
    cases = [Case(where, near) for where, near, _ in found]
    return across(cases, "; ".join(seen for _, _, seen in found) + ".")


@claim(*EVERY)
def slice_always_doubles(*tables: Table) -> Finding:
    """The sliced view's ratio in a product lies within 10 % of 2 in every format and size."""
    found = _ratios(tables, ("sliced_offset_view",), ("matmul",))
    cases = [Case(where, abs(row["ratio"] / 2 - 1) <= NEAR) for where, row in found]
    return across(cases, f"It takes {span([row['ratio'] for _, row in found])}.")


@claim(*EVERY)
def cublas_repacks(*tables: Table) -> Finding:
    """A product of the transposed view launches more kernels than one of the contiguous matrix."""
    cases, counted = [], set()
    for table in tables:
        view = table.row("transposed_view", op="matmul", **WARM).get("kernels_per_call")
        plain = table.row("contiguous", op="matmul", **WARM).get("kernels_per_call")
        cases.append(Case(table.where, None if None in (view, plain) else view > plain))
        counted.add(view)
    seen = " or ".join(str(count) for count in sorted(counted - {None}))
    return across(cases, f"Kernels in a call of the transposed product: {seen or 'unknown'}.")


@claim(*EVERY)
def equality_proves_compensation(*tables: Table) -> Finding:
    """The view and its copy are equally fast, and both differ from the contiguous matrix."""
    cases = []
    for table in tables:
        _, equal = table.ratio("transposed_contig_copy", "transposed_view", op="matmul", **WARM)
        view = table.row("transposed_view", op="matmul", **WARM)["verdict"]
        copy = table.row("transposed_contig_copy", op="matmul", **WARM)["verdict"]
        decided = "undecided" not in (equal, view, copy)
        # Three layouts that are all equally fast say nothing about who made them so.
        proof = equal == "same" and view != "same"
        cases.append(Case(table.where, proof if decided else None))
    seen = _ratios(tables, ("transposed_view", "transposed_contig_copy"), ("matmul",))
    return across(
        cases,
        "The transposed view and its copy take "
        f"{span([row['ratio'] for _, row in seen])} of the contiguous time.",
    )


@claim(bench("fp16", 2048), bench("fp16", 8192))
def l2_absorbs(small: Table, large: Table) -> Finding:
    """A view slows layer_norm down at 8192, beyond the L2 cache, and not at 2048, within it."""
    cases, seen = [], []
    for variant in ("transposed_view", "sliced_offset_view"):
        within = small.row(variant, op="layer_norm", **WARM)
        beyond = large.row(variant, op="layer_norm", **WARM)
        known = None not in (_slower(within), _slower(beyond))
        outcome = _slower(beyond) and not _slower(within) if known else None
        cases.append(Case({"variant": variant}, outcome))
        seen.append(f"{variant}: {told(within)} at 2048, {told(beyond)} at 8192")
    return across(cases, "; ".join(seen) + ".")
