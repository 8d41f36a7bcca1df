"""What the axioms say of activation checkpointing, put to time and memory of training steps.

A peak of memory is a count of the allocator and the same in every run, so it has no interval; two
peaks that are closer than `SAME_MEMORY` count as equal, for it hands memory out in whole pieces.
"""

from anatomy import units
from anatomy.claims import Case, Finding, Measured, Need, across, claim
from anatomy.claims.pace import listed, pace
from anatomy.claims.promises import reaches, spares, tally
from anatomy.claims.table import Table, over_control, why_not
from anatomy.rows import Row

FRONTIER = Need("checkpointing.frontier")
# What people mean by activation checkpointing: layer by layer, or by operation.
USUAL = ("every layer", "selective")
NONE, BY_LAYER = "none", "every layer"
SAME_MEMORY = 0.01
NO_ACCOUNT = "this device keeps no account of its memory"
# Column -> whose memory its ratio is of.
ACCOUNTS = {"memory_ratio": "the step's own", "total_memory_ratio": "with weights"}


def _place(row: Row) -> dict[str, str]:
    """Where on the map a row is, as its `op` says it."""
    width, depth, tokens = (row.get(name) for name in ("width", "depth", "tokens"))
    return {"depth": f"L={depth}", "width": f"C={width}", "tokens": f"{tokens} tokens"}


def _variants(table: Table) -> list[Row]:
    """The rows that have a checkpoint, measured or not."""
    return [row for row in table if row.get("role") == "variant" and row.get("variant") != NONE]


def speed_kept(row: Row) -> Measured:
    """Time without checkpoints over time with them: the inverse of a row's ratio."""
    return over_control(row).inverse


@claim(FRONTIER)
def checkpointing_speed(frontier: Table) -> Finding:
    """At least 0.7 of the speed is kept, layer by layer and selectively, in each case."""
    cases, kept = [], {}
    for row in _variants(frontier):
        if row["variant"] not in USUAL:
            continue
        where = {"granularity": row["variant"], "pace": ""} | _place(row)
        if reason := why_not(row):
            cases.append(Case(where, None, why=reason))
            continue
        where["pace"] = pace(row)
        speed = speed_kept(row)
        kept.setdefault((where["pace"], row["variant"]), []).append(speed)
        cases.append(Case(where, reaches(speed, 0.7), speed))
    told = f"Time without checkpoints over time with them, {listed(kept)}."
    return across(cases, f"{told} {tally(cases, 0.7, 0.8)}")


@claim(FRONTIER)
def checkpointing_memory(frontier: Table) -> Finding:
    """Peak over that without checkpoints is at most 0.5, of the step alone and with the weights."""
    cases, seen = [], {}
    for row in _variants(frontier):
        if row["variant"] not in USUAL:
            continue
        for column, account in ACCOUNTS.items():
            where = {"memory": account, "granularity": row["variant"]} | _place(row)
            value = row.get(column)
            if units.missing(value):
                cases.append(Case(where, None, why=why_not(row) or NO_ACCOUNT))
                continue
            share = Measured(value, value, value)
            name = f"{row['variant']} ({where['tokens']})"
            seen.setdefault((account, name), []).append(share)
            cases.append(Case(where, spares(share, 0.5), share))
    return across(cases, f"Peak memory over that without checkpoints, {listed(seen)}.")


@claim(FRONTIER)
def checkpoint_at_layers(frontier: Table) -> Finding:
    """No other granularity needs as little memory as layer by layer and is faster, or is as fast
    and needs less.
    """
    cases, beaten = [], []
    for row in _variants(frontier):
        if row["variant"] == BY_LAYER:
            continue
        where = {"granularity": row["variant"]} | _place(row)
        base = frontier.row(BY_LAYER, op=row["op"])
        if reason := why_not(row) or why_not(base):
            cases.append(Case(where, None, why=reason))
            continue
        peaks = row.get("peak_bytes"), base.get("peak_bytes")
        if any(map(units.missing, peaks)):
            cases.append(Case(where, None, why=NO_ACCOUNT))
            continue
        ratio, verdict = frontier.ratio(row["variant"], BY_LAYER, op=row["op"])
        outcome = _not_dominated(peaks[0] / peaks[1], verdict)
        over = Measured(ratio.median, ratio.low, ratio.high, floor=row.get("noise_floor") or 0.0)
        cases.append(Case(where, outcome, over))
        if outcome is False:
            beaten.append(
                f"{row['variant']} ({row['op']}) takes {over.text} of its time and "
                f"{units.ratio(peaks[0] / peaks[1])} of its memory"
            )
    told = "; ".join(beaten[:3]) or "nothing that needs as little memory is faster"
    more = f"; {len(beaten) - 3} more" if len(beaten) > 3 else ""
    return across(cases, f"Against checkpointing every layer: {told}{more}.")


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
