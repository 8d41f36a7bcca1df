"""The comparison of harnesses as tables of text, for pages and for the terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from anatomy.chapters.harnesses.contest import shortfalls, standings
from anatomy.chapters.harnesses.contest import targets as aims
from anatomy.record.recording import Recording
from anatomy.table import units
from anatomy.table.errors import lookup

QUANTITIES = tuple(standings.RIVALS)
MET, NOT_MET, OPEN = "met", "not met", "open"
# What an interval is asked about, in words for the table of coverage.
ASKED = {
    standings.LONG: "over blocks: the long run around it",
    standings.APART_IN_TIME: "over blocks: its process, minutes apart (no target)",
    standings.OVER_PROCESSES: "over processes: the reference",
}
OWN_NOISE = "#compare, six in a row"
BREAKS = "✗"  # beside a figure of ours that breaks its rule
# What a finding counts, in words for the table of errors.
BY = {
    "verdict": "verdict, one process",
    f"verdict of {standings.TOGETHER} processes": f"verdict, {standings.TOGETHER} processes",
    "interval": "interval excludes 1",
    "1% apart": "figures over 1% apart",
}


@dataclass(frozen=True)
class Sheet:
    """One table: a title, heads (a `#` in front: numbers), and lines of cells, all plain text."""

    title: str
    heads: tuple[str, ...]
    lines: list[list[str]]


@dataclass(frozen=True)
class Board:
    """What is recorded of a comparison, judged."""

    estimates: pd.DataFrame  # rows of `harnesses.estimates`, with their process
    reference: pd.DataFrame  # rows of `harnesses.reference`, with theirs

    @classmethod
    def of(cls, recordings: Sequence[Recording]) -> "Board":
        """The board of these recordings; others than the comparison's are left out."""
        names = (standings.ESTIMATES, standings.REFERENCE)
        own = ([each for each in recordings if each.experiment == name] for name in names)
        return cls(*map(standings.gathered, own))

    @property
    def empty(self) -> bool:
        """Whether nothing was recorded that could be judged."""
        return self.estimates.empty

    @cached_property
    def targets(self) -> pd.DataFrame:
        """`targets.judged` of what is recorded."""
        return aims.judged(self.estimates, self.reference)

    def target(self, name: str) -> Any:
        """One target; UnknownName is raised where there is none of that name."""
        return lookup("target", name, {each.target: each for each in self.targets.itertuples()})


def calls(device: str = "cuda:0") -> list[tuple[str, dict[str, Any]]]:
    """The experiments and parameters of a whole comparison, in the order to record them."""
    own = {} if device == "cuda:0" else {"device": device}
    counts = {standings.REFERENCE: standings.REFERENCES, standings.ESTIMATES: standings.PROCESSES}
    return [(name, own | {"process": p}) for name, count in counts.items() for p in range(count)]


def sheet(board: Board, part: str, quantity: str = "gpu_cold") -> Sheet:
    """One of `PARTS` as a table; those of `BY_QUANTITY` are tables of one quantity."""
    return PARTS[part](board, quantity)


def check(part: str, quantity: str) -> None:
    """Raise UnknownName unless the comparison has such a part and such a quantity."""
    lookup("part of the comparison", part, PARTS)
    lookup("quantity", quantity, standings.RIVALS)


def found_text(target: Any) -> str:
    """The figure that decides a target, with its interval and unit."""
    if units.missing(target.found):
        return units.NOT_MEASURED
    if target.unit == "%":
        return _percent_range(target.found, target.low, target.high)
    if target.unit == "x":
        return units.ratio_range(target.found, target.low, target.high)
    if target.unit == "s":
        return units.seconds(target.found)
    return f"{target.found:.0f} {target.unit}"


def verdict(target: Any) -> str:
    """`met`, `not met`, or `open` while something is missing."""
    return OPEN if units.missing(target.met) else MET if target.met else NOT_MET


def _targets(board: Board, quantity: str) -> Sheet:
    rows = board.targets.itertuples()
    lines = [[row.says, found_text(row), verdict(row), row.detail or ""] for row in rows]
    return Sheet("Targets", ("target", "#found", "verdict", "where it stands"), lines)


