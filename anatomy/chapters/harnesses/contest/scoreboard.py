"""The comparison of harnesses as tables of text."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from anatomy.chapters.harnesses.contest import shortfalls, standings, targets
from anatomy.chapters.harnesses.contest.standings import OURS, RIVALS, Contest, where
from anatomy.table import units

# What an interval is asked about, in words for the table of coverage.
ASKED = {
    standings.LONG: "over blocks: the long run around it",
    standings.APART_IN_TIME: "over blocks: its process, minutes apart (no target)",
    standings.OVER_PROCESSES: "over processes: the reference",
}
KINDS = {"same": "equals told apart", "effect": "true 2% found"}
# What a finding counts, in words for the table of errors.
BY = {
    "verdict": "verdict, one process",
    f"verdict of {standings.TOGETHER} processes": f"verdict, {standings.TOGETHER} processes",
    "interval": "interval excludes 1",
    "1% apart": "figures over 1% apart",
}
BREAKS = "✗"  # beside a figure of ours that breaks its rule


class Sheet(NamedTuple):
    """One table: a title, heads (a `#` in front: numbers), and lines of cells, all plain text."""

    title: str
    heads: Sequence[str]
    lines: list[list[str]]


def _targets(contest: Contest) -> Sheet:
    found = targets.judged(contest).values()
    lines = [[each.says, each.text, each.verdict, each.detail] for each in found]
    return Sheet("Targets", ("target", "#found", "verdict", "where it stands"), lines)


def _misses(contest: Contest) -> Sheet:
    says = targets.judged(contest)
    found = shortfalls.explained(contest)
    lines = [[each.where, says[each.target].says, each.found, each.why] for each in found]
    heads = ("where", "target", "#found", "the measurement that shows why")
    return Sheet("Missed targets", heads, lines)


def _workloads(table: pd.DataFrame, quantity: str) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """The harnesses with figures of a quantity, ours first; each workload's rows by harness."""
    names = [name for name in (OURS, *RIVALS[quantity]) if name in set(table.variant)]
    by_op: dict[str, dict[str, Any]] = {}
    for row in table.itertuples():
        by_op.setdefault(row.op, {})[row.variant] = row
    return names, by_op


def _spread(contest: Contest, quantity: str) -> Sheet:
    names, by_op = _workloads(where(contest.spreads, quantity=quantity), quantity)
    noise = where(contest.own_noise.reset_index("quantity"), quantity=quantity).own
    lines = []
    for op, rows in by_op.items():
        shares = [row for row in rows.values() if not units.missing(row.ratio)]
        closest = max(shares, key=lambda row: row.ratio, default=None)
        cells = [op, units.seconds(next(iter(rows.values())).per_s)]
        cells += [units.percent(rows[name].spread) if name in rows else "" for name in names]
        cells += [units.percent(noise[op]) if op in noise else ""] if len(noise) else []
        ratio = closest and (closest.ratio, closest.ratio_low, closest.ratio_high)
        lines.append([*cells, units.ratio_range(*ratio) if ratio else ""])
    heads = ["workload", "#takes", *(f"#{name}" for name in names)]
    heads += ["#compare, six in a row"] if len(noise) else []
    return Sheet(f"Spread, {quantity}", (*heads, "#ours / best of theirs"), lines)


def _bias(contest: Contest, quantity: str) -> Sheet:
    names, by_op = _workloads(where(contest.biases, quantity=quantity), quantity)
    lines = []
    for op, rows in by_op.items():
        truth = next(iter(rows.values()))
        rounds = truth.reference_s, truth.reference_low, truth.reference_high
        cells = {name: shortfalls.off_text(row) for name, row in rows.items()}
        if OURS in rows and not rows[OURS].within:
            cells[OURS] += f" {BREAKS}"
        beside = [_read(truth, each) for each in ("events_s", "events_profiled_s")]
        there = [cells.get(name, "") for name in names]
        lines.append([op, units.seconds_range(*rounds), *beside, *there])
    heads = ("workload", "#reference", "#stopwatch beside it", "#same, profiler running")
    heads += tuple(f"#{name}" for name in names)
    return Sheet(f"Bias, {quantity}", heads, lines)


def _read(truth: Any, column: str) -> str:
    """What our stopwatch read where the reference was recorded."""
    value = getattr(truth, column)
    return "" if units.missing(value) else units.seconds(value)


def _coverage(contest: Contest) -> Sheet:
    lines = [
        [ASKED[row.kind], {"all": "GPU times"}.get(row.quantity, row.quantity), *_share(row)]
        for row in contest.coverages.itertuples()
    ]
    heads = ("interval, and what it is asked", "quantity", "#held", "#of")
    return Sheet("Coverage of 95% intervals", heads, lines)


def _errors(contest: Contest) -> Sheet:
    rows = contest.errors.itertuples()
    lines = [[row.variant, BY[row.by], KINDS[row.kind], *_share(row)] for row in rows]
    return Sheet("Errors", ("harness", "told by", "what", "#share", "#of"), lines)


def _share(row: Any) -> tuple[str, str]:
    return targets.percent_range(row), f"{row.hits} of {row.count}"


def _cost(contest: Contest) -> Sheet:
    rows = contest.costs.itertuples()
    lines = [[r.variant, r.quantity, *map(units.seconds, (r.cost_s, r.largest_s))] for r in rows]
    heads = ("harness", "quantity", "#typical estimate", "#longest")
    return Sheet("Wall time of an estimate", heads, lines)


BY_QUANTITY = {"spread": _spread, "bias": _bias}  # parts that are a table for each quantity
PARTS: dict[str, Callable[..., Sheet]] = BY_QUANTITY | {
    "coverage": _coverage,
    "errors": _errors,
    "cost": _cost,
    "misses": _misses,
    "targets": _targets,
}


def sheet(contest: Contest, part: str, quantity: str = "gpu_cold") -> Sheet:
    """One of `PARTS` as a table; those of `BY_QUANTITY` are tables of one quantity."""
    return PARTS[part](contest, *([quantity] if part in BY_QUANTITY else []))
