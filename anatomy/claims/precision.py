"""What the seed says of number formats, put to a training step, to its gradients, and to FP8."""

from collections.abc import Iterable, Iterator
from math import log2
from typing import Any

from anatomy import units
from anatomy.claims import Case, Finding, Measured, Need, across, claim, within
from anatomy.claims.contiguity import NEAR
from anatomy.claims.findings import Unmeasured, span
from anatomy.claims.promises import reaches, spares, tally
from anatomy.claims.table import Table, ends, over_control, why_not
from anatomy.rows import Row

TRAINING = Need("precision.training")
GRADIENTS = Need("precision.gradients")
FP8 = Need("precision.fp8")
INFERENCE = Need("precision.inference")

MIXED, BASELINES = ("amp fp16", "amp bf16"), ("fp32", "tf32")
# The speed-up that the seed gives for mixed precision, and for 16 bits end to end.
LOW, HIGH = 1.5, 2.0
# Scaling the loss of a bf16 pass changes its error by less than this share, if it needs none.
SAME_ERROR = 0.1
# fp16 counts as no slower than bf16 up to this: a smaller difference is not claimed from one
# process.
NO_SLOWER = 1.02


def _cells(table: Table, prefix: str) -> list[Row]:
    """One row of each operation of a kind, for its coordinates."""
    return list({r["op"]: r for r in table if r["op"].startswith(prefix)}.values())


def _shape(cell: Row) -> dict[str, Any]:
    return {"width": f"C={cell['width']:.0f}", "tokens": f"T={cell['tokens']:.0f}"}


def _speed_up(table: Table, op: str, variant: str, than: str) -> Measured:
    """Time of `than` over that of `variant`, paired by block.

    Raises:
        Unmeasured: One of the two could not be measured.
    """
    row = table.measured(variant, op=op)
    table.measured(than, op=op)
    ratio, _ = table.ratio(variant, than, op=op)
    floor = row.get("noise_floor") or 0.0
    return Measured(ratio.median, ratio.low, ratio.high, floor=floor, exact=ratio.exact).inverse


def _by(cases: Iterable[Case], *columns: str) -> str:
    """The numbers of cases in words, those that share `columns` together."""
    groups: dict[str, list[Measured]] = {}
    for case in cases:
        if case.measured:
            name = " over ".join(str(case.where[column]) for column in columns)
            groups.setdefault(name, []).append(case.measured)
    return "; ".join(f"{name} {span(found).text}" for name, found in groups.items())


def _steps(training: Table, formats: Iterable[str]) -> Finding:
    """Whether a training step is at least 1.5 times as fast, over fp32 and over TF32."""
    cases = []
    for cell in _cells(training, "train "):
        for name in formats:
            for than in BASELINES:
                where = {"format": name, "over": than} | _shape(cell)
                try:
                    gain = _speed_up(training, cell["op"], name, than)
                except Unmeasured as reason:
                    cases.append(Case(where, None, why=str(reason)))
                    continue
                cases.append(Case(where, reaches(gain, LOW), gain))
    seen = ends(cases, "format", "over")
    return across(cases, f"Speed-up of a training step: {seen}. {tally(cases, LOW, HIGH)}")


@claim(TRAINING)
def mixed_precision_is_faster(training: Table) -> Finding:
    """Under autocast, fp16 or bf16, a training step is at least 1.5 times as fast as in fp32 and
    in TF32.
    """
    return _steps(training, MIXED)


@claim(TRAINING)
def end_to_end_speed_up(training: Table) -> Finding:
    """The same step in 16 bits, with bf16 weights as well, is at least 1.5 times as fast."""
    return _steps(training, (*MIXED, "bf16"))


def _shares(training: Table, column: str) -> Iterator[Case]:
    """Bytes of a category under autocast, over those in fp32: at most half, or not."""
    for cell in _cells(training, "train "):
        for name in MIXED:
            where = {"format": name} | _shape(cell)
            above, below = (training.row(each, op=cell["op"]) for each in (name, "fp32"))
            if units.missing(above.get(column)) or units.missing(below.get(column)):
                why = why_not(above) or why_not(below)
                yield Case(where, None, why=why or "a CPU keeps no account of its memory")
                continue
            ratio = above[column] / below[column]
            share = Measured(ratio, ratio, ratio)
            yield Case(where, spares(share, 0.5 * (1 + NEAR)), share)


@claim(TRAINING)
def mixed_precision_halves_memory(training: Table) -> Finding:
    """Most memory of a training step under autocast is at most half of that in fp32, within 10 %.

    All of it counts: weights, gradients, optimizer state and what the backward pass needs.
    """
    cases = list(_shares(training, "total_peak_bytes"))
    return across(cases, f"Peak memory of a step over that in fp32: {ends(cases, 'format')}.")


@claim(
    TRAINING,
    statement="Mixed precision halves what the forward pass keeps for the backward pass.",
    topic="precision",
    measures="bytes kept in mixed precision / in fp32",
    number="0.5×",
    claimed=(0.5, 0.5),
    unit="x",
)
def mixed_precision_halves_activations(training: Table) -> Finding:
    """Bytes kept for the backward pass, without weights: at most half of fp32's, within 10 %."""
    cases = list(_shares(training, "activation_bytes"))
    return across(cases, f"Bytes of activations over those in fp32: {_by(cases, 'format')}.")


