"""Why a target is missed: at each place where it is, a sentence with what was measured and what
follows from it, and nothing that a recording could contradict."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pandas as pd

from anatomy.chapters.harnesses.contest import targets
from anatomy.chapters.harnesses.contest.standings import OURS, PAIRS, PLACE, SHORT_S, Contest, where
from anatomy.table import units


class Shortfall(NamedTuple):
    """One place where a target is missed."""

    target: str  # its short name
    where: str  # the workload, the quantity, or both
    found: str  # what was found there, as text
    why: str  # the measurement that shows why, as a sentence or two


Shortfalls = Iterator[Shortfall]


def explained(contest: Contest) -> list[Shortfall]:
    """Every place where a target is missed, in the order of the targets."""
    known: dict[tuple[str, str], Shortfall] = {}
    for name, target in targets.judged(contest).items():
        if target.met is False:
            # What misses the half misses it at the worst place too; once is enough.
            family = name.replace("worst-", "spread-")
            explain = next(each for kind, each in EXPLAINED.items() if family.startswith(kind))
            for place in explain(name, contest):
                known.setdefault((family, place.where), place)
    return list(known.values())


def off_text(row: Any) -> str:
    """A bias in the measure that its rule has: a share of long kernels, microseconds of short."""
    long = row.reference_s >= SHORT_S
    text = units.format_value(row.bias, "%.2") if long else units.format_value(row.off_s, "us.2")
    return f"{'+' if row.off_s > 0 else ''}{text}"


def _spread(target: str, contest: Contest) -> Shortfalls:
    asked, _, short = target.partition("-")
    quantity = next(q for q in targets.TARGETED if q.endswith(f"_{short}"))
    most = targets.HALF if asked == "spread" else targets.WORST
    for rival in targets.closest(contest, quantity).itertuples():
        if rival.ratio <= most:
            continue
        found = f"{units.ratio(rival.ratio)} {rival.variant}'s"
        wanted = f"The target asks for {units.percent(most * rival.spread)}"
        why = f"{_moving(rival, contest)} {wanted}{_card(rival, most, contest)}."
        yield Shortfall(target, f"{rival.op}, {quantity}", found, why)


def _moving(rival: Any, contest: Contest) -> str:
    """Whether the stopwatch moves by itself, by its successive estimates; where no long run was
    made, by the intervals of single ones."""
    noise = contest.own_noise.reindex([(rival.op, rival.quantity)]).iloc[0]
    if not units.missing(noise.across):
        inner_s, outer_s = noise.own_s, noise.across_s
        said = "Six successive estimates spread by {}, those of different processes by {}: "
        between = "what moves is the card or the process, not the stopwatch."
    else:
        ours = where(contest.ours, op=rival.op, quantity=rival.quantity)
        inner_s = (ours.high_s - ours.low_s).median()
        outer_s = rival.ratio * rival.spread_s
        said = "The interval of one estimate spans {}, the figures of all runs {}: "
        between = "what moves lies between the runs: card, host or process."
    itself = "the stopwatch itself moves so much at this budget."
    said = said.format(*(units.percent(each / rival.per_s) for each in (inner_s, outer_s)))
    return said + (between if 2 * inner_s < outer_s else itself)


def _card(rival: Any, most: float, contest: Contest) -> str:
    """Whether a target asks for less than the same calls move by where nobody competes."""
    if (rival.op, rival.quantity) not in contest.references.index:
        return ""
    row = contest.references.loc[(rival.op, rival.quantity)]
    moves_s = row.reference_high - row.reference_low
    if moves_s <= most * rival.spread_s:
        return ""
    moves = units.percent(moves_s / rival.per_s)
    return f", and the rounds of the reference range over {moves}: less than card and host move"


def _bias(target: str, contest: Contest) -> Shortfalls:
    ours = where(contest.biases, variant=OURS)
    for row in ours[~ours.within].itertuples():
        place = {"op": row.op, "quantity": row.quantity}
        every = where(contest.biases, **place).itertuples()
        theirs = ", ".join(f"{e.variant} {off_text(e)}" for e in every if e.variant != OURS)
        runs = where(contest.ours, **place).median_s
        parts = [_reference(row, runs), _witness(row), _clock(row, contest)]
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


def _clock(row: Any, contest: Contest) -> str:
    """Whether the card was slower where the kernels were recorded than where nothing holds it."""
    there, highest = row.reference_mhz, contest.reference.get("sm_clock_mhz", pd.Series()).max()
    if units.missing(there) or there >= highest:
        return ""
    both = f"at {there:.0f} MHz, those of other workloads at up to {highest:.0f} MHz"
    why = "its calls follow each other without a rest, and the card slows down"
    return f"The record was made {both}: {why}."


def _coverage(target: str, contest: Contest) -> Shortfalls:
    table = where(contest.asked, kind=targets.COVERAGES[target])
    table = table[table.quantity != "step_wall"]
    half, middle = (table.high_s - table.low_s) / 2, (table.high_s + table.low_s) / 2
    off = abs(middle - table.truth_s)
    table = table.assign(half=half / table.truth_s, off=off / table.truth_s)
    for quantity, cell in table.groupby("quantity"):
        out = cell[~cell.held]
        why = f"Half an interval is typically {units.percent(cell.half.median())} wide"
        why += ", and its middle " if out.empty else "; the middle of one that missed is "
        away = units.percent((cell if out.empty else out).off.median())
        why += f"{away} away from what it should hold."
        if not out.empty:
            most = out.op.value_counts().head(3).items()
            why += f" Most on {', '.join(f'{op} ({count})' for op, count in most)}."
        yield Shortfall(target, quantity, f"{len(cell) - len(out)} of {len(cell)}", why)


def _verdicts(target: str, contest: Contest) -> Shortfalls:
    kind = "effect" if target == "power" else "same"
    pairs = contest.compared(kind) if target == "false-positives" else contest.threes(kind)
    pairs = pairs.assign(claimed=pairs.verdict.isin(PAIRS[kind][1]))
    for (op, quantity), cell in pairs.groupby(PLACE):
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


def _overhead(target: str, contest: Contest) -> Shortfalls:
    for row in contest.part("overhead", "cost_s").itertuples():
        if row.wide or row.cost_s >= targets.OVERHEAD_S:
            how = "wide, so the blocks did not agree in time" if row.wide else "narrow, but late"
            where = f"{row.op}, {row.quantity}, process {row.process}"
            yield Shortfall(target, where, units.seconds(row.cost_s), f"Its rows are {how}.")


EXPLAINED: dict[str, Callable[[str, Contest], Shortfalls]] = {
    "spread-": _spread,
    "bias": _bias,
    "coverage-": _coverage,
    "false-positives": _verdicts,
    "power": _verdicts,
    "overhead": _overhead,
}
