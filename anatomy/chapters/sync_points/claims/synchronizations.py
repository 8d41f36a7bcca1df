"""What the seed says of hidden synchronizations, put to lines that were watched waiting."""

from collections import defaultdict

from anatomy.claims import Cases, Finding, Need, Unmeasured, answer, claim
from anatomy.claims.findings import NEAR, span
from anatomy.claims.needs import beginning
from anatomy.claims.table import Table, judged, quotient
from anatomy.judge.rows import Row
from anatomy.table import units

DETECTED, COSTS = Need("synchronizations.detected"), Need("synchronizations.costs")
TRANSFERS = Need("transfers.to_device")
# The lines that the seed names, as the experiment writes them.
NAMED = {".item()": "t[0].item()", "print": "print(t)", "if": "if (t > 0).any():"}
EACH, LATE = "item each step", "item a step late"  # one readback a step, at once or late
WAITS = {True: "waits", False: "does not wait", None: "is undecided"}


def _waits(row: Row) -> bool | None:
    """Whether the host waited behind a line; Unmeasured where nobody could ask."""
    waits = row.get("waits")
    if units.missing(waits) and row.get("note") and not row.get("debug_mode_says"):
        raise Unmeasured(row["note"])
    return None if units.missing(waits) else bool(waits)


@claim(DETECTED)
def hidden_synchronizations(detected: Table) -> Finding:
    """Behind a kernel of 10 ms, each of the three returns only once that kernel is over."""
    cases = Cases()
    for name, line in NAMED.items():
        with cases.at(line=name) as case:
            case(_waits(detected.row(line)))
    asked = [row for row in detected if not units.missing(row.get("waits"))]
    waiting = [row for row in asked if row["waits"]]
    missed = sum(row.get("debug_mode_says") == "nothing" for row in waiting)
    seen = ", ".join(f"{case.where['line']} {WAITS[case.outcome]}" for case in cases)
    return cases.finding(
        f"Behind a kernel that still runs: {seen}. Of the {len(asked)} lines that were "
        f"asked, {len(waiting)} wait, {missed} of them without a warning of PyTorch's debug mode."
    )


@claim(TRANSFERS)
def to_device_synchronizes(transfers: Table) -> Finding:
    """At every size, a copy to the GPU without non_blocking returns only once the GPU is done."""
    rows = transfers.select(direction="to the GPU")
    once = {(row["variant"], row["bytes"]): row for row in rows}  # the same in every quantity
    found: dict[str, Cases] = defaultdict(Cases)
    for (way, size), row in once.items():
        memory, _, how = way.partition(", ")
        with found[how].at(memory=memory, size=units.byte_count(size)) as case:
            case(_waits(row))
    plain, queued = found[""], found["non_blocking"]
    seen = {name: queued.of(memory=name) for name in ("pageable", "pinned")}
    beside = [f"{each.true} of {len(each)} sizes from {name} memory" for name, each in seen.items()]
    return plain.finding(
        f"Copies to the GPU: without non_blocking the host waits in {plain.true} of "
        f"{len(plain)} cases; with it, at {' and '.join(beside)}."
    )


@claim(COSTS)
def measure_first(costs: Table) -> Finding:
    """One change of a line costs a tenth more in one loop than in another: where, a clock says.

    It fails if the change costs the same in every loop up to that: then a rule would do.
    """
    rows = beginning(costs, "step ", EACH)
    cases = judged((({}, row) for row in rows), lambda ratio: ratio.says("slower"))
    there = cases.measurable
    if not there:
        return cases.finding("")
    most, least = (f(there.numbers, key=lambda each: each.value) for f in (max, min))
    apart, ratios = quotient(most, least), span(there.numbers)
    return answer(
        apart.at_least(1 + NEAR),
        f"Time of a step with one readback over that without: {ratios.text}. It is slower in "
        f"{there.true} of {len(there)} loops, and undecided in the rest. The most is {apart.text} "
        "of the least.",
        ratios,
    )


@claim(
    COSTS, topic="sync points", measures="time of a step with a late readback / with one at once"
)
def late_readback_costs_less(costs: Table) -> Finding:
    """To read the loss of the step before costs a loop less time than to read this one's.

    Block by block, a step that reads the value of the step before is quicker, in every loop."""
    cases = Cases()
    for row in beginning(costs, "step ", LATE):
        pace = f"steps whose pace the {row.get('bound_by')} sets"
        with cases.at(pace=pace, step=row["op"]) as case:
            ratio = costs.ratio(LATE, EACH, op=row["op"])
            case(ratio.at_most(1.0), ratio)
    seen = cases.spans("pace")
    return cases.finding(f"Time of a step with a late readback over one with it at once: {seen}.")
