"""What the seed says of number formats, put to a training step, to its gradients, and to FP8."""

from collections.abc import Iterable
from itertools import product
from math import log2
from typing import Any

from anatomy.claims import NOT_MEASURABLE, Cases, Finding, Measured, Need, claim
from anatomy.claims.findings import NEAR
from anatomy.claims.table import Table, bytes_over, judged, over_control, speed_up, why_not
from anatomy.judge.rows import Row

TRAINING = Need("precision.training")
GRADIENTS = Need("precision.gradients")
FP8 = Need("precision.fp8")
INFERENCE = Need("precision.inference")

MIXED, BASELINES = ("amp fp16", "amp bf16"), ("fp32", "tf32")
LOW, HIGH = 1.5, 2.0  # the seed's speed-up of mixed precision, and of 16 bits end to end
SAME_ERROR = 0.1  # scaling the loss of a bf16 pass changes its error by less, if it needs none
NO_SLOWER = 1.02  # a smaller difference of fp16 from bf16 is not claimed from one process
AMPERE = 8.0  # the compute capability from which on cards multiply in bf16
NO_ACCOUNT = "a CPU keeps no account of its memory"


def _cells(table: Table, prefix: str) -> list[Row]:
    """One row of each operation of a kind, for its coordinates."""
    return list({r["op"]: r for r in table if r["op"].startswith(prefix)}.values())


def _shape(cell: Row) -> dict[str, Any]:
    return {"width": f"C={cell['width']:.0f}", "tokens": f"T={cell['tokens']:.0f}"}


def _steps(training: Table, formats: Iterable[str]) -> Finding:
    """Whether a training step is at least 1.5 times as fast, over fp32 and over TF32."""
    cases = Cases()
    for cell, name, than in product(_cells(training, "train "), formats, BASELINES):
        with cases.at(format=name, over=than, **_shape(cell)) as case:
            gain = training.ratio(name, than, op=cell["op"]).inverse
            case(gain.at_least(LOW), gain)
    seen = f"Speed-up of a training step: {cases.ends('format', 'over')}."
    return cases.finding(f"{seen} {cases.tally(LOW, HIGH)}")


@claim(TRAINING)
def mixed_precision_is_faster(training: Table) -> Finding:
    """Under autocast, fp16 or bf16, a training step is at least 1.5 times as fast as in fp32 and
    in TF32."""
    return _steps(training, MIXED)


@claim(TRAINING)
def end_to_end_speed_up(training: Table) -> Finding:
    """The same step in 16 bits, with bf16 weights as well, is at least 1.5 times as fast."""
    return _steps(training, (*MIXED, "bf16"))


def _halved(training: Table, column: str) -> Cases:
    """Whether bytes of a category under autocast are at most half of those in fp32."""
    cases = Cases()
    for cell, name in product(_cells(training, "train "), MIXED):
        with cases.at(format=name, **_shape(cell)) as case:
            pair = [training.row(each, op=cell["op"]) for each in (name, "fp32")]
            why = next(filter(None, map(why_not, pair)), NO_ACCOUNT)
            share = bytes_over(*pair, column, why)
            case(share.at_most(0.5 * (1 + NEAR)), share)
    return cases


@claim(TRAINING)
def mixed_precision_halves_memory(training: Table) -> Finding:
    """Most memory of a training step under autocast is at most half of that in fp32, within 10 %.

    All of it counts: weights, gradients, optimizer state and what the backward pass needs.
    """
    cases = _halved(training, "total_peak_bytes")
    return cases.finding(f"Peak memory of a step over that in fp32: {cases.ends('format')}.")


@claim(
    TRAINING,
    topic="precision",
    measures="bytes kept in mixed precision / in fp32",
    number="0.5×",
    claimed=(0.5, 0.5),
    unit="x",
)
def mixed_precision_halves_activations(training: Table) -> Finding:
    """Mixed precision halves what the forward pass keeps for the backward pass.

    Bytes kept for the backward pass, without weights: at most half of fp32's, within 10 %."""
    cases = _halved(training, "activation_bytes")
    return cases.finding(f"Bytes of activations over those in fp32: {cases.spans('format')}.")


@claim(GRADIENTS)
def bf16_range_is_fp32s(gradients: Table) -> Finding:
    """Largest number and smallest normal number of bf16 are those of fp32, within 1 %."""
    short, full = (gradients.row(name, op="finfo") for name in ("bf16", "fp32"))
    cases = Cases()
    for end in ("largest", "smallest_normal"):
        with cases.at(end=end.replace("_", " ")) as case:
            ratio = Measured.counted(short[end] / full[end])
            case(ratio.near(1.0, 0.01), ratio)
    steps = round(log2(short["eps"] / full["eps"]))
    return cases.finding(
        f"bf16 reaches {short['largest']:.2e}, fp32 {full['largest']:.2e}; the smallest normal "
        f"number is {short['smallest_normal']:.2e} in bf16 and {full['smallest_normal']:.2e} in "
        f"fp32. The steps between numbers are 2**{steps} times as wide in bf16."
    )


