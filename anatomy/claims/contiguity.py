"""What the seed says of contiguity, put to the recordings of `contiguity.bench`.

Times are warm and back to back, as the seed's were. `as_strided_view` is compared with a contiguous
matrix of half the columns, which is the same work; the others with the contiguous matrix.
"""

from collections.abc import Callable

from anatomy import units
from anatomy.claims import (
    FAILS,
    HOLDS,
    INCONCLUSIVE,
    NOT_MEASURABLE,
    Case,
    Finding,
    Need,
    across,
    claim,
    seeds,
    within,
)
from anatomy.claims.table import Table, between, over_control, quotient, time_of, told, why_not
from anatomy.rows import Row

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


def _slower(row: Row) -> bool | None:
    """Whether a row is slower than its control; None where that is not decided."""
    return None if row["verdict"] == "undecided" else row["verdict"] == "slower"


def _ratios(tables, variants, ops) -> list[tuple[dict, Row]]:
    """(what tells it apart, row) of each variant, operation and recording."""
    return [
        ({"variant": variant, "op": op} | table.where, table.row(variant, op=op, **WARM))
        for op in ops
        for variant in variants
        for table in tables
    ]


def _cases(found: list[tuple[dict, Row]], true: Callable[[Row], bool | None]) -> list[Case]:
    """A case for each row; rows that could not be measured here say why."""
    return [
        Case(where, None, why=reason)
        if (reason := why_not(row))
        else Case(where, true(row), over_control(row))
        for where, row in found
    ]


def _seen(found: list[tuple[dict, Row]]) -> str:
    """The smallest and largest ratio of the rows that were measured."""
    there = [row["ratio"] for _, row in found if not why_not(row)]
    return between(there) if there else units.NOT_MEASURED


def _in(low: float, high: float) -> Callable[[Row], bool | None]:
    """Whether a ratio lies between two numbers, with its interval and floor."""
    return lambda row: within(over_control(row), low, high)


def _all_slower(tables, variants, ops) -> Finding:
    found = _ratios(tables, variants, ops)
    return across(
        _cases(found, _slower),
        f"Over {len(found)} cases they take {_seen(found)} of the control's time.",
    )


def _views_take(tables, low: float, high: float) -> Finding:
    found = _ratios(tables, VIEWS, OPS)
    return across(
        _cases(found, _in(low, high)),
        f"Over {len(found)} cases the views take {_seen(found)} of the control's time.",
    )


@claim(*EVERY)
def non_contiguous_is_slower(*tables: Table) -> Finding:
    """Every view, operation, format and size takes 2 to 10 times the control's time."""
    return _views_take(tables, 2.0, 10.0)


@claim(*EVERY)
def contiguous_beats_strided(*tables: Table) -> Finding:
    """Every view, operation, format and size takes 1.5 to 3 times the control's time."""
    return _views_take(tables, 1.5, 3.0)


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
    there = [row for _, row in found if not why_not(row)]
    fastest = min(there, key=lambda row: row["ratio"], default=None)
    seen = (
        f"The fastest of {len(found)} cases, {fastest['variant']} in {fastest['op']}, takes "
        f"{told(fastest)}."
        if fastest
        else ""
    )
    # What can't be told from its control is not faster either, and not shown to be no faster.
    return across(
        _cases(
            found,
            lambda row: None if row["verdict"] == "undecided" else row["verdict"] != "faster",
        ),
        seen,
    )


def _time_here(table: Table, run: str, also: str = "") -> Finding:
    row = table.measured("contiguous", op="matmul", **WARM)
    figure = seeds.figure(run, "matmul", "contiguous")
    here = time_of(row)
    if figure.gpu.split()[-1] in table.machine.get("gpu", ""):  # the seed's card, by its number
        near = within(here, figure.seconds * (1 - NEAR), figure.seconds * (1 + NEAR))
        return across([Case({}, near, here)], f"Here ({table.label}) it takes {here.text}.{also}")
    factor = units.ratio(figure.seconds / here.value)
    return Finding(
        NOT_MEASURABLE,
        f"That is another card. Here ({table.label}) it takes {here.text}; {figure.text} is "
        f"{factor} of that.{also}",
        here,
    )


@claim(FP16)
def fp16_2048_time(fp16: Table) -> Finding:
    """The same product here; only on the seed's own card is the statement true or false."""
    return _time_here(fp16, "fp16-2048")


@claim(TF32, FP32)
def fp32_8192_time(tf32: Table, fp32: Table) -> Finding:
    """The same product here, with TF32 allowed and without: the seed's label does not say which."""
    plain = time_of(fp32.measured("contiguous", op="matmul", **WARM))
    return _time_here(tf32, "fp32-8192", f" Without TF32 it takes {plain.text} here.")


