"""What the axioms say of gradient accumulation, put to gradients, and to its price.

The gradients follow from fixed random numbers: an error is a number and not a sample, so what
decides is the rounding of the number format, which the recording holds beside it.
"""

from collections.abc import Sequence

from anatomy import units
from anatomy.claims import Case, Finding, Measured, Need, across, claim
from anatomy.claims.checkpointing import NO_ACCOUNT
from anatomy.claims.table import Table, why_not
from anatomy.rows import Row

GRADIENTS = Need("accumulation.gradients")
STEPS = Need("accumulation.steps")
# An error beyond so many times what rounding explains is no rounding; between it is undecided.
BEYOND = 10
CHECKPOINTED = "every layer checkpointed"


def _cases(table: Table, variant: str) -> list[Case]:
    """Whether the gradient of one way is that of the full batch, in each of its cases."""
    return [
        Case({name: row[name] for name in ("lengths", "dtype", "steps")}, _same(row))
        for row in table
        if row["variant"] == variant
    ]


def _same(row: Row) -> bool | None:
    if row["gradient_error"] <= row["allowed"]:
        return True
    return False if row["gradient_error"] > BEYOND * row["allowed"] else None


def _largest(table: Table, variant: str) -> str:
    """The largest error of one way by the lengths of sequences: `equal 0.3%, mixed 12%`."""
    found: dict[str, float] = {}
    for row in table:
        if row["variant"] == variant:
            found[row["lengths"]] = max(found.get(row["lengths"], 0.0), row["gradient_error"])
    return ", ".join(f"{lengths} {units.percent(most, 2)}" for lengths, most in found.items())


@claim(GRADIENTS)
def divide_loss_by_steps(gradients: Table) -> Finding:
    """The sum of gradients of mean losses over the number of steps is that of the full batch, as
    far as the number format allows, for equal and unequal lengths of sequences.
    """
    cases = _cases(gradients, "loss / steps")
    told = _largest(gradients, "loss / steps")
    return across(cases, f"Largest error of the gradient, by lengths of sequences: {told}.")


@claim(
    GRADIENTS,
    statement="Weighted by its share of the tokens, each micro-batch adds its part to the gradient "
    "of the full batch.",
    topic="checkpointing",
)
def weighted_by_tokens_is_exact(gradients: Table) -> Finding:
    """The sum of gradients of mean losses times the share of tokens is that of the full batch, as
    far as the number format allows.
    """
    cases = _cases(gradients, "weighted by tokens")
    told = _largest(gradients, "weighted by tokens")
    return across(cases, f"Largest error of the gradient, by lengths of sequences: {told}.")


@claim(
    STEPS,
    statement="Cutting a batch into micro-batches is a cheaper way to less memory than "
    "checkpointing every layer.",
    topic="checkpointing",
    measures="time of micro-batches / of checkpointing every layer",
)
def accumulation_before_checkpointing(steps: Table) -> Finding:
    """Some number of micro-batches needs no more memory than checkpointing every layer of the full
    batch, and is faster.
    """
    cases, seen = [], []
    for op in dict.fromkeys(row["op"] for row in steps):
        base = steps.row(CHECKPOINTED, op=op)
        where = {"tokens": base.get("tokens")}
        others = [
            row
            for row in steps
            if row["op"] == op and row["role"] == "variant" and (row.get("steps") or 1) > 1
        ]
        if reason := why_not(base) or next(filter(None, map(why_not, others)), ""):
            cases.append(Case(where, None, why=reason))
            continue
        if any(units.missing(row.get("peak_bytes")) for row in (base, *others)):
            cases.append(Case(where, None, why=NO_ACCOUNT))
            continue
        as_small = [row for row in others if row["peak_bytes"] <= base["peak_bytes"]]
        outcome, best, told = _cheapest(steps, op, as_small)
        cases.append(Case(where, outcome, best))
        seen.append(f"{base.get('tokens')} tokens: {told}")
    return across(cases, f"In no more memory, over checkpointing: {'; '.join(seen)}.")


def _cheapest(
    steps: Table, op: str, as_small: Sequence[Row]
) -> tuple[bool | None, Measured | None, str]:
    """Whether one of several ways is faster than checkpointing, the fastest ratio, and in words."""
    if not as_small:
        return False, None, "no number of steps needs as little"
    found = []
    for row in as_small:
        ratio, verdict = steps.ratio(row["variant"], CHECKPOINTED, op=op)
        floor = row.get("noise_floor") or 0.0
        time = Measured(ratio.median, ratio.low, ratio.high, floor=floor)
        found.append((ratio.median, row["variant"], time, verdict))
    _, name, best, _ = min(found, key=lambda each: each[0])
    verdicts = [verdict for *_, verdict in found]
    outcome = True if "faster" in verdicts else None if "undecided" in verdicts else False
    return outcome, best, f"{name} take {best.text} of the time"
