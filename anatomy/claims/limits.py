"""What the seeds say of a machine as a whole, put to its measured limits: rates and waits."""

from anatomy import units
from anatomy.claims import NOT_MEASURABLE, Case, Finding, Measured, Need, across, claim, within
from anatomy.claims.contiguity import NEAR
from anatomy.claims.promises import reaches, tally
from anatomy.claims.table import Table, quotient, time_of, why_not
from anatomy.errors import UnknownName
from anatomy.rows import Row

CEILINGS = Need("limits.ceilings")
# Card that the figures of the seed's Day 14 are of; the page calls it by its name elsewhere.
REFLECTION_GPU = "A100"


def best(table: Table, op: str, work: str) -> Measured:
    """The highest rate of an operation, in units of work per second, with its interval.

    Raises:
        Unmeasured: It could not be measured here.
        UnknownName: The recording has no such operation.
    """
    found = [row for row in table if row.get("op") == op and row.get("role") != "again"]
    if not found:
        raise UnknownName("op in a recording", op, [str(row.get("op")) for row in table])
    there = [row for row in found if not why_not(row)]
    if not there:
        table.measured(found[0]["variant"], op=op)  # which gives the row's reason
    row = max(there, key=lambda each: each[work] / each["median_s"])
    rate = (row[work] / row[end] for end in ("median_s", "high_s", "low_s"))
    unit = "B/s" if work == "bytes" else "FLOP/s"
    return Measured(*rate, unit, floor=row.get("noise_floor") or 0.0)


def _faster(table: Table, dtype: str, than: str) -> tuple[Measured, str]:
    """Best rate of products in one format over another's, and both in words."""
    rates = [best(table, f"matmul {each}", "flops") for each in (dtype, than)]
    said = [units.rate(r.value, "FLOP/s", r.low, r.high) for r in rates]
    return quotient(*rates), f"{dtype} {said[0]}, {than} {said[1]}"


@claim(CEILINGS)
def half_precision_beats_fp32(ceilings: Table) -> Finding:
    """Best rate of fp16 and bf16 products over that of fp32, TF32 or not, is at least 2."""
    cases, seen = [], []
    for dtype in ("fp16", "bf16"):
        for than in ("fp32", "tf32"):
            ratio, _ = _faster(ceilings, dtype, than)
            cases.append(Case({"format": dtype, "over": than}, reaches(ratio, 2.0), ratio))
            seen.append(f"{dtype} over {than} {ratio.text}")
    return across(cases, f"Products at their best: {'; '.join(seen)}. {tally(cases, 2.0, 4.0)}")


@claim(CEILINGS)
def fp8_doubles_fp16(ceilings: Table) -> Finding:
    """Best rate of fp8 products is twice that of fp16 or more, within 10 %, quantizing apart."""
    ratio, said = _faster(ceilings, "fp8", "fp16")
    case = Case({}, reaches(ratio, 2 * (1 - NEAR)), ratio)
    return across([case], f"Products at their best: {said}, which is {ratio.text}.")


def _bandwidth(table: Table, rate: Measured, claimed: float) -> Finding:
    here = f"Here it is {rate.text}."
    if REFLECTION_GPU not in table.machine.get("gpu", ""):
        return Finding(NOT_MEASURABLE, f"That is an {REFLECTION_GPU}. {here}", rate)
    near = within(rate, claimed * (1 - NEAR), claimed * (1 + NEAR))
    return across([Case({}, near, rate)], here)


@claim(CEILINGS)
def hbm_bandwidth(ceilings: Table) -> Finding:
    """The best copy lies within 10 % of the claimed bandwidth, on the card that is meant."""
    return _bandwidth(ceilings, best(ceilings, "copy", "bytes"), 2e12)


@claim(Need("limits.bandwidth"))
def l2_bandwidth(bandwidth: Table) -> Finding:
    """The best read of a set that fits the cache lies within 10 % of it, on the card meant."""
    fits = [row for row in bandwidth if _fits(row, bandwidth.machine.get("l2_bytes"))]
    inside = Table(fits or bandwidth.rows, bandwidth.params)
    return _bandwidth(bandwidth, best(inside, "read", "bytes"), 6e12)


def _fits(row: Row, cache_bytes: int | None) -> bool:
    size = row.get("working_set_bytes") or row.get("bytes")
    return bool(cache_bytes and size and size <= cache_bytes)


@claim(Need("limits.floors"))
def sync_adds_up_to_10_ms(floors: Table) -> Finding:
    """Each kind of wait, from an empty queue, takes the host 0.1 to 10 ms."""
    cases, seen = [], []
    for row in floors:
        if row.get("op") != "wait" or row.get("role") == "again":
            continue
        where = {"wait": row["variant"]}
        if reason := why_not(row):
            cases.append(Case(where, None, why=reason))
            continue
        time = time_of(row)
        cases.append(Case(where, within(time, 0.1e-3, 10e-3), time))
        seen.append(f"{row['variant']} {time.text}")
    return across(cases, f"With nothing else pending: {'; '.join(seen)}.")
