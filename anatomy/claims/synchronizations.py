"""What the seed says of hidden synchronizations, put to lines that were watched waiting."""

from anatomy import units
from anatomy.claims import FAILS, HOLDS, INCONCLUSIVE, Case, Finding, Need, across, claim, within
from anatomy.claims.findings import Measured, span
from anatomy.claims.table import Table, over_control, why_not
from anatomy.rows import Row

DETECTED, COSTS = Need("synchronizations.detected"), Need("synchronizations.costs")
TRANSFERS = Need("transfers.to_device")
# The lines that the seed names, as the experiment writes them.
NAMED = {".item()": "t[0].item()", "print": "print(t)", "if": "if (t > 0).any():"}
# What one readback a step is called, at once and of the step before.
EACH, LATE = "item each step", "item a step late"


def slower(row: Row) -> bool | None:
    """Whether a row is slower than its control; None where that is not decided."""
    return {"slower": True, "same": False, "faster": False}.get(row.get("verdict"))


def _waited(row: Row, **where: str) -> Case:
    """The case of a row that says whether the host waited."""
    waits = row.get("waits")
    asked = not units.missing(waits) or not row.get("note") or bool(row.get("debug_mode_says"))
    why = "" if asked else row["note"]
    return Case(where, None if units.missing(waits) else bool(waits), why=why)


@claim(DETECTED)
def hidden_synchronizations(detected: Table) -> Finding:
    """Behind a kernel of 10 ms, each of the three returns only once that kernel is over."""
    rows = {name: detected.row(line) for name, line in NAMED.items()}
    cases = [_waited(row, line=name) for name, row in rows.items()]
    asked = [row for row in detected if not units.missing(row.get("waits"))]
    waiting = sum(bool(row["waits"]) for row in asked)
    missed = sum(bool(row["waits"]) and row.get("debug_mode_says") == "nothing" for row in asked)
    seen = [f"{name} {_word(case)}" for name, case in zip(rows, cases, strict=True)]
    return across(
        cases,
        f"Behind a kernel that still runs: {', '.join(seen)}. Of the {len(asked)} lines that were "
        f"asked, {waiting} wait, {missed} of them without a warning of PyTorch's debug mode.",
    )


def _word(case: Case) -> str:
    return {True: "waits", False: "does not wait", None: "is undecided"}[case.outcome]


@claim(TRANSFERS)
def to_device_synchronizes(transfers: Table) -> Finding:
    """At every size, a copy to the GPU without non_blocking returns only once the GPU is done."""
    asked = [
        row
        for row in transfers
        if row.get("direction") == "to the GPU" and row.get("role") != "again"
    ]
    once = {(row["variant"], row["bytes"]): row for row in asked}  # the same in every quantity
    found: dict[str, list[Case]] = {}
    for (way, size), row in once.items():
        memory, _, how = way.partition(", ")
        case = _waited(row, memory=memory, size=units.byte_count(size))
        found.setdefault(how, []).append(case)
    beside = []
    for memory in ("pageable", "pinned"):
        cases = [case for case in found.get("non_blocking", ()) if case.where["memory"] == memory]
        waiting = sum(case.outcome is True for case in cases)
        beside.append(f"{waiting} of {len(cases)} sizes from {memory} memory")
    waiting = sum(case.outcome is True for case in found[""])
    return across(
        found[""],
        f"Copies to the GPU: without non_blocking the host waits in {waiting} of "
        f"{len(found[''])} cases; with it, at {' and '.join(beside)}.",
    )


@claim(COSTS)
def measure_first(costs: Table) -> Finding:
    """One change of one line costs time in some loops and none in others: which, only a clock says.

    It fails if the change has the same verdict in every loop: then a rule would do.
    """
    rows = [
        row
        for row in costs
        if str(row.get("op")).startswith("step ") and row.get("variant") == EACH
    ]
    there = [row for row in rows if not why_not(row)]
    if not there:
        return across([Case({}, None, why=why_not(row)) for row in rows], "")
    outcomes = [slower(row) for row in there]
    ratios = span([over_control(row) for row in there])
    slow, even = outcomes.count(True), outcomes.count(False)
    evidence = (
        f"Time of a step with one readback over that without: {ratios.text}. It is slower in "
        f"{slow} of {len(there)} loops, not slower in {even}, and undecided in the rest."
    )
    if slow and even:
        return Finding(HOLDS, evidence, ratios)
    settled = len(there) in (slow, even)
    return Finding(FAILS if settled else INCONCLUSIVE, evidence, ratios)


@claim(
    COSTS,
    statement="To read the loss of the step before costs a loop less time than to read this one's.",
    topic="sync points",
    measures="time of a step with a late readback / with one at once",
)
def late_readback_costs_less(costs: Table) -> Finding:
    """Block by block, a step that reads the value of the step before is quicker, in every loop."""
    cases, seen = [], {}
    for row in costs:
        if not str(row.get("op")).startswith("step ") or row.get("variant") != LATE:
            continue
        each = costs.row(EACH, op=row["op"])
        where = {"pace": f"steps whose pace the {row.get('bound_by')} sets", "step": row["op"]}
        if reason := why_not(row) or why_not(each):
            cases.append(Case(where, None, why=reason))
            continue
        ratio, _ = costs.ratio(LATE, EACH, op=row["op"])
        floor = row.get("noise_floor") or 0.0
        found = Measured(ratio.median, ratio.low, ratio.high, floor=floor)
        cases.append(Case(where, within(found, 0.0, 1.0), found))
        seen.setdefault(where["pace"], []).append(found)
    told = "; ".join(f"{pace} {span(found).text}" for pace, found in seen.items())
    return across(cases, f"Time of a step with a late readback over one with it at once: {told}.")
