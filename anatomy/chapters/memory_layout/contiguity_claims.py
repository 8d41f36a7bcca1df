"""What the seed says of contiguity, put to warm times, back to back as the seed's were. The control
of `as_strided_view` has half the columns, which is the same work."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from anatomy.claims import NOT_MEASURABLE, Cases, Finding, Need, answer, claim, seeds
from anatomy.claims.cases import between
from anatomy.claims.findings import span
from anatomy.claims.needs import EVERY, FP16, FP32, TF32, WARM, bench
from anatomy.claims.table import Table, judged, known, over_control, quotient, time_of, with_verdict
from anatomy.table import units

OPS = ("matmul", "layer_norm", "layer_norm_chain")
VIEWS = ("transposed_view", "sliced_offset_view", "as_strided_view")
COPY = "transposed_contig_copy"


def _rows(tables: Iterable[Table], variants: Iterable[str], ops: Iterable[str]) -> list[tuple]:
    """What tells it apart, and the row, of each operation, variant and recording.

    TF32 is a way to multiply: a layer norm's kernels are those of fp32, which stand for both.
    """
    return [
        ({"op": op, "variant": variant} | table.where, table.row(variant, op=op, **WARM))
        for op, variant, table in product(ops, variants, tables)
        if op == "matmul" or table.params.get("dtype") != "tf32"
    ]


def _by_op(cases: Cases, seen: str) -> Finding:
    """The verdict over all operations, with each operation's own ratios: a median over several
    would be that of none."""
    each = []
    for (op,), ratios in cases.numbers_by("op").items():
        ends = between(ratio.value for ratio in ratios)
        each.append(f"{op} {ends}, {span(ratios).middle} in the median")
    found = cases.finding(f"{seen}: {'; '.join(each)}.")
    texts = [found.evidence, found.condition, *found.short]
    for op, variant in product(OPS, VIEWS):
        texts = [text.replace(f"{op} {variant}", f"{op} of {variant}") for text in texts]
    evidence, condition, *short = texts
    how = {"evidence": evidence, "condition": condition, "short": tuple(short)}
    return replace(found, measured=None, **how)


def _all_slower(tables: Iterable[Table], variants: Iterable[str]) -> Finding:
    cases = judged(_rows(tables, variants, OPS), lambda ratio: ratio.says("slower"))
    return _by_op(cases, "Time over that of the control")


def _views_take(tables: Iterable[Table], low: float, high: float) -> Finding:
    cases = judged(_rows(tables, VIEWS, OPS), lambda ratio: ratio.within(low, high))
    return _by_op(cases, "Time over that of the control")


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
    is_view = f"is {'' if row['is_view'] else 'not '}a view"
    return answer(row["is_view"], f"The transposed variant {is_view}, strides ({strides}).")


@claim(*EVERY)
def transposed_view_forces_slower_kernels(*tables: Table) -> Finding:
    """The transposed view is slower than contiguous in every operation, format and size."""
    return _all_slower(tables, ("transposed_view",))


@claim(*EVERY)
def always_check_is_contiguous(*tables: Table) -> Finding:
    """As a rule: every view, none of which is contiguous, is slower than its control."""
    return _all_slower(tables, VIEWS)


@claim(*EVERY)
def contiguous_is_optimal(*tables: Table) -> Finding:
    """No view is faster than a contiguous matrix with the same work."""
    return _none_faster(tables)


@claim(*EVERY)
def contiguous_is_fastest(*tables: Table) -> Finding:
    """No view is faster than a contiguous matrix with the same work."""
    return _none_faster(tables)


def _none_faster(tables: Iterable[Table]) -> Finding:
    rows = _rows(tables, VIEWS, OPS)
    # What can't be told from its control is not faster either, and not shown to be no faster.
    cases = judged(rows, lambda ratio: ratio.says("slower", "same"))
    there = [row for (_, row), case in zip(rows, cases, strict=True) if not case.why]
    if not there:
        return cases.finding("")
    fastest = min(there, key=lambda row: row["ratio"])
    seen = f"{fastest['variant']} in {fastest['op']}, takes {with_verdict(fastest)}"
    return _by_op(cases, f"The fastest of {len(rows)} cases, {seen}. Time over that of the control")


def _time_here(table: Table, run: str, also: str = "") -> Finding:
    here = time_of(table.measured("contiguous", op="matmul", **WARM))
    figure = seeds.figure(run, "matmul", "contiguous")
    seen = f"Here ({table.label}) it takes {here.text}"
    if figure.gpu.split()[-1] in table.machine.get("gpu", ""):  # the seed's card, by its number
        return answer(here.near(figure.seconds), f"{seen}.{also}", here)
    factor = units.ratio(figure.seconds / here.value)
    seen = f"That is another card. {seen}; {figure.text} is {factor} of that.{also}"
    return Finding(NOT_MEASURABLE, seen, here)


@claim(FP16)
def fp16_2048_time(fp16: Table) -> Finding:
    """The same matmul here; only on the original card is the statement true or false."""
    return _time_here(fp16, "fp16-2048")


@claim(TF32, FP32)
def fp32_8192_time(tf32: Table, fp32: Table) -> Finding:
    """The same matmul here, with TF32 and without: the original suite does not say which."""
    plain = time_of(fp32.measured("contiguous", op="matmul", **WARM))
    return _time_here(tf32, "fp32-8192", f" Without TF32 it takes {plain.text} here.")


@claim(bench("bf16", 4096))
def bf16_4096_time(bf16: Table) -> Finding:
    """The same matmul here; only on the original card is the statement true or false."""
    return _time_here(bf16, "bf16-4096")


@claim(*EVERY)
def views_often_slower(*tables: Table) -> Finding:
    """More than half of all cases of the transposed and the strided view are slower."""
    rows = _rows(tables, ("transposed_view", "as_strided_view"), OPS)
    cases = judged(rows, lambda ratio: ratio.says("slower"))
    pooled, total = cases.finding(""), len(cases)
    if pooled.word == NOT_MEASURABLE:
        return pooled
    # Undecided cases might go either way, and must not decide.
    often = True if 2 * cases.true > total else False if 2 * cases.false >= total else None
    seen = (
        f"{cases.true} of {total} cases are slower than a contiguous matrix with the same work; "
        f"they take {cases.range} of its time."
    )
    return answer(often, seen, pooled.measured)


@claim(*EVERY)
def copy_runs_faster_kernels(*tables: Table) -> Finding:
    """The copy's time over the transposed view's, block by block, is below 1 in every case."""
    cases, taken = Cases(), []
    for op, table in product(OPS, tables):
        if op != "matmul" and table.params.get("dtype") == "tf32":
            continue  # the kernels of fp32
        with cases.at(op=op, **table.where) as case:
            ratio = table.ratio(COPY, VIEWS[0], op=op, **WARM)
            case(ratio.says("faster"))
            taken.append(ratio.value)
    seen = f"{between(taken)} of the view's time, its making not counted"
    return cases.finding(f"The copy takes {seen}.")


@claim(*EVERY)
def transposed_and_strided_slower(*tables: Table) -> Finding:
    """Both views are slower than a contiguous matrix with the same work in every case."""
    return _all_slower(tables, ("transposed_view", "as_strided_view"))


@claim(FP16)
def transpose_costs_2_percent(fp16: Table) -> Finding:
    """The transposed view is slower in this very matmul, beyond the noise floor."""
    row = fp16.measured("transposed_view", op="matmul", **WARM)
    floor, ratio = units.percent(row["noise_floor"], 2), over_control(row)
    seen = f"Here it is {with_verdict(row)}; noise floor {floor}."
    return answer(ratio.says("slower"), seen, ratio)


def _as_in_seed(tables: Iterable[Table], variant: str, run: str, op: str = "matmul") -> Cases:
    """Whether a ratio is near the seed's in each recording; each case says both of them."""
    cases, theirs = Cases(), seeds.figure(run, op, variant).ratio
    for table in tables:
        row = table.measured(variant, op=op, **WARM)
        seen = f"{with_verdict(row)} ({table.label}; the original suite has {units.ratio(theirs)})"
        with cases.at(**table.where) as case:
            case(over_control(row).near(theirs), over_control(row), seen)
    return cases