@claim(bench("bf16", 4096))
def bf16_4096_time(bf16: Table) -> Finding:
    """The same product here; only on the seed's own card is the statement true or false."""
    return _time_here(bf16, "bf16-4096")


@claim(*EVERY)
def views_often_slower(*tables: Table) -> Finding:
    """More than half of all cases of the transposed and the strided view are slower."""
    found = _ratios(tables, ("transposed_view", "as_strided_view"), OPS)
    cases = _cases(found, _slower)
    slower = sum(case.outcome is True for case in cases)
    faster = sum(case.outcome is False for case in cases)
    pooled = across(cases, "")
    if pooled.word == NOT_MEASURABLE:
        return pooled
    # Undecided cases might go either way, and must not decide.
    often = HOLDS if 2 * slower > len(cases) else FAILS if 2 * faster >= len(cases) else ""
    return Finding(
        often or INCONCLUSIVE,
        f"{slower} of {len(found)} cases are slower than a contiguous matrix with the same "
        f"work; they take {_seen(found)} of its time.",
        pooled.measured,
    )


@claim(*EVERY)
def copy_runs_faster_kernels(*tables: Table) -> Finding:
    """The copy's time over the transposed view's, block by block, is below 1 in every case."""
    cases, seen = [], []
    for op in OPS:
        for table in tables:
            pair = [table.row(v, op=op, **WARM) for v in ("transposed_contig_copy", VIEWS[0])]
            reason = next(filter(None, map(why_not, pair)), "")
            where = {"op": op} | table.where
            if reason:
                cases.append(Case(where, None, why=reason))
                continue
            ratio, verdict = table.ratio("transposed_contig_copy", VIEWS[0], op=op, **WARM)
            seen.append(ratio.median)
            outcome = None if verdict == "undecided" else verdict == "faster"
            cases.append(Case(where, outcome))
    taken = between(seen) if seen else units.NOT_MEASURED
    return across(cases, f"The copy takes {taken} of the view's time, its making not counted.")


@claim(*EVERY)
def transposed_and_strided_slower(*tables: Table) -> Finding:
    """Both views are slower than a contiguous matrix with the same work in every case."""
    return _all_slower(tables, ("transposed_view", "as_strided_view"), OPS)


@claim(FP16)
def transpose_costs_2_percent(fp16: Table) -> Finding:
    """The transposed view is slower in this very product, beyond the noise floor."""
    row = fp16.measured("transposed_view", op="matmul", **WARM)
    floor = units.percent(row["noise_floor"], 2)
    return across(
        [Case({}, _slower(row), over_control(row))],
        f"Here it is {told(row)}; noise floor {floor}.",
    )


def _near(table: Table, variant: str, run: str, op: str = "matmul") -> tuple[Case, str]:
    """Whether a ratio is within `NEAR` of the seed's, and both of them in words."""
    row = table.measured(variant, op=op, **WARM)
    theirs = seeds.figure(run, op, variant).ratio
    near = _in(theirs * (1 - NEAR), theirs * (1 + NEAR))(row)
    seen = f"{told(row)} ({table.label}; the seed {units.ratio(theirs)})"
    return Case(table.where, near, over_control(row)), seen


@claim(FP16)
def slice_doubles_fp16(fp16: Table) -> Finding:
    """The sliced view's ratio in this very product lies within 10 % of the seed's."""
    case, seen = _near(fp16, "sliced_offset_view", "fp16-2048")
    return across([case], f"Here it is {seen}.")


@claim(*EVERY)
def as_strided_no_overhead(*tables: Table) -> Finding:
    """The strided view takes as long as a contiguous matrix of as many elements."""
    found = _ratios(tables, ("as_strided_view",), OPS)
    cases = _cases(
        found,
        lambda row: None if row["verdict"] == "undecided" else row["verdict"] in ("same", "faster"),
    )
    kernels = tables[0].row("as_strided_view", op="matmul", **WARM).get("kernels_per_call")
    copied = f" Kernels in a call of its product: {kernels}." if kernels else ""
    return across(cases, f"It takes {_seen(found)} of the time of as much contiguous work.{copied}")


@claim(FP16)
def layer_norm_transposed(fp16: Table) -> Finding:
    """The chain's ratio here lies within 10 % of the seed's; layer_norm's is beside it."""
    case, seen = _near(fp16, "transposed_view", "fp16-2048", "layer_norm_chain")
    real = told(fp16.measured("transposed_view", op="layer_norm", **WARM))
    return across([case], f"The chain takes {seen}; F.layer_norm {real}.")


@claim(*EVERY)
def layer_norm_within_10_percent(*tables: Table) -> Finding:
    """The views' ratios, in the chain and in layer_norm, all lie between 0.9 and 1.1."""
    found = _ratios(tables, VIEWS, ("layer_norm", "layer_norm_chain"))
    return across(_cases(found, _in(0.9, 1.1)), f"They take {_seen(found)}.")


