"""What the axioms say of activation checkpointing and of gradient accumulation. Peaks of memory are
counted and have no interval; two that are closer than `SAME_MEMORY` count as equal. Errors of
accumulated gradients follow from fixed random numbers, so the rounding of the format decides."""

from collections.abc import Callable
from functools import partial

from anatomy.claims import Cases, Finding, Measured, Need, Unmeasured, claim
from anatomy.claims.pace import listed, pace
from anatomy.claims.table import Table, bytes_over, judged, speed_up, trusted, why_not
from anatomy.judge.rows import Row
from anatomy.table import units

FRONTIER = Need("checkpointing.frontier")
GRADIENTS, STEPS = Need("accumulation.gradients"), Need("accumulation.steps")
# What people mean by activation checkpointing: layer by layer, or by operation.
USUAL = ("every layer", "selective")
NONE, BY_LAYER = "none", "every layer"
SAME_MEMORY = 0.01
NO_ACCOUNT = "this device keeps no account of its memory"
# Column -> whose memory its ratio is of.
ACCOUNTS = {"memory_ratio": "the step's own", "total_memory_ratio": "with weights"}
NAMED = 3  # how many of the ways that beat checkpointing by layers the evidence names
# An error beyond so many times what rounding explains is no rounding; between it is undecided.
BEYOND = 10
# How the lengths of the sequences are spread, as a condition has it.
LENGTHS = {"equal": "equal lengths", "mixed": "mixed lengths", "sorted": "sorted lengths"}
CHECKPOINTED = "every layer checkpointed"


def _place(row: Row) -> dict[str, str]:
    """Where on the map a row is, as its `op` says it."""
    width, depth, tokens = map(row.get, ("width", "depth", "tokens"))
    return {"depth": f"L={depth}", "width": f"C={width}", "tokens": f"{tokens} tokens"}


@claim(FRONTIER)
def checkpointing_speed(frontier: Table) -> Finding:
    """At least 0.7 of the speed is kept, layer by layer and selectively, in each case."""
    rows = [
        ({"granularity": row["variant"], "pace": pace(row)} | _place(row), row)
        for row in frontier.select(role="variant", variant=USUAL)
    ]
    cases = judged(rows, lambda speed: speed.at_least(0.7), speed_up)
    seen = listed(cases.numbers_by("pace", "granularity"))
    said = f"Time without checkpoints over time with them, {seen}."
    return cases.finding(f"{said} {cases.tally(0.7, 0.8)}")


@claim(FRONTIER)
def checkpointing_memory(frontier: Table) -> Finding:
    """Peak over that without checkpoints is at most 0.5, of the step alone and with the weights.

    How many keep to the whole range of the promise, 0.3 to 0.5, stands beside it.
    """
    cases, seen = Cases(), dict[tuple[str, str], list[Measured]]()
    for row in frontier.select(role="variant", variant=USUAL):
        for column, account in ACCOUNTS.items():
            with cases.at(memory=account, granularity=row["variant"], **_place(row)) as case:
                if units.missing(row.get(column)):
                    raise Unmeasured(why_not(row) or NO_ACCOUNT)
                share = Measured.counted(row[column])
                case(share.at_most(0.5), share)
                name = f"{row['variant']} ({_place(row)['tokens']})"
                seen.setdefault((account, name), []).append(share)
    inside = sum(share.within(0.3, 0.5) is True for share in cases.numbers)
    range_ = f"From 0.3 to 0.5 in {inside} of {len(cases.numbers)} cases."
    return cases.finding(f"Peak memory over that without checkpoints, {listed(seen)}. {range_}")


