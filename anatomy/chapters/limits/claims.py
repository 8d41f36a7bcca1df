"""What the seeds say of a machine as a whole, put to its measured limits: rates and waits."""

from itertools import product

from anatomy.claims import Cases, Finding, Measured, Need, answer, claim
from anatomy.claims.findings import NEAR
from anatomy.claims.needs import CEILINGS, best
from anatomy.claims.table import Table, quotient, time_of
from anatomy.table import units

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


@claim(Need("limits.floors"), Need("sync_points.bench"))
def sync_adds_up_to_10_ms(floors: Table, bench: Table) -> Finding:
    """One way or another to wait, from an empty queue, takes the host 0.1 to 10 ms."""
    cases = Cases()
    for row in (*floors.select(op="wait"), *(bench.row(way, op="idle") for way in WAYS)):
        with cases.at(wait=row["variant"]) as case:
            time = time_of(row)
            case(time.within(0.1e-3, 10e-3), time, f"{row['variant']} {time.text}")
    return cases.possible(
        f"With nothing else pending: {cases.said()}. Of these, printing also formats the value."
    )
