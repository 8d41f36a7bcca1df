"""Why a target is missed: at each place where it is, a sentence with what was measured and what
follows from it, and nothing that a recording could contradict."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pandas as pd

from anatomy.chapters.harnesses.contest import standings, targets
from anatomy.table import units


class Shortfall(NamedTuple):
    """One place where a target is missed."""

    target: str  # its short name
    where: str  # the workload, the quantity, or both
    found: str  # what was found there, as text
    why: str  # the measurement that shows why, as a sentence or two


Shortfalls = Iterator[Shortfall]
ITSELF = "the stopwatch itself moves so much at this budget."


def explained(estimates: pd.DataFrame, reference: pd.DataFrame) -> list[Shortfall]:
    """Every place where a target is missed, in the order of the targets."""
    judged = targets.judged(estimates, reference)
    known: dict[tuple[str, str], Shortfall] = {}
    for target in judged.target[judged.met.eq(False)]:
        explain = next(each for kind, each in EXPLAINED.items() if target.startswith(kind))
        # What misses the half misses it at the worst place too; once is enough.
        family = target.replace("worst-", "spread-")
        for place in explain(target, estimates, reference):
            known.setdefault((family, place.where), place)
    return list(known.values())


def off_text(row: Any) -> str:
    """A bias in the measure that its rule has: a share of long kernels, microseconds of short."""
    long = row.reference_s >= standings.SHORT_S
    text = units.format_value(row.bias, "%.2") if long else units.format_value(row.off_s, "us.2")
    return f"{'+' if row.off_s > 0 else ''}{text}"


def _cell(table: pd.DataFrame, row: Any) -> pd.DataFrame:
    """The rows of a table of the same workload and quantity."""
    return table[(table.op == row.op) & (table.quantity == row.quantity)]


def _spread(target: str, estimates: pd.DataFrame, reference: pd.DataFrame) -> Shortfalls:
    table = standings.spreads(estimates, reference)
    asked, _, short = target.partition("-")
    quantity = next(q for q in standings.TARGETED if q.endswith(f"_{short}"))
    most = standings.HALF if asked == "spread" else standings.WORST
    noise = standings.own_noise(estimates, reference)
    noises = {row.op: row for row in noise[noise.quantity == quantity].itertuples()}
    for rival in targets.closest(table, quantity).itertuples():
        if rival.ratio <= most:
            continue
        cell = _cell(table, rival)
        ours = next(cell[cell.variant == standings.OURS].itertuples())
        why = _noise(noises.get(rival.op)) or _inside(ours, estimates)
        wanted = f"{units.percent(most * rival.spread)}{_card(rival, most, reference)}"
        found = f"{units.ratio(rival.ratio)} {rival.variant}'s"
        why = f"{why} The target asks for {wanted}."
        yield Shortfall(target, f"{rival.op}, {quantity}", found, why)


def _card(rival: Any, most: float, reference: pd.DataFrame) -> str:
    """Whether a target asks for less than the same calls move by where nobody competes."""
    cell = _cell(reference, rival)
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
    seen = f"Six successive estimates spread by {own}, those of different processes by {across}:"
    between = "what moves is the card or the process, not the stopwatch."
    return f"{seen} {between if 2 * row.own_s < row.across_s else ITSELF}"


def _inside(ours: Any, estimates: pd.DataFrame) -> str:
    """The same from the intervals of single estimates, where there was no long run."""
    cell = _cell(standings.figures(estimates), ours)
    cell = cell[cell.variant == standings.OURS]
    inside_s = (cell.high_s - cell.low_s).median()
    if units.missing(inside_s):
        return "No interval was recorded that could tell the stopwatch's noise from the card's."
    inside, spread = units.percent(inside_s / ours.per_s), units.percent(ours.spread)
    seen = f"The interval of one estimate spans {inside}, the figures of all runs {spread}:"
    between = "what moves lies between the runs: card, host or process."
    return f"{seen} {between if 2 * inside_s < ours.spread_s else ITSELF}"


def _bias(target: str, estimates: pd.DataFrame, reference: pd.DataFrame) -> Shortfalls:
    table = standings.biases(estimates, reference)
    figures = standings.figures(estimates)
    out = table[(table.variant == standings.OURS) & ~table.within.astype(bool)]
    for row in out[out.quantity != "step_wall"].itertuples():
        cell = _cell(figures, row)
        runs = cell[cell.variant == standings.OURS].median_s
        others = _cell(table, row).query("variant != @standings.OURS").itertuples()
        theirs = ", ".join(f"{each.variant} {off_text(each)}" for each in others)
        parts = [_reference(row, runs), _witness(row), _clocks(row, reference.get("sm_clock_mhz"))]
        parts += [f"Theirs: {theirs}."] if theirs else []
        why = " ".join(filter(None, parts))
        yield Shortfall(target, f"{row.op}, {row.quantity}", off_text(row), why)


def _reference(row: Any, runs: pd.Series) -> str:
    """Whether it is the reference that moves, or the two that differ."""
    low, high = row.reference_low, row.reference_high
    rounds = f"reach from {units.seconds(low)} to {units.seconds(high)}"
    if low <= row.median_s <= high:
        among = "with our figure among them: the card was not in one state."
        return f"The rounds of the reference {rounds}, {among}"
    beyond = int(((runs > high) if row.off_s > 0 else (runs < low)).sum())
    place = f"{'above' if row.off_s > 0 else 'below'} all rounds of the reference, which {rounds}"
    always = 10 * beyond >= 9 * len(runs)
    means = "the two differ in the same way every time" if always else "both move"
    return f"{beyond} of {len(runs)} of our figures lie {place}: {means}."


def _witness(row: Any) -> str:
    """What the stopwatch itself reads where the kernels were recorded, profiler off and on."""
    off, on = row.events_s, row.events_profiled_s
    if units.missing(off) or units.missing(on):
        return ""
    # Of what lies between our figure there and the record, so much comes with the profiler.
    gap, by_profiler = row.reference_s - off, on - off
    longer = abs(by_profiler) >= abs(gap) / 2 and by_profiler * gap > 0
    both = f"{units.seconds(off)}, and {units.seconds(on)} while the profiler runs"
    means = ": it lengthens what it records" if longer else ""
    return f"Beside the record the stopwatch reads {both}{means}."


def _clocks(row: Any, records: pd.Series | None) -> str:
    """Whether the card ran at another clock where the kernels of a row were recorded; the highest
    of all `records`, in MHz, is what it does where nothing holds it back."""
    ours, there = row.sm_clock_mhz, row.reference_mhz
    if units.missing(there):
        return ""
    if not units.missing(ours):
        both = f"at {ours:.0f} MHz for our figures and at {there:.0f} MHz for the record"
        return f"The card ran {both}." if ours != there else ""
    highest = records.max() if records is not None else there
    if there >= highest:
        return ""
    both = f"at {there:.0f} MHz, those of other workloads at up to {highest:.0f} MHz"
    why = "its calls follow each other without a rest, and the card slows down"
    return f"The record was made {both}: {why}."


def _coverage(target: str, estimates: pd.DataFrame, reference: pd.DataFrame) -> Shortfalls:
    table = standings.asked(estimates, reference)
    table = table[(table.kind == targets.COVERAGES[target]) & (table.quantity != "step_wall")]
    half, middle = (table.high_s - table.low_s) / 2, (table.high_s + table.low_s) / 2
    off = abs(middle - table.truth_s)
    table = table.assign(half=half / table.truth_s, off=off / table.truth_s)
    for quantity, cell in table.groupby("quantity"):
        out = cell[~cell.held.astype(bool)]
        why = f"Half an interval is typically {units.percent(cell.half.median())} wide"
        why += ", and its middle " if out.empty else "; the middle of one that missed is "
        away = units.percent((cell if out.empty else out).off.median())
        why += f"{away} away from what it should hold."
        if not out.empty:
            most = out.op.value_counts().head(3).items()
            why += f" Most on {', '.join(f'{op} ({count})' for op, count in most)}."
        yield Shortfall(target, quantity, f"{len(cell) - len(out)} of {len(cell)}", why)


def _verdicts(target: str, estimates: pd.DataFrame, reference: pd.DataFrame) -> Shortfalls:
    kind = "effect" if target == "power" else "same"
    pairs = standings.compared(estimates, kind)
    if target in ("power", "false-positives-of-threes"):
        pairs = standings.threes(pairs)
    pairs = pairs.assign(claimed=pairs.verdict.isin(standings.CLAIMED[kind]))
    for (op, quantity), cell in pairs.groupby(["op", "quantity"]):
        wrong = cell[cell.claimed != (kind == "effect")]
        if wrong.empty:
            continue
        ratio = units.ratio_range(*wrong[["ratio", "ratio_low", "ratio_high"]].median())
        floor = wrong.noise_floor.median()
        why = f"Where it was {'not found' if kind == 'effect' else 'told apart'}, the ratio is "
        why += f"typically {ratio}, with a noise floor of {units.percent(floor)}."
        if kind == "effect" and floor > wrong.ratio.median() - 1:
            why += " What is below its floor is never claimed."
        count = f"{int(cell.claimed.sum())} of {len(cell)}"
        yield Shortfall(target, f"{op}, {quantity}", count, why)


def _overhead(target: str, estimates: pd.DataFrame, reference: pd.DataFrame) -> Shortfalls:
    runs = standings.part(estimates, "overhead").dropna(subset=["cost_s"])
    late = runs[(runs.cost_s >= standings.OVERHEAD_S) | runs.wide.astype(bool)]
    for row in late.itertuples():
        how = "wide, so the blocks did not agree in time" if row.wide else "narrow, but late"
        where = f"{row.op}, {row.quantity}, process {row.process}"
        yield Shortfall(target, where, units.seconds(row.cost_s), f"Its rows are {how}.")


EXPLAINED: dict[str, Callable[..., Shortfalls]] = {
    "spread-": _spread,
    "worst-": _spread,
    "bias": _bias,
    "coverage-": _coverage,
    "false-positives": _verdicts,
    "power": _verdicts,
    "overhead": _overhead,
}
