"""What the axioms say of gradient accumulation, put to gradients, and to its price.

The gradients follow from fixed random numbers: an error is a number and not a sample, so what
decides is the rounding of the number format, which the recording holds beside it.
"""

from collections.abc import Sequence

from anatomy import units
from anatomy.claims import Case, Finding, Measured, Need, across, claim
from anatomy.claims.checkpointing import NO_ACCOUNT, SAME_MEMORY
from anatomy.claims.table import Table, why_not
from anatomy.rows import Row

GRADIENTS = Need("accumulation.gradients")
STEPS = Need("accumulation.steps")
# An error beyond so many times what rounding explains is no rounding; between it is undecided.
BEYOND = 10
# How the lengths of the sequences are spread, as a condition has it.
LENGTHS = {"equal": "equal lengths", "mixed": "mixed lengths", "sorted": "sorted lengths"}
CHECKPOINTED = "every layer checkpointed"


def _cases(table: Table, variant: str) -> list[Case]:
    """Whether the gradient of one way is that of the full batch, in each of its cases."""
    return [
        Case({"lengths": LENGTHS[row["lengths"]], "dtype": row["dtype"]}, _same(row))
        for row in table
        if row["variant"] == variant
    ]


def _same(row: Row) -> bool | None:
    if row["gradient_error"] <= row["allowed"]:
        return True
    return False if row["gradient_error"] > BEYOND * row["allowed"] else None


def _largest(table: Table, variant: str, by: str) -> dict[str, float]:
    """The largest error of one way, by a column such as the lengths of sequences."""
    found: dict[str, float] = {}
    for row in table:
        if row["variant"] == variant:
            found[row[by]] = max(found.get(row[by], 0.0), row["gradient_error"])
    return found


@claim(GRADIENTS)
def divide_loss_by_steps(gradients: Table) -> Finding:
    """The sum of gradients of mean losses over the number of steps is that of the full batch, as
    far as the number format allows, for equal and unequal lengths of sequences.
    """
    cases = _cases(gradients, "loss / steps")
    largest = _largest(gradients, "loss / steps", "lengths")
    told = ", ".join(f"{lengths} {units.percent(most, 2)}" for lengths, most in largest.items())
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
    largest = _largest(gradients, "weighted by tokens", "dtype")
    told = ", ".join(f"{dtype} {most:.1e}" for dtype, most in largest.items())
    return across(cases, f"Largest error of the gradient, by number format: {told}.")


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
        where = {"tokens": f"{base.get('tokens')} tokens"}
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
        most = base["peak_bytes"] * (1 + SAME_MEMORY)
        as_small = [row for row in others if row["peak_bytes"] <= most]
        outcome, best, told = _cheapest(steps, op, as_small)
        cases.append(Case(where, outcome, best))
        seen.append(f"of {where['tokens']}, {told}")
    return across(cases, f"In no more memory than checkpointing: {'; '.join(seen)}.")


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
    return outcome, best, f"{name} take {best.text} of its time"