@claim(FP16)
def slice_doubles_fp16(fp16: Table) -> Finding:
    """The sliced view's ratio in this very matmul lies within 10 % of the original suite's."""
    cases = _as_in_seed([fp16], "sliced_offset_view", "fp16-2048")
    return cases.finding(f"Here it is {cases.said()}.")


@claim(*EVERY)
def as_strided_no_overhead(*tables: Table) -> Finding:
    """The strided view takes as long as a contiguous matrix of as many elements."""
    rows = _rows(tables, ("as_strided_view",), OPS)
    cases = judged(rows, lambda ratio: ratio.says("same", "faster"))
    kernels = tables[0].row("as_strided_view", op="matmul", **WARM).get("kernels_per_call")
    copied = f" Kernels in a call of its matmul: {kernels}." if kernels else ""
    taken = f"It takes {cases.range} of the time of as much contiguous work."
    return cases.finding(f"{taken}{copied}")


@claim(FP16)
def layer_norm_transposed(fp16: Table) -> Finding:
    """The chain's ratio here lies within 10 % of the original one; layer_norm's is beside it."""
    cases = _as_in_seed([fp16], "transposed_view", "fp16-2048", "layer_norm_chain")
    real = with_verdict(fp16.measured("transposed_view", op="layer_norm", **WARM))
    return cases.finding(f"The chain takes {cases.said()}; F.layer_norm {real}.")


@claim(*EVERY)
def layer_norm_within_10_percent(*tables: Table) -> Finding:
    """The views' ratios, in the chain and in layer_norm, all lie between 0.9 and 1.1."""
    rows = _rows(tables, VIEWS, ("layer_norm", "layer_norm_chain"))
    cases = judged(rows, lambda ratio: ratio.within(0.9, 1.1))
    return cases.every(f"They take {cases.range}.")


