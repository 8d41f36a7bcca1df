"""What is said of compilers, ridges and roofs, put to a layer, to a sweep and to operations."""

from anatomy.chapters.roofline import roofs
from anatomy.claims import Cases, Finding, Measured, Need, Unmeasured, answer, claim
from anatomy.claims.findings import NEAR
from anatomy.claims.needs import CEILINGS, best
from anatomy.claims.table import Table, judged, known, over_control, quotient, rate_of, time_of
from anatomy.judge import limits
from anatomy.judge.pace import HOST
from anatomy.table import units

LAYER, SWEEP = Need("roofline.first_layer"), Need("roofline.intensity")
OPERATIONS = Need("roofline.operations")
LARGE, SMALL = "large layer", "small layer"
EAGER, HALF, COMPILED = "eager fp32", "eager bf16", "compiled bf16"
ABOVE = 0.05  # how far above a roof a call may lie: it may run at a higher clock than the ceiling


@claim(LAYER, topic="fusion")
def compiling_saves_kernels(layer: Table) -> Finding:
    """A compiler runs relu(x @ W + b) in fewer kernels than eager PyTorch does.

    In both sizes the compiled layer launches fewer kernels than the eager one."""
    cases = Cases()
    for op in (SMALL, LARGE):
        with cases.at(layer=op) as case:
            rows = [layer.measured(way, op=op) for way in (HALF, COMPILED)]
            eager, fused = (known(row, "kernels_per_call") for row in rows)
            case(fused < eager, None, f"{op}: {eager} kernels eager, {fused} compiled")
    return cases.finding(f"{cases.said()}.")


@claim(LAYER, topic="launches")
def small_layer_waits_for_launches(layer: Table) -> Finding:
    """A small layer takes as long as its launches, whatever the GPU could do.

    The host paces the small layer, eager in bf16, and does not pace the large one."""
    rows = [layer.measured(HALF, op=op) for op in (SMALL, LARGE)]
    times = " and ".join(time_of(row).text for row in rows)
    paces = [row.get("paced_by") for row in rows]
    outcome = None if None in paces else paces[0] == HOST != paces[1]
    paced = " and ".join(map(str, paces))
    return answer(outcome, f"Small and large take {times}, paced by {paced}.")


@claim(LAYER, topic="precision")
def format_saves_more_than_fusion(layer: Table) -> Finding:
    """A number format for the tensor cores saves a large layer more than compiling does.

    Of the large layer, fp32 over bf16, both eager, is more than eager over compiled bf16."""
    gain = layer.ratio(EAGER, HALF, op=LARGE)
    fused = layer.ratio(HALF, COMPILED, op=LARGE)
    more = quotient(gain, fused)
    seen = f"bf16 in place of fp32 saves {gain.text}, and compiling that {fused.text}."
    return answer(more.at_least(1.0), seen, more)


@claim(SWEEP, CEILINGS, topic="roofline")
def ridge_is_peak_over_bandwidth(sweep: Table, ceilings: Table) -> Finding:
    """The ridge that a sweep of FMAs shows is the FP32 peak over the bandwidth of a copy.

    The corner that was fitted lies within 10 % of one measured ceiling over the other."""
    found = _ridge(sweep)
    made = quotient(best(ceilings, "matmul fp32", "flops"), best(ceilings, "copy", "bytes"))
    over, met = quotient(found, made), units.significant(made.value)
    said = f"Found at {found.text} FLOP/B; the ceilings meet at {met}: {over.text} of that."
    return answer(over.within(1 - NEAR, 1 + NEAR), said, over)


@claim(SWEEP, topic="roofline")
def arithmetic_below_the_ridge_is_free(sweep: Table) -> Finding:
    """Below the ridge, more arithmetic on each element takes no more time.

    Eight FMAs on each element take at most 5 % longer than one."""
    ratio = sweep.ratio("8 FMAs", "1 FMA")
    return answer(ratio.at_most(1 + ABOVE), f"Eight FMAs take {ratio.text} the time of one.", ratio)


@claim(SWEEP, topic="roofline")
def arithmetic_above_the_ridge_is_paid(sweep: Table) -> Finding:
    """Above the ridge, twice the arithmetic takes twice the time.

    1024 FMAs on each element take twice as long as 512, within 10 %."""
    ratio = sweep.ratio("1024 FMAs", "512 FMAs")
    return answer(ratio.near(2.0), f"1024 FMAs take {ratio.text} the time of 512.", ratio)


