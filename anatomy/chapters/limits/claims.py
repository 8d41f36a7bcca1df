"""What the seeds say of a machine as a whole, put to its measured limits: rates and waits."""

from dataclasses import replace
from itertools import product

from anatomy.claims import NOT_MEASURABLE, Cases, Finding, Measured, Need, answer, claim
from anatomy.claims.findings import NEAR
from anatomy.claims.needs import CEILINGS, best
from anatomy.claims.table import Table, quotient, time_of
from anatomy.figures.limits import curves
from anatomy.table import units

# Card that the figures of the seed's Day 14 are of; the page calls it by its name elsewhere.
REFLECTION_GPU = "A100"
# The lines that wait by which the seed says what one costs.
WAYS = ("t.item()", "print(t)", "t.cpu()")


def _faster(table: Table, dtype: str, than: str) -> tuple[Measured, str]:
    """Best rate of matmuls in one format over another's, and both in words."""
    rates = [best(table, f"matmul {each}", "flops") for each in (dtype, than)]
    texts = [units.rate(r.value, "FLOP/s", r.low, r.high) for r in rates]
    return quotient(*rates), f"{dtype} {texts[0]}, {than} {texts[1]}"


@claim(CEILINGS)
def half_precision_beats_fp32(ceilings: Table) -> Finding:
    """Best rate of fp16 and bf16 matmuls over that of fp32, TF32 or not, is at least 2."""
    cases = Cases()
    for dtype, than in product(("fp16", "bf16"), ("fp32", "tf32")):
        with cases.at(format=dtype, over=than) as case:
            ratio, _ = _faster(ceilings, dtype, than)
            case(ratio.at_least(2.0), ratio, f"{dtype} over {than} {ratio.text}")
    return cases.finding(f"Matmuls at their best: {cases.said()}. {cases.tally(2.0, 4.0)}")


@claim(CEILINGS)
def fp8_doubles_fp16(ceilings: Table) -> Finding:
    """Best rate of fp8 matmuls is twice that of fp16 or more, within 10 %, quantizing apart."""
    ratio, rates = _faster(ceilings, "fp8", "fp16")
    seen = f"Matmuls at their best: {rates}, which is {ratio.text}."
    return answer(ratio.at_least(2 * (1 - NEAR)), seen, ratio)


def _bandwidth(table: Table, rate: Measured, claimed: float) -> Finding:
    here = f"Here it is {rate.text}."
    if REFLECTION_GPU not in table.machine.get("gpu", ""):
        card = f"The figure is of an {REFLECTION_GPU}, which is another card."
        return Finding(NOT_MEASURABLE, f"{card} {here}", rate)
    return answer(rate.near(claimed), here, rate)


@claim(CEILINGS)
def hbm_bandwidth(ceilings: Table) -> Finding:
    """The best copy lies within 10 % of the claimed bandwidth, on the card that is meant."""
    return _bandwidth(ceilings, best(ceilings, "copy", "bytes"), 2e12)


@claim(Need("limits.bandwidth"))
def l2_bandwidth(bandwidth: Table) -> Finding:
    """The best read of a set that fits the cache lies within 10 % of it, on the card meant.

    The rate of a whole call has its start and end in it; that of a byte more has not.
    """
    cache = bandwidth.machine.get("l2_bytes") or 0
    sizes = ((row, row.get("working_set_bytes") or row.get("bytes") or 0) for row in bandwidth)
    fits = [row for row, size in sizes if 0 < size <= cache]
    inside = Table(fits or bandwidth.rows, bandwidth.params)
    found = _bandwidth(bandwidth, best(inside, "read", "bytes"), 6e12)
    if not (more := curves.marginals(bandwidth.rows).get("read")):
        return found
    slope = units.rate_range(more.rate.median, "B/s", more.rate.low, more.rate.high)
    said = f"{found.evidence} That is a whole call; by the slope from size to size it is {slope}."
    return replace(found, evidence=said)


@claim(Need("limits.floors"), Need("sync_points.bench"))
def sync_adds_up_to_10_ms(floors: Table, bench: Table) -> Finding:
    """One way or another to wait, from an empty queue, takes the host 0.1 to 10 ms."""
    cases = Cases()
    for row in (*floors.select(op="wait"), *(bench.row(way, op="idle") for way in WAYS)):
        with cases.at(wait=row["variant"]) as case:
            time = time_of(row)
            case(time.within(0.1e-3, 10e-3), time, f"{row['variant']} {time.text}")
    return cases.possible(f"With nothing else pending: {cases.said()}.")
