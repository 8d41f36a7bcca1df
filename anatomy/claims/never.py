"""The seed's list of what never to do, put to what each entry costs; and its first sentence."""

from statistics import mean

from anatomy import units
from anatomy.claims import (
    FAILS,
    HOLDS,
    INCONCLUSIVE,
    Case,
    Finding,
    Measured,
    Need,
    across,
    claim,
    within,
)
from anatomy.claims.findings import span
from anatomy.claims.limits import CEILINGS, best
from anatomy.claims.synchronizations import slower
from anatomy.claims.table import Table, between, over_control, quotient, told, why_not
from anatomy.errors import UnknownName
from anatomy.intervals import ONE_PROCESS_EFFECT
from anatomy.rows import Row

COSTS = Need("never.costs")
# Beginning of an operation -> the variants in it that do what the list forbids.
ENTRIES = {
    "ping-pong": ("by way of the CPU",),
    "loop over elements": ("loop over the tensor", "loop with .item()"),
    "logging": ("each step",),
}
# First weights that a network can be trained from. Equal ones would stay equal.
USABLE = ("xavier", "normal, 0.02")
# What one figure of the datasheet is of -> what reaches it, and the work that is counted.
SHARED = {
    "memory": (("copy", "read", "write"), "bytes"),
    "products": (("matmul fp16", "matmul bf16"), "flops"),
}


def _of(costs: Table, entry: str, variants: tuple[str, ...]) -> list[Row]:
    """The rows of an entry.

    Raises:
        UnknownName: There is none.
    """
    found = [
        row
        for row in costs
        if str(row.get("op")).startswith(entry) and row.get("variant") in variants
    ]
    if not found:
        raise UnknownName("op in a recording", entry, [str(row.get("op")) for row in costs])
    return found


@claim(COSTS)
def never_ping_pong(costs: Table) -> Finding:
    """Each of the three is slower than what one would do instead, in every case measured.

    No ratio sums them up: that of a loop is of its length, and that of a trip of what lies beside
    it. What one use costs stands beside the verdict.
    """
    cases, seen = [], []
    for entry, variants in ENTRIES.items():
        each = []
        for row in _of(costs, entry, variants):
            where = {"entry": entry, "case": f"{row['op']} {row['variant']}"}
            if reason := why_not(row):
                cases.append(Case(where, None, why=reason))
                continue
            cases.append(Case(where, slower(row)))
            each.append(row["use_s"])
        if each:
            seen.append(f"{entry} {between(each, units.seconds)}")
    there = [case for case in cases if not case.why]
    count = sum(case.outcome is True for case in there)
    return across(
        cases,
        f"Slower in {count} of {len(there)} cases. One use takes longer by: {'; '.join(seen)}.",
    )


@claim(COSTS)
def never_default_initialization(costs: Table) -> Finding:
    """A training step from Xavier's or from small normal weights is faster than from the default.

    Weights that are all equal or zero train nothing; they are measured, and not counted.
    """
    cases, seen = [], []
    for row in _of(costs, "initialization", USABLE):
        where = {"instead": row["variant"]}
        if reason := why_not(row):
            cases.append(Case(where, None, why=reason))
            continue
        faster = {"faster": True, "same": False, "slower": False}.get(row.get("verdict"))
        cases.append(Case(where, faster, over_control(row)))
        seen.append(f"{row['variant']} {told(row)}")
    return across(cases, f"Time of a step over that from default weights: {'; '.join(seen)}.")


@claim(COSTS)
def never_without_warm_up(costs: Table) -> Finding:
    """The mean of the first 20 calls is further than 2 % from what a call takes a second later."""
    cases, seen = [], []
    for row in _of(costs, "first calls", ("warm",)):
        what = row["op"].removeprefix("first calls, ")
        if reason := why_not(row):
            cases.append(Case({"what": what}, None, why=reason))
            continue
        ends = (row["mean_first_s"] / row[end] for end in ("median_s", "high_s", "low_s"))
        over = Measured(*ends)
        even = within(over, 1 - ONE_PROCESS_EFFECT, 1 + ONE_PROCESS_EFFECT)
        cases.append(Case({"what": what}, None if even is None else not even, over))
        first = costs.row("call 1", op=row["op"])
        calls = [r["median_s"] for r in costs if r.get("op") == row["op"] and r.get("call")]
        others = mean(calls[1:]) / row["median_s"]
        seen.append(
            f"{what} {over.text}, its first call {units.ratio(first['over_warm'])} and the mean "
            f"of the others {units.ratio(others)}"
        )
    return across(cases, f"Mean of the first calls over a warm call: {'; '.join(seen)}.")


@claim(CEILINGS)
def hardware_admits_no_interpretation(ceilings: Table) -> Finding:
    """What shares one figure of the datasheet reaches one rate, within 2 %: else it needs reading.

    Copying, reading and writing share the memory's bandwidth; fp16 and bf16 products one peak.
    """
    outcomes, ratios, seen = [], [], []
    for figure, (names, work) in SHARED.items():
        rates = {name: best(ceilings, name, work) for name in names}
        lowest, highest = (f(rates.values(), key=lambda r: r.value) for f in (min, max))
        ratio = quotient(lowest, highest)
        ratios.append(ratio)
        outcomes.append(within(ratio, 1 - ONE_PROCESS_EFFECT, 1 + ONE_PROCESS_EFFECT))
        said = ", ".join(f"{name} {units.rate(r.value, r.unit)}" for name, r in rates.items())
        seen.append(f"{figure}: {said}, so the lowest is {ratio.text} of the highest")
    evidence = f"Of one figure of the datasheet each, at their best: {'; '.join(seen)}."
    # It speaks of all limits, so one that has to be read is enough.
    word = FAILS if False in outcomes else INCONCLUSIVE if None in outcomes else HOLDS
    return Finding(word, evidence, span(ratios))