def _ridge(sweep: Table) -> Measured:
    """The corner of the sweep, in operations per byte."""
    row = sweep.measured("1 FMA")
    known(row, "ridge", "the sweep shows no ridge: all of it lies on one side")
    ends = (row[name] for name in roofs.RIDGE)
    return Measured(*ends, "count", floor=row.get("noise_floor") or 0.0)


@claim(SWEEP)
def relu_under_tensor_ridge(sweep: Table) -> Finding:
    """The ridge of arithmetic outside the tensor cores, where a ReLU runs, is 156 within 10 %."""
    found = _ridge(sweep)
    below = "below" if found.low > 0.125 else "above"
    said = f"A ReLU uses no tensor cores: its ridge is at {found.text} FLOP/B, 0.125 {below} it."
    return answer(found.near(156), said)


@claim(OPERATIONS, CEILINGS)
def relu_idles_compute(operations: Table, ceilings: Table) -> Finding:
    """A ReLU over a large tensor does less than 1 % of the most FP32 operations in its time."""
    row = operations.row("relu", op="elementwise")
    busy = quotient(rate_of(row, "flops", "FLOP/s"), best(ceilings, "matmul fp32", "flops"))
    return answer(busy.at_most(0.01), f"{units.percent(busy.value)} of the FP32 peak is used.")


@claim(OPERATIONS, CEILINGS)
def relu_reaches_bandwidth(operations: Table, ceilings: Table) -> Finding:
    """A ReLU over a large tensor reaches 90 % of the bandwidth of the best copy."""
    rate = rate_of(operations.row("relu", op="elementwise"), "bytes", "B/s")
    share = quotient(rate, best(ceilings, "copy", "bytes"))
    return answer(share.at_least(1 - NEAR), f"{rate.text}, {share.text} the best copy.", share)


@claim(OPERATIONS, CEILINGS)
def roofline_is_a_minimum(operations: Table, ceilings: Table) -> Finding:
    """No operation takes less than its bytes or its operations do at the ceilings, within 5 %."""
    roof = limits.Ceilings("", limits.measured((row, "") for row in ceilings))
    cases = Cases()
    for row in operations.select():
        with cases.at(operation=row["variant"]) as case:
            time, least = time_of(row), roofs.least(row, roof)
            if least is None:
                raise Unmeasured(f"the ceilings of {row.get('dtype')} were not measured")
            share = quotient(Measured.counted(least.seconds, "s"), time)
            case(share.at_most(1 + ABOVE), share)
    return cases.finding(f"Least time over time: {cases.range}.")


@claim(OPERATIONS, topic="roofline")
def functions_cost_their_bytes(operations: Table) -> Finding:
    """A function of single elements takes as long as its bytes, whatever it computes.

    Exponential and gelu take at most 5 % longer than a ReLU over the same tensor."""
    rows = (({"function": n}, operations.row(n, op="elementwise")) for n in ("exp", "gelu"))
    cases = judged(rows, lambda ratio: ratio.at_most(1 + ABOVE))
    return cases.finding(f"Time over that of a ReLU: {cases.spans('function')}.")


@claim(OPERATIONS, topic="fusion")
def passes_cost_time(operations: Table) -> Finding:
    """An optimizer's step in one pass takes less than half the time of one in many.

    AdamW with foreach takes at least twice as long as fused AdamW."""
    ratio = over_control(operations.row("AdamW, foreach", op="optimizer"))
    return answer(ratio.at_least(2.0), f"foreach takes {ratio.text} the time of fused.", ratio)


def _tensor_cores_gain_nothing(operations: Table, said: str) -> Finding:
    """By the time of a GEMM in fp32 over that in TF32: the same bytes, and the same operations."""
    gain = quotient(*(time_of(operations.row(f"matmul, {each}")) for each in ("fp32", "tf32")))
    return answer(gain.at_most(1 + NEAR), f"{said} {gain.text} as fast.", gain)


@claim(OPERATIONS)
def always_further_left(operations: Table) -> Finding:
    """A GEMM gains nothing, within 10 %, by TF32, which leaves all its tensors where they were."""
    said = "TF32 moves the bytes of fp32, from where they lay, and is"
    return _tensor_cores_gain_nothing(operations, said)


@claim(OPERATIONS)
def above_ridge_fewer_flops(operations: Table) -> Finding:
    """A compute-bound GEMM of as many operations gains nothing, within 10 %, by faster units."""
    said = "The same operations on other units, in TF32 for fp32, are"
    return _tensor_cores_gain_nothing(operations, said)
