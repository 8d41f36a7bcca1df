"""What the seed says of fused attention, put to the recording of attention over its length."""

from collections.abc import Sequence

from anatomy import units
from anatomy.claims import Case, Finding, Measured, Need, across, claim, within
from anatomy.claims.promises import reaches, tally
from anatomy.claims.table import Table, ends, why_not
from anatomy.exponents import power_fit
from anatomy.rows import Row

OVER_LENGTH = Need("attention.backends")
# Attention written out: by hand in the tensors' own format, and PyTorch's own, which computes
# 16-bit problems in float32.
WRITTEN_OUT = ("manual", "math")
# The exponent of memory over length that is claimed of each.
CLAIMED_EXPONENTS = {"flash": 1, "manual": 2}
# The speed-up that the seed names.
LOW, HIGH = 2, 4
# How far a fitted exponent may lie from a whole number and still be called that number.
NEAR = 0.1
# Entries of a list of kernels that are none.
NO_KERNELS = ("Memset", "Memcpy")


def _cells(table: Table) -> list[dict]:
    """What tells the comparisons apart: op, sequence and direction, in the order of the table."""
    names = ("op", "sequence", "direction")
    found = {row["op"]: {name: row[name] for name in names} for row in table}
    return list(found.values())


@claim(OVER_LENGTH)
def flash_attention_is_faster(table: Table) -> Finding:
    """Time of attention written out, by hand and by `math`, over that of `flash` is at least 2."""
    cases = []
    for cell in _cells(table):
        op = cell["op"]
        for over in WRITTEN_OUT:
            where = {"over": over, "direction": cell["direction"], "N": f"N={cell['sequence']}"}
            flash, written = (table.row(name, op=op) for name in ("flash", over))
            if reason := why_not(flash) or why_not(written):
                cases.append(Case(where, None, why=reason))
                continue
            ratio, _ = table.ratio(over, "flash", op=op)
            floor = flash.get("noise_floor") or 0.0
            speedup = Measured(ratio.median, ratio.low, ratio.high, floor=floor, exact=ratio.exact)
            cases.append(Case(where, reaches(speedup, LOW), speedup))
    said = f"Speed-up of FlashAttention over {ends(cases, 'over')}."
    return across(cases, f"{said} {tally(cases, LOW, HIGH)}")


@claim(OVER_LENGTH)
def flash_attention_memory_linear(table: Table) -> Finding:
    """Peak memory grows with N to the power of 1 in `flash` and of 2 in `manual`, within 0.1.

    The power is fitted over the longer half of the sequences. At the short end what grows with N
    and what does not grow at all are as large as what grows with its square, so that a power fitted
    there is that of a sum. Bytes are counted, so the interval of a fit holds what is no power law.
    A line goes through any two points: it takes three to decide.
    """
    cases, seen = [], []
    for backend, claimed in CLAIMED_EXPONENTS.items():
        for direction in dict.fromkeys(cell["direction"] for cell in _cells(table)):
            where = {"backend": backend, "direction": direction}
            half = _longer_half(table, backend, direction)
            there = [row for row in half if row.get("peak_bytes")]
            if len(there) < 2:
                cases.append(Case(where, None, why=_no_memory(half)))
                continue
            fit = power_fit(
                [row["sequence"] for row in there], [row["peak_bytes"] for row in there]
            )
            if not fit.exact:
                cases.append(Case(where, None))
                seen.append(f"{backend}, {direction}, {fit.median:.2f} by two lengths alone")
                continue
            exponent = Measured(fit.median, fit.low, fit.high, "count")
            # One number sums a claim up, and two powers have no middle: that of flash.
            shown = exponent if backend == "flash" else None
            cases.append(Case(where, within(exponent, claimed - NEAR, claimed + NEAR), shown))
            seen.append(f"{backend}, {direction}, {exponent.text}")
    return across(cases, f"Peak memory grows with N to the power of: {'; '.join(seen)}.")


def _longer_half(table: Table, backend: str, direction: str) -> list[Row]:
    """Rows of one backend and direction, of the longer half of the sequences."""
    rows = [table.row(backend, op=c["op"]) for c in _cells(table) if c["direction"] == direction]
    rows.sort(key=lambda row: row["sequence"])
    return rows[len(rows) // 2 :]


def _no_memory(half: Sequence[Row]) -> str:
    """Why there are not two peaks to put a line through."""
    told = next((row["note"] for row in half if not units.missing(row.get("note"))), None)
    return told or "fewer than two lengths have a peak that the allocator counted"


@claim(OVER_LENGTH)
def sdpa_is_one_kernel(table: Table) -> Finding:
    """Of every backend and length one forward call launches one kernel, copies and memsets apart.

    The backends are PyTorch's four, each switched on alone, and the default.
    """
    cases, seen = [], {}
    for cell in _cells(table):
        if cell["direction"] != "forward":
            continue
        for row in table:
            backend = row.get("backend")
            if row["op"] != cell["op"] or row.get("role") == "again" or backend == "manual":
                continue
            where = {"backend": backend, "N": f"N={cell['sequence']}"}
            listed = row.get("kernels")
            if reason := why_not(row) or ("" if listed else "no kernels were listed"):
                cases.append(Case(where, None, why=reason))
                continue
            count = sum(not name.startswith(NO_KERNELS) for name in listed)
            cases.append(Case(where, count == 1, Measured(count, count, count, "count")))
            seen.setdefault(backend, set()).add(count)
    told = [f"{name} {', '.join(map(str, sorted(n)))}" for name, n in seen.items()]
    return across(cases, f"Kernels of one forward call, by backend: {'; '.join(told)}.")