@claim(FRONTIER)
def checkpoint_at_layers(frontier: Table) -> Finding:
    """No other granularity needs as little memory as layer by layer and is faster, or is as fast
    and needs less."""
    cases = Cases()
    for row in frontier.select(role="variant"):
        if row["variant"] in (NONE, BY_LAYER):
            continue
        with cases.at(granularity=row["variant"], **_place(row)) as case:
            time = frontier.ratio(row["variant"], BY_LAYER, op=row["op"])
            by_layer = frontier.row(BY_LAYER, op=row["op"])
            memory = bytes_over(row, by_layer, "peak_bytes", NO_ACCOUNT).value
            both = f"{time.text} of its time and {units.ratio(memory)} of its memory"
            beats = f"{row['variant']} ({row['op']}) takes {both}"
            stands = _not_dominated(memory, time.verdict)
            case(stands, time, beats if stands is False else "")
    beaten = [case.said for case in cases if case.said]
    seen = "; ".join(beaten[:NAMED]) or "nothing that needs as little memory is faster"
    more = f"; {len(beaten) - NAMED} more" if len(beaten) > NAMED else ""
    return cases.finding(f"Against checkpointing every layer: {seen}{more}.")


def _not_dominated(memory: float, verdict: str) -> bool | None:
    """Whether layer by layer stands, beside another way's memory and time over its own."""
    if memory > 1 + SAME_MEMORY:
        return True
    less = memory < 1 - SAME_MEMORY
    return {"faster": False, "slower": True, "same": not less}.get(verdict)


def _exactness(gradients: Table, way: str, by: str, printed: Callable) -> tuple[Cases, str]:
    """Whether the gradient of one way is that of the full batch, in each of its cases; and the
    largest error in words, by a column such as the lengths of sequences."""
    cases, largest = Cases(), {}
    for row in gradients.select(variant=way):
        with cases.at(lengths=LENGTHS[row["lengths"]], dtype=row["dtype"]) as case:
            beyond = row["gradient_error"] > BEYOND * row["allowed"]
            case(True if row["gradient_error"] <= row["allowed"] else False if beyond else None)
        largest[row[by]] = max(largest.get(row[by], 0.0), row["gradient_error"])
    return cases, ", ".join(f"{name} {printed(most)}" for name, most in largest.items())


@claim(GRADIENTS)
def divide_loss_by_steps(gradients: Table) -> Finding:
    """The sum of gradients of mean losses over the number of steps is that of the full batch, as
    far as the number format allows, for equal and unequal lengths of sequences."""
    printed = partial(units.percent, digits=2)
    cases, largest = _exactness(gradients, "loss / steps", "lengths", printed)
    return cases.finding(
        f"Largest error of the gradient in any number format, by lengths of sequences: {largest}."
    )


@claim(GRADIENTS, topic="checkpointing")
def weighted_by_tokens_is_exact(gradients: Table) -> Finding:
    """Weighted by its share of the tokens, each micro-batch adds its part to the gradient of the
    full batch.

    The sum of gradients of mean losses times the share of tokens is that of the full batch, as
    far as the number format allows."""
    cases, largest = _exactness(gradients, "weighted by tokens", "dtype", "{:.1e}".format)
    return cases.finding(f"Largest error of the gradient, by number format: {largest}.")


@claim(
    STEPS, topic="checkpointing", measures="time of micro-batches / of checkpointing every layer"
)
def accumulation_before_checkpointing(steps: Table) -> Finding:
    """Cutting a batch into micro-batches is a cheaper way to less memory than checkpointing every
    layer.

    Some number of micro-batches needs no more memory than checkpointing every layer of the full
    batch, and is faster."""
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
            names = [row["variant"] for row in others if row["peak_bytes"] <= most]
            times = {name: steps.ratio(name, CHECKPOINTED, op=op) for name in names}
            if not times:
                case(False, said=f"of {tokens}, no number of steps needs as little")
                continue
            name, best = min(times.items(), key=lambda each: each[1].value)
            words = [time.verdict for time in times.values()]
            outcome = True if "faster" in words else None if "undecided" in words else False
            case(outcome, best, f"of {tokens}, {name} take {best.text} of its time")
    return cases.finding(f"In no more memory than checkpointing: {cases.said()}.")
