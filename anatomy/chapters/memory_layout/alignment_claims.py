"""What the seed says of alignment, put to the experiments that move one thing at a time."""

from anatomy.claims import INCONCLUSIVE, Cases, Finding, Need, answer, claim
from anatomy.claims.needs import EVERY, WARM
from anatomy.claims.table import Table, over_control, trusted, why_not, with_verdict
from anatomy.judge.rows import Row
from anatomy.table import units

FACTORIAL = Need("alignment.factorial")
# A streaming operation needs more rows than a product before it leaves the cache behind.
SWEEPS = tuple(
    Need("alignment.thresholds", {"op": op} | ({} if op == "matmul" else {"m": 16384}))
    for op in ("matmul", "layer_norm", "pointwise")
)
PAYBACK = Need("remedies.payback")
# What the factorial moves -> in words.
MOVED = {"base": "the base address", "ld": "the leading dimension", "K": "K"}


def _alone(table: Table) -> tuple[Row, str]:
    """The row in which the base pointer alone is not aligned; in words also those of ld and K."""
    rows = {name: table.measured(name) for name in ("base", "ld", "K")}
    texts = (f"{MOVED[name]} {with_verdict(row)}" for name, row in rows.items())
    return rows["base"], f"Time with one thing moved off its mark, over none: {'; '.join(texts)}."


@claim(FACTORIAL)
def slice_has_alignment_issues(factorial: Table) -> Finding:
    """The base pointer alone, off by one element, slows the matmul down."""
    base, seen = _alone(factorial)
    slower = over_control(base).says("slower")
    return answer(slower, seen, None if slower is None else over_control(base))


@claim(*SWEEPS)
def offset_mod_128_predicts(*tables: Table) -> Finding:
    """Swept one at a time: slower exactly where the base offset is no multiple of 128 bytes."""
    cases = Cases()
    for row in [row for table in tables for row in table]:
        if units.missing(row.get("alignment_bytes")):
            continue
        offset = f"{row['alignment_bytes']:.0f} B"
        with cases.at(op=row["op"], factor=row["factor"], bytes=offset) as case:
            expected = row["factor"] == "base" and row["alignment_bytes"] < 128
            slower = over_control(row).says("slower")
            case(None if slower is None else expected == slower)
    return cases.finding(f"The rule is right in {cases.true} of {len(cases)} cases.")


@claim(FACTORIAL, *EVERY)
def alignment_decides_gemm(factorial: Table, *tables: Table) -> Finding:
    """The base pointer alone slows a matmul down; other strides of an aligned matrix, transposed,
    change its time by no tenth, in any format and size."""
    base, seen = _alone(factorial)
    cases = Cases()
    with cases.at(moved="base pointer") as case:
        case(over_control(base).says("slower"))
    for table in tables:
        with cases.at(moved=f"strides {table.label}") as case:
            ratio = over_control(table.row("transposed_view", op="matmul", **WARM))
            case(ratio.near(1.0), ratio)
    return cases.finding(f"{seen} Transposed, in every format and size: {cases.range}.")


@claim(PAYBACK)
def copy_may_win(payback: Table) -> Finding:
    """Of one view or another, a contiguous copy has paid for itself after some uses."""
    cases = Cases()
    for row in payback.select(remedy="contiguous copy", step="use"):
        with cases.at(case=row["case"]) as case:
            pays = trusted(row).get("pays")
            uses = units.format_value(row.get("uses"), ".1f") if pays else "no number of"
            when = "not known" if pays is None else f"after {uses} uses"
            case(pays, said=f"{row['case']}: {when}")
    return cases.possible(f"When a contiguous copy has paid: {cases.said()}.")


@claim(PAYBACK)
def cannot_be_optimised_away(payback: Table) -> Finding:
    """No copy of the sliced view, however laid out, makes its matmul faster."""
    uses = payback.select(case="sliced_offset_view", step="use", role="variant")
    found = [row for row in uses if row.get("remedy") != "none" and not why_not(row)]
    if not found:
        return Finding(INCONCLUSIVE, "No remedy was measured.")
    best = min(found, key=lambda row: row["ratio"])
    seen = f"Time with the best remedy, a {best['remedy']}, over the sliced view's: "
    seen += f"{with_verdict(best)}."
    ratio = over_control(best)
    stands = ratio.says("slower", "same")
    return answer(stands, seen, None if stands is None else ratio)