@claim(GRADIENTS)
def bf16_range_is_fp32s(gradients: Table) -> Finding:
    """Largest number and smallest normal number of bf16 are those of fp32, within 1 %."""
    short, full = (gradients.row(name, op="finfo") for name in ("bf16", "fp32"))
    cases = []
    for end in ("largest", "smallest_normal"):
        ratio = short[end] / full[end]
        measured = Measured(ratio, ratio, ratio)
        cases.append(Case({"end": end.replace("_", " ")}, within(measured, 0.99, 1.01), measured))
    steps = round(log2(short["eps"] / full["eps"]))
    return across(
        cases,
        f"bf16 reaches {short['largest']:.2e}, fp32 {full['largest']:.2e}; the smallest normal "
        f"number is {short['smallest_normal']:.2e} in bf16 and {full['smallest_normal']:.2e} in "
        f"fp32. The steps between numbers are 2**{steps} times as wide in bf16.",
    )


@claim(GRADIENTS)
def bf16_needs_no_scaling(gradients: Table) -> Finding:
    """Scaling the loss saves bf16 no gradient from 0 or infinity, and no digit of the error."""
    cases, seen = [], []
    for cell in _cells(gradients, "gradients "):
        op = cell["op"]
        plain, scaled = (gradients.row(name, op=op) for name in ("bf16", "bf16, scaled"))
        ends = plain["overflow"] == 0 and plain["underflow"] <= scaled["underflow"]
        errors = (plain["error"], scaled["error"])
        same = None not in errors and errors[0] <= errors[1] * (1 + SAME_ERROR)
        cases.append(Case({"loss": cell["loss"]}, bool(ends and same)))
        other = gradients.row("fp16", op=op)
        seen.append(
            f"{cell['loss']} loss, of {plain['gradients']:.0f} gradients "
            f"{plain['underflow']:.0f} are 0 in bf16 and {other['underflow']:.0f} in fp16"
        )
    return across(cases, f"Without a loss scale: {'; '.join(seen)}.")


@claim(INFERENCE, GRADIENTS)
def fp16_for_inference(inference: Table, gradients: Table) -> Finding:
    """Against bf16, fp16 is no slower and closer to float64, at every size.

    Its range stands beside that and decides nothing: the block whose outputs fp16 can't hold was
    made so on purpose. Whether a model has such outputs is a question to the model.
    """
    cases, seen = [], []
    for cell in _cells(inference, "forward "):
        row = inference.row("fp16", op=cell["op"])
        size = " ".join(_shape(cell).values())
        if reason := why_not(row):
            for asked in ("time", "error"):
                cases.append(Case({"asked": asked, "of": size}, None, why=reason))
            continue
        ratio = over_control(row)
        cases.append(Case({"asked": "time", "of": size}, within(ratio, 0.0, NO_SLOWER), ratio))
        errors = (row["error"], inference.row("bf16", op=cell["op"])["error"])
        cases.append(Case({"asked": "error", "of": size}, errors[0] < errors[1]))
        seen.append(f"{size} {ratio.text} the time, {errors[0] / errors[1]:.2g} of the error")
    large = gradients.row("fp16", op="overflow")
    beyond = (
        f"Of a block that was made to reach {large['largest_output']:.3g}, {large['overflow']:.0f} "
        f"of {large['outputs']:.0f} outputs are infinite in fp16."
    )
    return across(cases, f"fp16 over bf16: {'; '.join(seen)}. {beyond}")


def _layers(fp8: Table, variants: Iterable[str], quantity: str) -> Iterator[tuple[dict, Row]]:
    """(what tells it apart, row) of the FP8 rows of a quantity."""
    for row in fp8:
        if row["variant"] in variants and row.get("quantity") == quantity:
            how = row["variant"].removeprefix("fp8, ")
            yield {"way": how, "size": row["op"].removeprefix("linear ")}, row


@claim(
    FP8,
    statement="FP8 makes a linear layer faster although every call quantises its activations.",
    topic="precision",
    measures="time of an FP8 layer / of a bf16 one",
)
def fp8_pays_with_quantisation(fp8: Table) -> Finding:
    """Wall time below that of bf16, with the whole interval, at every size, eager and compiled."""
    cases = []
    for where, row in _layers(fp8, ("fp8, quantised", "fp8, quantised, compiled"), "step_wall"):
        if reason := why_not(row):
            cases.append(Case(where, None, why=reason))
            continue
        ratio = over_control(row)
        cases.append(Case(where, within(ratio, 0.0, 1.0), ratio))
    return across(cases, f"Time of an FP8 layer over a bf16 one: {ends(cases, 'way')}.")


@claim(
    FP8,
    statement="With its factors ready, an FP8 product takes half the time of a bf16 one.",
    topic="precision",
    measures="time in bf16 / in FP8",
    number="2×",
    claimed=(2.0, 2.0),
    unit="x",
)
def fp8_halves_a_product(fp8: Table) -> Finding:
    """GPU time of bf16 over that of FP8, without quantising, within 10 % of 2 at every size."""
    cases = []
    for where, row in _layers(fp8, ("fp8, factors ready",), "gpu_warm"):
        if reason := why_not(row):
            cases.append(Case(where, None, why=reason))
            continue
        gain = over_control(row).inverse
        cases.append(Case(where, within(gain, 2 * (1 - NEAR), 2 * (1 + NEAR)), gain))
    return across(cases, f"Speed-up of an FP8 product over bf16: {_by(cases, 'size')}.")
