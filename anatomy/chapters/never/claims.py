"""The seed's list of what never to do, put to what each entry costs; and its first sentence."""

from statistics import mean

from anatomy.claims import Cases, Finding, Measured, Need, answer, claim
from anatomy.claims.cases import between
from anatomy.claims.findings import span
from anatomy.claims.needs import CEILINGS, beginning, best
from anatomy.claims.table import Table, over_control, quotient, time_of, with_verdict
from anatomy.judge.rows import Row
from anatomy.table import units
from anatomy.table.errors import UnknownName
from anatomy.table.intervals import ONE_PROCESS_EFFECT

COSTS = Need("never.costs")
# Beginning of an operation -> the variants in it that do what the list forbids.
ENTRIES = {
    "ping-pong": ("by way of the CPU",),
    "loop over elements": ("loop over the tensor", "loop with .item()"),
    "logging": ("each step",),
}
# First weights that a network can be trained from. Equal ones would stay equal.
GAIN = 1.05  # how much faster a step is if default weights cost performance
USABLE = ("xavier", "normal, 0.02")
# What one figure of the datasheet is of -> what reaches it, and the work that is counted.
SHARED = {
    "memory": (("copy", "read", "write"), "bytes"),
    "products": (("matmul fp16", "matmul bf16"), "flops"),
}


def _of(costs: Table, entry: str, variants: tuple[str, ...]) -> list[Row]:
    """The rows of an entry; UnknownName is raised where there is none."""
    if found := beginning(costs, entry, *variants):
        return found
    raise UnknownName("op in a recording", entry, [str(row.get("op")) for row in costs])


@claim(COSTS)
def never_ping_pong(costs: Table) -> Finding:
    """Each of the three is slower than what one would do instead, in every case measured.

    No ratio sums them up, so what one use costs stands beside the verdict.
    """
    cases, seen = Cases(), []
    for entry, variants in ENTRIES.items():
        uses = []
        for row in _of(costs, entry, variants):
            with cases.at(entry=entry, case=f"{row['op']} {row['variant']}") as case:
                case(over_control(row).says("slower"))
                uses.append(row["use_s"])
        if uses:
            seen.append(f"{entry} {between(uses, units.seconds)}")
    slower = f"Slower in {cases.true} of {len(cases.measurable)} cases."
    return cases.finding(f"{slower} One use takes longer by: {'; '.join(seen)}.")


@claim(COSTS)
def never_default_initialization(costs: Table) -> Finding:
    """A training step from Xavier's or small normal weights is 5 % faster than from the default.

    One process tells such a gain from none, and hardly a smaller one. Weights that are all equal
    or zero train nothing; they are measured, and not counted.
    """
    cases = Cases()
    for row in _of(costs, "initialization", USABLE):
        with cases.at(instead=row["variant"]) as case:
            ratio = over_control(row)
            case(ratio.at_most(1 / GAIN), ratio, f"{row['variant']} {with_verdict(row)}")
    return cases.finding(f"Time of a step over that from default weights: {cases.said()}.")


@claim(COSTS)
def never_without_warm_up(costs: Table) -> Finding:
    """The mean of the first 20 calls is further than 2 % from what a call takes a second later."""
    cases = Cases()
    for row in _of(costs, "first calls", ("warm",)):
        what = row["op"].removeprefix("first calls, ")
        with cases.at(what=what) as case:
            over = quotient(Measured.counted(row["mean_first_s"], "s"), time_of(row))
            even = over.near(1.0, ONE_PROCESS_EFFECT)
            first = costs.row("call 1", op=row["op"])
            calls = [each["median_s"] for each in costs.select(op=row["op"]) if each.get("call")]
            others = units.ratio(mean(calls[1:]) / row["median_s"])
            beside = f"its first call {units.ratio(first['over_warm'])}"
            seen = f"{what} {over.text}, {beside} and the mean of the others {others}"
            case(None if even is None else not even, over, seen)
    return cases.finding(f"Mean of the first calls over a warm call: {cases.said()}.")


@claim(CEILINGS)
def hardware_admits_no_interpretation(ceilings: Table) -> Finding:
    """What shares one figure of the datasheet reaches one rate, within 2 %: else it needs reading.

    Copying, reading and writing share the memory's bandwidth; fp16 and bf16 matmuls one peak.
    """
    ratios, seen = [], []
    for figure, (names, work) in SHARED.items():
        rates = {name: best(ceilings, name, work) for name in names}
        lowest, highest = (f(rates.values(), key=lambda r: r.value) for f in (min, max))
        ratio = quotient(lowest, highest)
        ratios.append(ratio)
        listed = ", ".join(f"{name} {units.rate(r.value, r.unit)}" for name, r in rates.items())
        seen.append(f"{figure}: {listed}, so the lowest is {ratio.text} of the highest")
    # It speaks of all limits, so one that has to be read is enough.
    outcomes = [ratio.near(1.0, ONE_PROCESS_EFFECT) for ratio in ratios]
    outcome = False if False in outcomes else None if None in outcomes else True
    evidence = f"Of one figure of the datasheet each, at their best: {'; '.join(seen)}."
    return answer(outcome, evidence, span(ratios))