@claim(GRADIENTS)
def bf16_needs_no_scaling(gradients: Table) -> Finding:
    """Scaling the loss saves bf16 no gradient from 0 or infinity, and no digit of the error."""
    cases = Cases()
    for cell in _cells(gradients, "gradients "):
        ways = ("bf16", "bf16, scaled", "fp16")
        plain, scaled, fp16 = (gradients.row(way, op=cell["op"]) for way in ways)
        kept = plain["overflow"] == 0 and plain["underflow"] <= scaled["underflow"]
        errors = (plain["error"], scaled["error"])
        same = None not in errors and errors[0] <= errors[1] * (1 + SAME_ERROR)
        seen = (
            f"{cell['loss']} loss, of {plain['gradients']:.0f} gradients "
            f"{plain['underflow']:.0f} are 0 in bf16 and {fp16['underflow']:.0f} in fp16"
        )
        with cases.at(loss=cell["loss"]) as case:
            case(bool(kept and same), said=seen)
    return cases.finding(f"Without a loss scale: {cases.said()}.")


@claim(INFERENCE, GRADIENTS)
def fp16_for_inference(inference: Table, gradients: Table) -> Finding:
    """On a card before Ampere, fp16 is no slower than bf16 and closer to float64, at every size.

    On any other card the advice is not put to the test, and what is seen stands beside it. So does
    its range: the block whose outputs fp16 can't hold was made so on purpose. Whether a model has
    such outputs is a question to the model.
    """
    cases = Cases()
    for cell in _cells(inference, "forward "):
        fp16, bf16 = (inference.row(each, op=cell["op"]) for each in ("fp16", "bf16"))
        size = " ".join(_shape(cell).values())
        with cases.at(asked="time", of=size) as case:
            ratio = over_control(fp16)
            case(ratio.at_most(NO_SLOWER), ratio)
        with cases.at(asked="error", of=size) as case:
            ratio, errors = over_control(fp16), (fp16["error"], bf16["error"])
            less = f"{errors[0] / errors[1]:.2g} of the error"
            case(errors[0] < errors[1], said=f"{size} {ratio.text} the time, {less}")
    large = gradients.row("fp16", op="overflow")
    seen = (
        f"fp16 over bf16: {cases.said()}. Of a block that was made to reach "
        f"{large['largest_output']:.3g}, {large['overflow']:.0f} of {large['outputs']:.0f} outputs "
        "are infinite in fp16."
    )
    if float(inference.machine.get("capability") or 0) >= AMPERE:
        return Finding(NOT_MEASURABLE, f"This card is none before Ampere. Here, {seen}")
    return cases.finding(seen)


def _size(row: Row) -> str:
    return row["op"].removeprefix("linear ")


@claim(FP8, topic="precision", measures="time of an FP8 layer / of a bf16 one")
def fp8_pays_with_quantisation(fp8: Table) -> Finding:
    """FP8 makes a linear layer faster although every call quantises its activations.

    Wall time below that of bf16, with the whole interval, at every size, eager and compiled."""
    ways = ("fp8, quantised", "fp8, quantised, compiled")
    rows = [
        ({"way": row["variant"].removeprefix("fp8, "), "size": _size(row)}, row)
        for row in fp8.select(variant=ways, quantity="step_wall")
    ]
    cases = judged(rows, lambda ratio: ratio.at_most(1.0))
    return cases.finding(f"Time of an FP8 layer over a bf16 one: {cases.ends('way')}.")


@claim(
    FP8,
    topic="precision",
    measures="time in bf16 / in FP8",
    number="2×",
    claimed=(2.0, 2.0),
    unit="x",
)
def fp8_halves_a_product(fp8: Table) -> Finding:
    """With its factors ready, an FP8 matmul takes half the time of a bf16 one.

    GPU time of bf16 over that of FP8, without quantising, within 10 % of 2 at every size."""
    found = fp8.select(variant="fp8, factors ready", quantity="gpu_warm")
    rows = [({"size": _size(row)}, row) for row in found]
    cases = judged(rows, lambda gain: gain.near(2.0), speed_up)
    return cases.finding(f"Speed-up of an FP8 matmul over bf16: {cases.spans('size')}.")