@claim(FP16)
def chain_is_layer_norm(fp16: Table) -> Finding:
    """The chain launches as many kernels as layer_norm; its time is beside it."""
    chain = fp16.measured("contiguous", op="layer_norm_chain", **WARM)
    real = fp16.measured("contiguous", op="layer_norm", **WARM)
    counts = [row.get("kernels_per_call") for row in (chain, real)]
    factor = quotient(time_of(chain), time_of(real))
    seen = f"it takes {factor.text} as long ({fp16.label})."
    if None in counts:
        return Finding(INCONCLUSIVE, f"The kernels were not counted; {seen}", factor)
    return Finding(
        HOLDS if counts[0] == counts[1] else FAILS,
        f"The hand-written chain launches {counts[0]} kernels, F.layer_norm {counts[1]}; {seen}",
        factor,
    )


@claim(TF32, FP32)
def tn_kernel_is_better(*tables: Table) -> Finding:
    """The transposed product is faster than the contiguous one, beyond the noise floor."""
    found = [(t.where, t.measured("transposed_view", op="matmul", **WARM)) for t in tables]
    cases = _cases(
        found, lambda row: None if row["verdict"] == "undecided" else row["verdict"] == "faster"
    )
    said = (f"{' '.join(map(str, where.values()))}: {told(row)}" for where, row in found)
    return across(cases, "; ".join(said) + ".")


@claim(TF32, FP32)
def slice_costs_6_percent(*tables: Table) -> Finding:
    """The sliced view's ratio lies within 10 % of the seed's, with TF32 and without."""
    found = [_near(table, "sliced_offset_view", "fp32-8192") for table in tables]
    return across([case for case, _ in found], "; ".join(seen for _, seen in found) + ".")


@claim(*EVERY)
def slice_always_doubles(*tables: Table) -> Finding:
    """The sliced view's ratio in a product lies within 10 % of 2 in every format and size."""
    found = _ratios(tables, ("sliced_offset_view",), ("matmul",))
    cases = _cases(found, _in(2 * (1 - NEAR), 2 * (1 + NEAR)))
    return across(cases, f"It takes {_seen(found)}.")


@claim(*EVERY)
def cublas_repacks(*tables: Table) -> Finding:
    """A product of the transposed view launches more kernels than one of the contiguous matrix."""
    cases, counted = [], set()
    for table in tables:
        rows = [table.row(v, op="matmul", **WARM) for v in ("transposed_view", "contiguous")]
        if reason := next(filter(None, map(why_not, rows)), ""):
            cases.append(Case(table.where, None, why=reason))
            continue
        view, plain = (row.get("kernels_per_call") for row in rows)
        cases.append(Case(table.where, None if None in (view, plain) else view > plain))
        counted.add(view)
    seen = " or ".join(str(count) for count in sorted(counted - {None}))
    return across(cases, f"Kernels in a call of the transposed product: {seen or 'unknown'}.")


@claim(*EVERY)
def equality_proves_compensation(*tables: Table) -> Finding:
    """The view and its copy are equally fast, and both differ from the contiguous matrix."""
    cases = []
    for table in tables:
        rows = [table.row(v, op="matmul", **WARM) for v in (VIEWS[0], "transposed_contig_copy")]
        if reason := next(filter(None, map(why_not, rows)), ""):
            cases.append(Case(table.where, None, why=reason))
            continue
        _, equal = table.ratio("transposed_contig_copy", "transposed_view", op="matmul", **WARM)
        view, copy = (row["verdict"] for row in rows)
        decided = "undecided" not in (equal, view, copy)
        # Three layouts that are all equally fast say nothing about who made them so.
        proof = equal == "same" and view != "same"
        cases.append(Case(table.where, proof if decided else None))
    seen = _ratios(tables, ("transposed_view", "transposed_contig_copy"), ("matmul",))
    return across(
        cases, f"The transposed view and its copy take {_seen(seen)} of the contiguous time."
    )


@claim(bench("fp16", 2048), bench("fp16", 8192))
def l2_absorbs(small: Table, large: Table) -> Finding:
    """A view slows layer_norm down at 8192, beyond the L2 cache, and not at 2048, within it."""
    cases, seen = [], []
    for variant in ("transposed_view", "sliced_offset_view"):
        within_l2 = small.measured(variant, op="layer_norm", **WARM)
        beyond = large.measured(variant, op="layer_norm", **WARM)
        known = None not in (_slower(within_l2), _slower(beyond))
        outcome = _slower(beyond) and not _slower(within_l2) if known else None
        cases.append(Case({"variant": variant}, outcome))
        seen.append(f"{variant}: {told(within_l2)} at 2048, {told(beyond)} at 8192")
    return across(cases, "; ".join(seen) + ".")