def _misses(board: Board, quantity: str) -> Sheet:
    says = dict(zip(board.targets.target, board.targets.says, strict=True))
    rows = shortfalls.explained(board.estimates, board.reference)
    lines = [[row.where, says[row.target], row.found, row.why] for row in rows]
    heads = ("where", "target", "#found", "the measurement that shows why")
    return Sheet("Missed targets", heads, lines)


def _workloads(table: pd.DataFrame, quantity: str) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """The harnesses with figures of a quantity, ours first; each workload's rows by harness."""
    table = table[table.quantity == quantity]
    names = [n for n in (standings.OURS, *standings.RIVALS[quantity]) if n in set(table.variant)]
    by_op: dict[str, dict[str, Any]] = {}
    for row in table.itertuples():
        by_op.setdefault(row.op, {})[row.variant] = row
    return names, by_op


def _spread(board: Board, quantity: str) -> Sheet:
    names, by_op = _workloads(standings.spreads(board.estimates, board.reference), quantity)
    noise = standings.own_noise(board.estimates, board.reference)
    noises = {row.op: row.own for row in noise.itertuples() if row.quantity == quantity}
    lines = []
    for op, by_name in by_op.items():
        shares = [row for row in by_name.values() if not units.missing(row.ratio)]
        closest = max(shares, key=lambda row: row.ratio, default=None)
        cells = [op, units.seconds(next(iter(by_name.values())).per_s)]
        cells += [units.percent(by_name[n].spread) if n in by_name else "" for n in names]
        if noises:
            cells.append(units.percent(noises[op]) if op in noises else "")
        ratio = closest and (closest.ratio, closest.ratio_low, closest.ratio_high)
        lines.append([*cells, units.ratio_range(*ratio) if ratio else ""])
    heads = ("workload", "#takes", *(f"#{name}" for name in names))
    heads += (OWN_NOISE,) if noises else ()
    return Sheet(f"Spread, {quantity}", (*heads, "#ours / best of theirs"), lines)


def _bias(board: Board, quantity: str) -> Sheet:
    names, by_op = _workloads(standings.biases(board.estimates, board.reference), quantity)
    lines = []
    for op, by_name in by_op.items():
        truth = next(iter(by_name.values()))
        rounds = truth.reference_s, truth.reference_low, truth.reference_high
        cells = {name: shortfalls.off_text(row) for name, row in by_name.items()}
        ours = by_name.get(standings.OURS)
        if ours and not ours.within and quantity != "step_wall":
            cells[standings.OURS] += f" {BREAKS}"
        lines.append([op, units.seconds_range(*rounds), *(cells.get(name, "") for name in names)])
    heads = ("workload", "#reference", *(f"#{name}" for name in names))
    return Sheet(f"Bias, {quantity}", heads, lines)


def _coverage(board: Board, quantity: str) -> Sheet:
    lines = [
        [ASKED[row.kind], row.quantity if row.quantity != "all" else "GPU times", *_share(row)]
        for row in standings.coverages(board.estimates, board.reference).itertuples()
    ]
    heads = ("interval, and what it is asked", "quantity", "#held", "#of")
    return Sheet("Coverage of 95% intervals", heads, lines)


def _errors(board: Board, quantity: str) -> Sheet:
    table = standings.errors(board.estimates)
    kinds = {"same": "equals told apart", "effect": "true 2% found"}
    lines = [[row.variant, BY[row.by], kinds[row.kind], *_share(row)] for row in table.itertuples()]
    return Sheet("Errors", ("harness", "told by", "what", "#share", "#of"), lines)


def _share(row: Any) -> tuple[str, str]:
    return _percent_range(row.share, row.low, row.high), f"{row.hits} of {row.count}"


def _percent_range(*shares: float) -> str:
    return "{} [{}, {}]".format(*map(units.percent, shares))


def _cost(board: Board, quantity: str) -> Sheet:
    rows = standings.costs(board.estimates).itertuples()
    lines = [[r.variant, r.quantity, *map(units.seconds, (r.cost_s, r.largest_s))] for r in rows]
    heads = ("harness", "quantity", "#typical estimate", "#longest")
    return Sheet("Wall time of an estimate", heads, lines)


PARTS: dict[str, Callable[[Board, str], Sheet]] = {
    "targets": _targets,
    "misses": _misses,
    "spread": _spread,
    "bias": _bias,
    "coverage": _coverage,
    "errors": _errors,
    "cost": _cost,
}
BY_QUANTITY = ("spread", "bias")  # parts that are a table for each quantity
