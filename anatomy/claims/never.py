"""The seed's list of what never to do, put to what each entry costs; and its first sentence."""

from itertools import combinations

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
from anatomy.claims.table import Table, over_control, quotient, told, why_not
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
# Figures that share one figure of the datasheet.
SHARED = (("copy", "read", "write"), ("matmul fp16", "matmul bf16"))


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
    """Each of the three is slower than what one would do instead, in every case measured."""
    cases, seen = [], []
    for entry, variants in ENTRIES.items():
        for row in _of(costs, entry, variants):
            where = {"entry": entry, "case": f"{row['op']} {row['variant']}"}
            if reason := why_not(row):
                cases.append(Case(where, None, why=reason))
                continue
            cases.append(Case(where, slower(row), over_control(row)))
            each = (row.get(name) for name in ("use_s", "use_low_s", "use_high_s"))
            seen.append(f"{row['op']}, {row['variant']}: {units.seconds_range(*each)}")
    return across(cases, f"More time for one use: {'; '.join(seen)}.")


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
        mean = row["mean_first_s"]
        over = Measured(
            mean / row["median_s"], mean / row["high_s"], mean / row["low_s"], floor=0.0
        )
        even = within(over, 1 - ONE_PROCESS_EFFECT, 1 + ONE_PROCESS_EFFECT)
        cases.append(Case({"what": what}, None if even is None else not even, over))
        first = costs.row("call 1", op=row["op"])
        seen.append(f"{what} {over.text}, its first call {units.ratio(first['over_warm'])}")
    return across(cases, f"Mean of the first calls over a warm call: {'; '.join(seen)}.")


@claim(CEILINGS)
def hardware_admits_no_interpretation(ceilings: Table) -> Finding:
    """What shares one figure of the datasheet reaches one rate, within 2 %: else it needs reading.

    Copying, reading and writing share the memory's bandwidth; fp16 and bf16 products one peak.
    """
    outcomes, ratios = [], []
    for names in SHARED:
        work = "flops" if names[0].startswith("matmul") else "bytes"
        rates = {name: best(ceilings, name, work) for name in names}
        for above, below in combinations(names, 2):
            ratio = quotient(rates[above], rates[below])
            ratios.append((f"{above} over {below}", ratio))
            outcomes.append(within(ratio, 1 - ONE_PROCESS_EFFECT, 1 + ONE_PROCESS_EFFECT))
    seen = "; ".join(f"{name} {ratio.text}" for name, ratio in ratios)
    evidence = f"Best rates that share one figure of the datasheet: {seen}."
    # It speaks of all limits, so one that has to be read is enough.
    word = FAILS if False in outcomes else INCONCLUSIVE if None in outcomes else HOLDS
    return Finding(word, evidence, span([ratio for _, ratio in ratios]))
