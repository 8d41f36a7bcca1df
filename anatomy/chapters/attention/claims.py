"""What the seed says of fused attention, put to the recording of attention over its length."""

from itertools import product

from anatomy.claims import Cases, Finding, Measured, Need, Unmeasured, claim
from anatomy.claims.table import Table, quotient, time_of, trusted
from anatomy.judge.exponents import power_fit
from anatomy.judge.rows import Row
from anatomy.table import units

OVER_LENGTH = Need("attention.backends")
# Attention written out: by hand in the tensors' own format, and PyTorch's own, which computes
# 16-bit problems in float32.
WRITTEN_OUT = ("manual", "math")
FEW_PEAKS = "fewer than two lengths have a peak that the allocator counted"
CLAIMED_EXPONENTS = {"flash": 1, "manual": 2}  # of memory over length
LOW, HIGH = 2, 4  # the speed-up that the seed names
SHORTER, LONGER = 8192, 16384  # two lengths, the second with four times the scores
QUADRUPLE = 3.6, 4.4  # four times as long, within a tenth
NEAR = 0.1  # a fitted exponent within this of a whole number is called that number
FORWARD = ("forward", "forward, causal")  # directions without the backward pass
NO_KERNELS = ("Memset", "Memcpy")  # entries of a list of kernels that are none


def _lengths(table: Table, **columns: str) -> list[Row]:
    """One row of each comparison, for its op, sequence and direction, in the table's order."""
    return list({row["op"]: row for row in table.select(**columns)}.values())


@claim(OVER_LENGTH)
def flash_attention_is_faster(table: Table) -> Finding:
    """Time of unfused attention, by hand and by `math`, over that of `flash` is at least 2."""
    cases = Cases()
    for at, over in product(_lengths(table), WRITTEN_OUT):
        with cases.at(over=over, direction=at["direction"], N=f"N={at['sequence']}") as case:
            speedup = table.ratio(over, "flash", op=at["op"])
            case(speedup.at_least(LOW), speedup)
    seen = f"Speed-up of FlashAttention over {cases.ends('over')}."
    return cases.finding(f"{seen} {cases.tally(LOW, HIGH)}")


@claim(OVER_LENGTH)
def flash_attention_memory_linear(table: Table) -> Finding:
    """Peak memory grows with N to the power of 1 in `flash` and of 2 in `manual`, within 0.1.

    It is fitted over the longer half of the sequences: at the short end other parts are as large as
    what grows with the square of N. A line goes through any two points: it takes three to decide.
    """
    cases = Cases()
    # Of few lengths, as with a causal mask, no power can be decided.
    whole = [name for name in table.distinct("direction") if "causal" not in name]
    for backend, direction in product(CLAIMED_EXPONENTS, whole):
        with cases.at(backend=backend, direction=direction) as case:
            half = _longer_half(table, backend, direction)
            there = [row for row in half if row.get("peak_bytes")]
            if len(there) < 2:
                notes = (row["note"] for row in half if not units.missing(row.get("note")))
                raise Unmeasured(next(notes, FEW_PEAKS))
            sizes = [row["sequence"] for row in there]
            fit = power_fit(sizes, [row["peak_bytes"] for row in there])
            seen, claimed = f"{backend}, {direction}, ", CLAIMED_EXPONENTS[backend]
            if not fit.exact:
                case(None, said=f"{seen}{fit.median:.2f} by two lengths alone")
                continue
            exponent = Measured(fit.median, fit.low, fit.high, "count")
            # One number sums a claim up, and two powers have no middle: that of flash.
            shown = exponent if backend == "flash" else None
            near = exponent.within(claimed - NEAR, claimed + NEAR)
            case(near, shown, f"{seen}{exponent.text}")
    return cases.finding(f"Peak memory grows with N to the power of: {cases.said()}.")


def _longer_half(table: Table, backend: str, direction: str) -> list[Row]:
    """Rows of one backend and direction, of the longer half of the sequences."""
    rows = [table.row(backend, op=at["op"]) for at in _lengths(table, direction=direction)]
    rows.sort(key=lambda row: row["sequence"])
    return rows[len(rows) // 2 :]


@claim(OVER_LENGTH)
def sdpa_is_one_kernel(table: Table) -> Finding:
    """Of every backend and length one forward call launches one kernel, copies and memsets apart.

    The backends are PyTorch's four, each switched on alone, and the default.
    """
    cases, seen = Cases(), dict[str, set[int]]()
    forward = [row for row in table if row["direction"] in FORWARD]
    for row in forward:
        if row["backend"] == "manual":
            continue
        mask = "causal" if row["direction"] == FORWARD[1] else "no mask"
        with cases.at(backend=row["backend"], N=f"N={row['sequence']}", mask=mask) as case:
            if not trusted(row).get("kernels"):
                raise Unmeasured("no kernels were listed")
            count = sum(not name.startswith(NO_KERNELS) for name in row["kernels"])
            case(count == 1, Measured.counted(count, "count"))
            seen.setdefault(row["backend"], set()).add(count)
    counts = [f"{name} {', '.join(map(str, sorted(n)))}" for name, n in seen.items()]
    return cases.finding(
        f"Kernels of one forward call without memsets, by backend: {'; '.join(counts)}."
    )


@claim(OVER_LENGTH, topic="attention", measures="time at N = 16384 / at N = 8192")
def unfused_attention_quadruples(table: Table) -> Finding:
    """Unfused attention takes four times as long over 16384 tokens as over 8192.

    Time of one unfused forward call at N = 16384 over that at N = 8192 is 4, within a tenth."""
    cases = Cases()
    with cases.at(direction="forward") as case:
        found = [table.select(variant="manual", op=f"forward N={n}") for n in (SHORTER, LONGER)]
        if not all(found):
            raise Unmeasured("one of the two lengths was not tried")
        shorter, longer = (time_of(each[0]) for each in found)
        grown = quotient(longer, shorter)
        case(grown.within(*QUADRUPLE), grown, grown.text)
    return cases.finding(f"Twice the length takes so many times as long: {cases.said()}.")