@claim(FP16)
def chain_is_layer_norm(fp16: Table) -> Finding:
    """The chain launches as many kernels as layer_norm; its time is beside it."""
    chain = fp16.measured("contiguous", op="layer_norm_chain", **WARM)
    real = fp16.measured("contiguous", op="layer_norm", **WARM)
    counts = [row.get("kernels_per_call") for row in (chain, real)]
    factor = quotient(time_of(chain), time_of(real))
    outcome, kernels = None, "The kernels were not counted"
    if None not in counts:
        outcome = counts[0] == counts[1]
        kernels = f"The hand-written chain launches {counts[0]} kernels, F.layer_norm {counts[1]}"
    seen = f"{kernels}; it takes {factor.text} as long ({fp16.label})."
    return answer(outcome, seen, factor)


@claim(TF32, FP32)
def tn_kernel_is_better(*tables: Table) -> Finding:
    """The transposed matmul is faster than the contiguous one, beyond the noise floor."""
    found = [(t.where, t.measured("transposed_view", op="matmul", **WARM)) for t in tables]
    cases = judged(found, lambda ratio: ratio.says("faster"))
    texts = (f"{' '.join(map(str, where.values()))}: {with_verdict(row)}" for where, row in found)
    return cases.finding(f"{'; '.join(texts)}.")


@claim(TF32, FP32)
def slice_costs_6_percent(*tables: Table) -> Finding:
    """The sliced view's ratio lies within 10 % of the original suite's, with TF32 and without."""
    cases = _as_in_seed(tables, "sliced_offset_view", "fp32-8192")
    return cases.finding(f"{cases.said()}.")


@claim(*EVERY)
def slice_always_doubles(*tables: Table) -> Finding:
    """The sliced view's ratio in a matmul lies within 10 % of 2 in every format and size."""
    rows = _rows(tables, ("sliced_offset_view",), ("matmul",))
    cases = judged(rows, lambda ratio: ratio.near(2.0))
    return cases.every(f"It takes {cases.range}.")


@claim(*EVERY)
def cublas_repacks(*tables: Table) -> Finding:
    """A matmul of the transposed view launches more kernels than one of the contiguous matrix."""
    cases, counted = Cases(), set()
    for table in tables:
        with cases.at(**table.where) as case:
            pair = [table.measured(v, op="matmul", **WARM) for v in (VIEWS[0], "contiguous")]
            view, plain = (row.get("kernels_per_call") for row in pair)
            case(None if None in (view, plain) else view > plain)
            counted.add(view)
    seen = " or ".join(str(count) for count in sorted(counted - {None}))
    return cases.finding(f"Kernels in a call of the transposed matmul: {seen or 'unknown'}.")


@claim(*EVERY)
def equality_proves_compensation(*tables: Table) -> Finding:
    """The view and its copy are equally fast, and both differ from the contiguous matrix."""
    cases, taken = Cases(), []
    for table in tables:
        with cases.at(**table.where) as case:
            equal = table.ratio(COPY, VIEWS[0], op="matmul", **WARM).says("same")
            ratios = [over_control(table.row(v, op="matmul", **WARM)) for v in (VIEWS[0], COPY)]
            taken += [ratio.value for ratio in ratios]
            as_plain = [ratio.says("same") for ratio in ratios]
            # Three layouts that are all equally fast say nothing about who made them so.
            refuted = equal is False or as_plain[0]
            case(False if refuted else None if None in (equal, *as_plain) else True)
    seen = f"{between(taken)} of the contiguous time"
    return cases.finding(f"The transposed view and its copy take {seen}.")


@claim(bench("fp16", 2048), bench("fp16", 8192))
def l2_absorbs(small: Table, large: Table) -> Finding:
    """A view slows layer_norm down at 8192, beyond the L2 cache, and not at 2048, within it."""
    cases = Cases()
    for variant in ("transposed_view", "sliced_offset_view"):
        rows = [table.measured(variant, op="layer_norm", **WARM) for table in (small, large)]
        inside, beyond = (over_control(row).says("slower") for row in rows)
        texts = [with_verdict(row) for row in rows]
        outcome = None if None in (inside, beyond) else beyond and not inside
        with cases.at(variant=variant) as case:
            case(outcome, said=f"{variant}: {texts[0]} at 2048, {texts[1]} at 8192")
    return cases.finding(f"{cases.said()}.")


@claim(FP16, Need("allocator.costs"))
def only_compilers_select(products: Table, blocks: Table) -> Finding:
    """Of an eager matmul the same kernels run whatever the layout of its matrix; and an eager block
    of memory is asked of the driver although one as large has just been given back."""
    cases = Cases()
    with cases.at(what="select kernels") as case:
        layouts = "contiguous", "sliced_offset_view"
        pair = (products.row(layout, op="matmul", **WARM) for layout in layouts)
        one = len({tuple(known(row, "kernels")) for row in pair}) == 1
        case(one, said=f"{' and '.join(layouts)} run {'the same' if one else 'other'} kernels")
    with cases.at(what="reuse buffers") as case:
        asked = [known(row, "driver_calls") for row in blocks.select(variant="cached")]
        case(any(asked), said=f"{sum(map(bool, asked))} of {len(asked)} blocks asked of the driver")
    return cases.finding(f"Eager: {cases.said()}.")
