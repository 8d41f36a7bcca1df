"""What the axioms say of gradient accumulation, put to gradients, and to its price.

The gradients follow from fixed random numbers: an error is a number and not a sample, so what
decides is the rounding of the number format, which the recording holds beside it.
"""

from collections.abc import Callable

from anatomy.chapters.checkpointing.claims import NO_ACCOUNT, SAME_MEMORY
from anatomy.claims import Cases, Finding, Need, Unmeasured, claim
from anatomy.claims.table import Table, trusted
from anatomy.judge.rows import Row
from anatomy.table import units

GRADIENTS = Need("accumulation.gradients")
STEPS = Need("accumulation.steps")
# An error beyond so many times what rounding explains is no rounding; between it is undecided.
BEYOND = 10
# How the lengths of the sequences are spread, as a condition has it.
LENGTHS = {"equal": "equal lengths", "mixed": "mixed lengths", "sorted": "sorted lengths"}
CHECKPOINTED = "every layer checkpointed"


def _exactness(
    gradients: Table, way: str, by: str, printed: Callable[[float], str]
) -> tuple[Cases, str]:
    """Whether the gradient of one way is that of the full batch, in each of its cases.

    Returns:
        The cases, and the largest error in words, by a column such as the lengths of sequences.
    """
    cases, largest = Cases(), {}
    for row in gradients.select(variant=way):
        with cases.at(lengths=LENGTHS[row["lengths"]], dtype=row["dtype"]) as case:
            case(_same(row))
        largest[row[by]] = max(largest.get(row[by], 0.0), row["gradient_error"])
    return cases, ", ".join(f"{name} {printed(most)}" for name, most in largest.items())


def _same(row: Row) -> bool | None:
    if row["gradient_error"] <= row["allowed"]:
        return True
    return False if row["gradient_error"] > BEYOND * row["allowed"] else None


@claim(GRADIENTS)
def divide_loss_by_steps(gradients: Table) -> Finding:
    """The sum of gradients of mean losses over the number of steps is that of the full batch, as
    far as the number format allows, for equal and unequal lengths of sequences.
    """
    cases, largest = _exactness(
        gradients, "loss / steps", "lengths", lambda most: units.percent(most, 2)
    )
    return cases.finding(f"Largest error of the gradient, by lengths of sequences: {largest}.")


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
    cases, largest = _exactness(gradients, "weighted by tokens", "dtype", "{:.1e}".format)
    return cases.finding(f"Largest error of the gradient, by number format: {largest}.")


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
    cases = Cases()
    for op in steps.distinct("op"):
        base = steps.row(CHECKPOINTED, op=op)
        tokens = f"{base.get('tokens')} tokens"
        with cases.at(tokens=tokens) as case:
            trusted(base)
            variants = steps.select(op=op, role="variant")
            others = [trusted(row) for row in variants if (row.get("steps") or 1) > 1]
            if any(units.missing(row.get("peak_bytes")) for row in (base, *others)):
                raise Unmeasured(NO_ACCOUNT)
            most = base["peak_bytes"] * (1 + SAME_MEMORY)
            times = {
                row["variant"]: steps.ratio(row["variant"], CHECKPOINTED, op=op)
                for row in others
                if row["peak_bytes"] <= most
            }
            if not times:
                case(False, said=f"of {tokens}, no number of steps needs as little")
                continue
            name, best = min(times.items(), key=lambda each: each[1].value)
            words = [time.verdict for time in times.values()]
            outcome = True if "faster" in words else None if "undecided" in words else False
            case(outcome, best, f"of {tokens}, {name} take {best.text} of its time")
    return cases.finding(f"In no more memory than checkpointing: {cases.said()}.")
