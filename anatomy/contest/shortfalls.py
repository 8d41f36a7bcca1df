"""Why a target is missed: at each place where it is, the measurement that shows it.

The targets are in `anatomy.contest.targets`, the rules in `anatomy.contest.standings`. A sentence
here says what was measured and what follows from it, and nothing that a recording could contradict.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from anatomy import units
from anatomy.contest import standings, targets


@dataclass(frozen=True)
class Shortfall:
    """One place where a target is missed.

    Attributes:
        target: Short name of the target.
        where: The workload, the quantity, or both.
        found: What was found there, as text.
        why: The measurement that shows why, as a sentence or two.
    """

    target: str
    where: str
    found: str
    why: str


def explained(estimates: pd.DataFrame, reference: pd.DataFrame) -> list[Shortfall]:
    """Every place where a target is missed, in the order of the targets."""
    found = targets.judged(estimates, reference)
    missed = [
        each.target for each in found.itertuples() if not units.missing(each.met) and not each.met
    ]
    rows: list[Shortfall] = []
    for target in missed:
        kind = next(kind for kind in EXPLAINED if target.startswith(kind))
        rows += EXPLAINED[kind](target, estimates, reference)
    # What misses the half misses it at the worst place too; once is enough.
    known: dict[tuple[str, str], Shortfall] = {}
    for row in rows:
        known.setdefault((_family(row.target), row.where), row)
    return list(known.values())


def off_text(row: Any) -> str:
    """A bias in the measure that its rule has: a share of long kernels, microseconds of short."""
    if row.reference_s >= standings.SHORT_S:
        return f"{'+' if row.bias > 0 else ''}{units.format_value(row.bias, '%.2')}"
    return f"{'+' if row.off_s > 0 else ''}{units.format_value(row.off_s, 'us.2')}"


def _family(target: str) -> str:
    return target.replace("worst-", "spread-")


def _spread(target: str, estimates: pd.DataFrame, reference: pd.DataFrame) -> list[Shortfall]:
    table = standings.spreads(estimates, reference)
    asked, _, short = target.partition("-")
    quantity = next(q for q in standings.TARGETED if q.endswith(f"_{short}"))
    most = standings.HALF if asked == "spread" else standings.WORST
    noises = {
        row.op: row
        for row in standings.own_noise(estimates, reference).itertuples()
        if row.quantity == quantity
    }
    rows = []
    for rival in targets.closest(table, quantity).itertuples():
        if rival.ratio <= most:
            continue
        ours = table[(table.op == rival.op) & (table.quantity == quantity)]
        ours = next(ours[ours.variant == standings.OURS].itertuples())
        why = _noise(noises.get(rival.op)) or _inside(ours, estimates)
        asked_for = f"The target asks for {units.percent(most * rival.spread)}"
        asked_for += _card(rival, most, reference) + "."
        found = f"{units.ratio(rival.ratio)} {rival.variant}'s"
        rows.append(Shortfall(target, f"{rival.op}, {quantity}", found, f"{why} {asked_for}"))
    return rows


def _card(rival: Any, most: float, reference: pd.DataFrame) -> str:
    """Whether a target asks for less than the same calls move by where nobody competes."""
    cell = reference[(reference.op == rival.op) & (reference.quantity == rival.quantity)]
    if "low_s" not in cell or cell.low_s.isna().any() or cell.empty:
        return ""
    moves_s = cell.high_s.max() - cell.low_s.min()
    if moves_s <= most * rival.spread_s:
        return ""
    moves = units.percent(moves_s / rival.per_s)
    return f", and the rounds of the reference range over {moves}: less than card and host move"


def _noise(row: Any) -> str:
    """What a long run says of a lost spread; nothing if there is none to compare it with."""
    if row is None or units.missing(row.across):
        return ""
    own, across = units.percent(row.own), units.percent(row.across)
    told = f"Six successive estimates spread by {own}, those of different processes by {across}:"
    if 2 * row.own_s < row.across_s:
        return f"{told} what moves is the card or the process, not the stopwatch."
    return f"{told} the stopwatch itself moves so much at this budget."


def _inside(ours: Any, estimates: pd.DataFrame) -> str:
    """The same from the intervals of single estimates, where there was no long run."""
    found = standings.figures(estimates)
    cell = found[(found.op == ours.op) & (found.quantity == ours.quantity)]
    cell = cell[cell.variant == standings.OURS]
    inside_s = (cell.high_s - cell.low_s).median()
    if units.missing(inside_s):
        return "No interval was recorded that could tell the stopwatch's noise from the card's."
    told = (
        f"The interval of one estimate spans {units.percent(inside_s / ours.per_s)}, the figures "
        f"of all runs {units.percent(ours.spread)}:"
    )
    if 2 * inside_s < ours.spread_s:
        return f"{told} what moves lies between the runs: card, host or process."
    return f"{told} the stopwatch itself moves so much at this budget."


def _bias(target: str, estimates: pd.DataFrame, reference: pd.DataFrame) -> list[Shortfall]:
    table = standings.biases(estimates, reference)
    figures = standings.figures(estimates)
    rows = []
    for row in table[(table.variant == standings.OURS) & ~table.within.astype(bool)].itertuples():
        if row.quantity == "step_wall":
            continue
        cell = figures[(figures.op == row.op) & (figures.quantity == row.quantity)]
        runs = cell[cell.variant == standings.OURS].median_s
        clocks = _clocks(row, reference.get("sm_clock_mhz"))
        why = " ".join(filter(None, (_reference(row, runs), _witness(row), clocks)))
        others = table[(table.op == row.op) & (table.quantity == row.quantity)]
        others = others[others.variant != standings.OURS]
        told = ", ".join(f"{each.variant} {off_text(each)}" for each in others.itertuples())
        why += f" Theirs: {told}." if told else ""
        rows.append(Shortfall(target, f"{row.op}, {row.quantity}", off_text(row), why))
    return rows


def _reference(row: Any, runs: pd.Series) -> str:
    """Whether it is the reference that moves, or the two that differ."""
    low, high = row.reference_low, row.reference_high
    rounds = f"from {units.seconds(low)} to {units.seconds(high)}"
    if low <= row.median_s <= high:
        told = f"The rounds of the reference reach {rounds}, with our figure among them:"
        return f"{told} the card was not in one state."
    beyond = int(((runs > high) if row.off_s > 0 else (runs < low)).sum())
    side = "above" if row.off_s > 0 else "below"
    told = f"{beyond} of {len(runs)} of our figures lie {side} all rounds of the reference, which"
    if 10 * beyond >= 9 * len(runs):
        return f"{told} reach {rounds}: the two differ in the same way every time."
    return f"{told} reach {rounds}: both move."


def _witness(row: Any) -> str:
    """What the stopwatch itself reads where the kernels were recorded, profiler off and on."""
    off, on = row.events_s, row.events_profiled_s
    if units.missing(off) or units.missing(on):
        return ""
    told = (
        f"Beside the record the stopwatch reads {units.seconds(off)}, and "
        f"{units.seconds(on)} while the profiler runs"
    )
    # Of what lies between our figure there and the record, so much comes with the profiler.
    gap, by_profiler = row.reference_s - off, on - off
    if abs(by_profiler) >= abs(gap) / 2 and by_profiler * gap > 0:
        return f"{told}: it lengthens what it records."
    return f"{told}."


def _clocks(row: Any, records: pd.Series | None) -> str:
    """Whether the card ran at another clock where the kernels were recorded.

    Args:
        row: One figure beside its reference.
        records: Clocks of all records, in MHz: what the card does where nothing holds it back.
    """
    ours, there = row.sm_clock_mhz, row.reference_mhz
    if units.missing(there):
        return ""
    if not units.missing(ours):
        told = f"The card ran at {ours:.0f} MHz for our figures and at {there:.0f} MHz for"
        return f"{told} the record." if ours != there else ""
    highest = records.max() if records is not None else there
    if there >= highest:
        return ""
    return (
        f"The record was made at {there:.0f} MHz, those of other workloads at up to "
        f"{highest:.0f} MHz: its calls follow each other without a rest, and the card slows down."
    )


def _coverage(target: str, estimates: pd.DataFrame, reference: pd.DataFrame) -> list[Shortfall]:
    table = standings.asked(estimates, reference)
    table = table[(table.kind == targets.COVERAGES[target]) & (table.quantity != "step_wall")]
    size = table.truth_s
    table = table.assign(
        half=(table.high_s - table.low_s) / 2 / size,
        off=abs((table.high_s + table.low_s) / 2 - size) / size,
    )
    rows = []
    for quantity, cell in table.groupby("quantity"):
        out = cell[~cell.held.astype(bool)]
        half = units.percent(cell.half.median())
        if out.empty:
            why = (
                f"Half an interval is typically {half} wide, and its middle {_typical(cell)} away "
                "from what it should hold."
            )
        else:
            most = out.op.value_counts().head(3)
            places = ", ".join(f"{op} ({count})" for op, count in most.items())
            why = (
                f"Half an interval is typically {half} wide; the middle of one that missed is "
                f"{_typical(out)} away from what it should hold. Most on {places}."
            )
        found = f"{len(cell) - len(out)} of {len(cell)}"
        rows.append(Shortfall(target, quantity, found, why))
    return rows


def _typical(cell: pd.DataFrame) -> str:
    return units.percent(cell.off.median())


def _verdicts(target: str, estimates: pd.DataFrame, reference: pd.DataFrame) -> list[Shortfall]:
    kind = "effect" if target == "power" else "same"
    pairs = standings.compared(estimates, kind)
    if target in ("power", "false-positives-of-threes"):
        pairs = standings.threes(pairs)
    claimed = pairs.verdict.isin(standings.CLAIMED[kind])
    rows = []
    for (op, quantity), cell in pairs.assign(claimed=claimed).groupby(["op", "quantity"]):
        count = int(cell.claimed.sum())
        wrong = cell[cell.claimed != (kind == "effect")]
        if wrong.empty:
            continue
        ratios = (wrong.ratio.median(), wrong.ratio_low.median(), wrong.ratio_high.median())
        floor = wrong.noise_floor.median()
        why = (
            f"Where it was {'not found' if kind == 'effect' else 'told apart'}, the ratio is "
            f"typically {units.ratio_range(*ratios)}, with a noise floor of {units.percent(floor)}."
        )
        if kind == "effect" and floor > wrong.ratio.median() - 1:
            why += " What is below its floor is never claimed."
        rows.append(Shortfall(target, f"{op}, {quantity}", f"{count} of {len(cell)}", why))
    return rows


def _overhead(target: str, estimates: pd.DataFrame, reference: pd.DataFrame) -> list[Shortfall]:
    rows = []
    for row in standings.part(estimates, "overhead").dropna(subset=["cost_s"]).itertuples():
        wide = bool(row.wide)
        if row.cost_s >= standings.OVERHEAD_S or wide:
            state = "wide, so the blocks did not agree in time" if wide else "narrow, but late"
            where = f"{row.op}, {row.quantity}, process {row.process}"
            rows.append(
                Shortfall(target, where, units.seconds(row.cost_s), f"Its rows are {state}.")
            )
    return rows


EXPLAINED: dict[str, Callable[..., list[Shortfall]]] = {
    "spread-": _spread,
    "worst-": _spread,
    "bias": _bias,
    "coverage-": _coverage,
    "false-positives": _verdicts,
    "power": _verdicts,
    "overhead": _overhead,
}
