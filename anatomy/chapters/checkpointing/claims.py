"""What the axioms say of activation checkpointing, put to time and memory of training steps.

A peak of memory is a count of the allocator and the same in every run, so it has no interval; two
peaks that are closer than `SAME_MEMORY` count as equal, for it hands memory out in whole pieces.
"""

from anatomy.claims import Cases, Finding, Measured, Need, Unmeasured, claim
from anatomy.claims.pace import listed, pace
from anatomy.claims.table import Table, bytes_over, judged, speed_up, why_not
from anatomy.judge.rows import Row
from anatomy.table import units

FRONTIER = Need("checkpointing.frontier")
# What people mean by activation checkpointing: layer by layer, or by operation.
USUAL = ("every layer", "selective")
NONE, BY_LAYER = "none", "every layer"
SAME_MEMORY = 0.01
NO_ACCOUNT = "this device keeps no account of its memory"
# Column -> whose memory its ratio is of.
ACCOUNTS = {"memory_ratio": "the step's own", "total_memory_ratio": "with weights"}
# How many of the ways that beat checkpointing by layers the evidence names.
NAMED = 3


def _place(row: Row) -> dict[str, str]:
    """Where on the map a row is, as its `op` says it."""
    width, depth, tokens = (row.get(name) for name in ("width", "depth", "tokens"))
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
    """Peak over that without checkpoints is at most 0.5, of the step alone and with the weights."""
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
    return cases.finding(f"Peak memory over that without checkpoints, {listed(seen)}.")


@claim(FRONTIER)
def checkpoint_at_layers(frontier: Table) -> Finding:
    """No other granularity needs as little memory as layer by layer and is faster, or is as fast
    and needs less.
    """
    cases = Cases()
    for row in frontier.select(role="variant"):
        if row["variant"] in (NONE, BY_LAYER):
            continue
        with cases.at(granularity=row["variant"], **_place(row)) as case:
            time = frontier.ratio(row["variant"], BY_LAYER, op=row["op"])
            by_layer = frontier.row(BY_LAYER, op=row["op"])
            memory = bytes_over(row, by_layer, "peak_bytes", NO_ACCOUNT).value
            beats = (
                f"{row['variant']} ({row['op']}) takes {time.text} of its time and "
                f"{units.ratio(memory)} of its memory"
            )
            stands = _not_dominated(memory, time.verdict)
            case(stands, time, beats if stands is False else "")
    beaten = [case.said for case in cases if case.said]
    seen = "; ".join(beaten[:NAMED]) or "nothing that needs as little memory is faster"
    more = f"; {len(beaten) - NAMED} more" if len(beaten) > NAMED else ""
    return cases.finding(f"Against checkpointing every layer: {seen}{more}.")


def _not_dominated(memory: float, verdict: str) -> bool | None:
    """Whether layer by layer stands, beside another way's memory and time over its own.

    Args:
        memory: The other's peak over that of layer by layer.
        verdict: What may be said of the other's time over that of layer by layer.
    """
    if memory > 1 + SAME_MEMORY:
        return True
    less = memory < 1 - SAME_MEMORY
    return {"faster": False, "slower": True, "same": not less}.get(verdict)
