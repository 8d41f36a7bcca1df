"""What the seed says of alignment, put to the experiments that move one thing at a time."""

from anatomy import units
from anatomy.claims import FAILS, HOLDS, INCONCLUSIVE, Case, Finding, Need, across, claim
from anatomy.claims.contiguity import WARM, bench
from anatomy.claims.table import Table, over_control, told, why_not

FACTORIAL = Need("alignment.factorial")
# A streaming operation needs more rows than a product before it leaves the cache behind.
SWEEPS = tuple(
    Need("alignment.thresholds", {"op": op} | ({} if op == "matmul" else {"m": 16384}))
    for op in ("matmul", "layer_norm", "pointwise")
)
PAYBACK = Need("remedies.payback")


def _alone(table: Table) -> dict[str, dict]:
    """The rows in which base pointer, leading dimension or K alone is not aligned."""
    return {name: table.measured(name) for name in ("base", "ld", "K")}


def _said(alone: dict[str, dict]) -> str:
    return "; ".join(f"{name} alone {told(row)}" for name, row in alone.items()) + "."


@claim(FACTORIAL)
def slice_has_alignment_issues(factorial: Table) -> Finding:
    """The base pointer alone, off by one element, slows the product down."""
    alone = _alone(factorial)
    if alone["base"]["verdict"] == "undecided":
        return Finding(INCONCLUSIVE, _said(alone))
    word = HOLDS if alone["base"]["verdict"] == "slower" else FAILS
    return Finding(word, _said(alone), over_control(alone["base"]))


@claim(*SWEEPS)
def offset_mod_128_predicts(*tables: Table) -> Finding:
    """Swept one at a time: slower exactly where the base offset is no multiple of 128 bytes."""
    cases = []
    for table in tables:
        for row in table:
            if units.missing(row.get("alignment_bytes")):
                continue
            where = {"factor": row["factor"], "bytes": f"{row['alignment_bytes']:.0f} B"}
            if reason := why_not(row):
                cases.append(Case({"op": row["op"]} | where, None, why=reason))
                continue
            expected = row["factor"] == "base" and row["alignment_bytes"] < 128
            known = row["verdict"] != "undecided"
            outcome = expected == (row["verdict"] == "slower") if known else None
            cases.append(Case({"op": row["op"]} | where, outcome))
    right = sum(case.outcome is True for case in cases)
    return across(cases, f"The rule is right in {right} of {len(cases)} cases.")


@claim(FACTORIAL, bench("fp16", 4096))
def alignment_decides_gemm(factorial: Table, fp16: Table) -> Finding:
    """The base pointer alone slows a product down, and a transposed view does not."""
    alone = _alone(factorial)
    strides = fp16.measured("transposed_view", op="matmul", **WARM)
    seen = f"{_said(alone)} Transposed: {told(strides)}."
    if "undecided" in (alone["base"]["verdict"], strides["verdict"]):
        return Finding(INCONCLUSIVE, seen)
    holds = alone["base"]["verdict"] == "slower" and strides["verdict"] != "slower"
    return Finding(HOLDS if holds else FAILS, seen)


@claim(PAYBACK)
def copy_may_win(payback: Table) -> Finding:
    """There is a number of products after which one contiguous copy has paid for itself."""
    cases, seen = [], []
    for row in payback:
        if row.get("remedy") == "contiguous copy" and row.get("step") == "use":
            if reason := why_not(row):
                cases.append(Case({"case": row["case"]}, None, why=reason))
                continue
            cases.append(Case({"case": row["case"]}, row.get("pays")))
            uses = units.format_value(row.get("uses"), ".1f") if row.get("pays") else "no number of"
            seen.append(f"{row['case']}: pays after {uses} uses")
    return across(cases, "; ".join(seen) + ".")


@claim(PAYBACK)
def cannot_be_optimised_away(payback: Table) -> Finding:
    """No copy of the sliced view, however laid out, makes its product faster."""
    found = [
        row
        for row in payback
        if row.get("case") == "sliced_offset_view"
        and row.get("step") == "use"
        and row.get("role") == "variant"
        and row.get("remedy") != "none"
        and not why_not(row)
    ]
    if not found:
        return Finding(INCONCLUSIVE, "No remedy was measured.")
    best = min(found, key=lambda row: row["ratio"])
    seen = f"The best remedy, a {best['remedy']}, takes {told(best)} of the sliced view's time."
    if best["verdict"] == "undecided":
        return Finding(INCONCLUSIVE, seen)
    return Finding(FAILS if best["verdict"] == "faster" else HOLDS, seen, over_control(best))
