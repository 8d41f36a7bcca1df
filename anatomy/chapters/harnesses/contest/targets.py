"""The targets of the comparison, each with the figure that decides it, by `standings`' rules."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from anatomy.chapters.harnesses.contest import standings

# Target -> the kind of interval that it is about.
COVERAGES = {"coverage-blocks": standings.LONG, "coverage-processes": standings.OVER_PROCESSES}
Row = dict[str, Any]


@standings.once
def judged(estimates: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Every target with the figure that decides it: `says`, the target in words; `found` in `unit`,
    with `low` and `high` where it has an interval; `met`, None while open; `detail`."""
    spreads = standings.spreads(estimates, reference)
    rows = [
        *_spread_targets(spreads, "gpu_cold", "do_bench"),
        *_spread_targets(spreads, "step_wall", "Timer"),
        _bias_target(standings.biases(estimates, reference)),
        *_coverage_targets(standings.coverages(estimates, reference)),
        *_error_targets(standings.errors(estimates)),
        _overhead_target(estimates),
    ]
    columns = ["target", "says", "found", "low", "high", "unit", "met", "detail"]
    return pd.DataFrame(rows, columns=columns)


def _target(name: str, says: str, unit: str) -> Row:
    """A target that is open, until its figures are put in."""
    named = {"target": name, "says": says, "unit": unit, "detail": ""}
    return named | dict.fromkeys(("found", "low", "high", "met"))


def _spread_targets(table: pd.DataFrame, quantity: str, who: str) -> tuple[Row, Row]:
    best, short = closest(table, quantity), quantity.partition("_")[2]
    says = f"Spread at most half of {who}'s on at least {standings.ENOUGH} workloads, in {quantity}"
    often = _target(f"spread-{short}", says, "workloads")
    says = f"Spread on no workload above {standings.WORST} of {who}'s, in {quantity}"
    never = _target(f"worst-{short}", says, "x")
    if not best.empty:
        lost = best[best.ratio > standings.HALF].op
        halved = len(best) - len(lost)
        often |= {"found": halved, "met": halved >= standings.ENOUGH}
        often["detail"] = f"of {len(best)}{_but(lost)}"
        worst = best.loc[best.ratio.idxmax()]
        never |= {"found": worst.ratio, "low": worst.ratio_low, "high": worst.ratio_high}
        never["met"] = bool(worst.ratio <= standings.WORST)
        never["detail"] = f"worst on {worst.op}, against {worst.variant}"
    return often, never


def closest(table: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Of each workload in `standings.spreads` the rival's way that spreads least, so the largest of
    our shares of one; for a quantity that has a target."""
    rivals = table[(table.quantity == quantity) & table.variant.isin(standings.TARGETED[quantity])]
    most = rivals.dropna(subset=["ratio"]).sort_values("ratio").groupby("op", sort=False).tail(1)
    return most.sort_index()  # the workloads in their order


def _but(lost: Sequence[str]) -> str:
    """Where a target is missed, behind a count: `; not on W3, W8 gpu_cold`."""
    places = []
    for number, *words in map(str.split, lost):
        places.append(" ".join([number, *(word for word in words if word in standings.RIVALS)]))
    return f"; not on {', '.join(places)}" if places else ""


def _bias_target(table: pd.DataFrame) -> Row:
    says = "Bias within 1 % of the kernels' record from 10 µs on, within 0.5 µs below"
    target = _target("bias", says, "figures")
    ours = table[(table.variant == standings.OURS) & (table.quantity != "step_wall")]
    if not ours.empty:
        out = ours[~ours.within.astype(bool)]
        target |= {"found": len(ours) - len(out), "met": out.empty}
        target["detail"] = f"of {len(ours)}{_but(out.op + ' ' + out.quantity)}"
    return target


def _coverage_targets(table: pd.DataFrame) -> Iterator[Row]:
    says = {
        "coverage-blocks": "over blocks hold what the long run around them says",
        "coverage-processes": "over processes hold what the kernels' record says",
    }
    low, high = standings.COVERAGE
    for name, kind in COVERAGES.items():
        row = table[(table.kind == kind) & (table.quantity == "all")]
        met = (row.share >= low) & (row.hits <= np.ceil(high * row["count"]))
        yield _share_target(name, f"91 to 99 % of the intervals {says[name]}", row, met)


def _error_targets(table: pd.DataFrame) -> Iterator[Row]:
    three = f"verdict of {standings.TOGETHER} processes"
    few, often = "At most 5 % of A/A pairs", "at least 80 % of the time"
    for name, says, kind, by in (
        ("false-positives", f"{few} get the verdict faster or slower", "same", "verdict"),
        ("false-positives-of-threes", f"{few} do, from three processes", "same", three),
        ("power", f"A true 2 % is found {often}, from three processes", "effect", three),
    ):
        row = table[(table.variant == standings.OURS) & (table.kind == kind) & (table.by == by)]
        few_enough, found = row.share <= standings.FALSE_POSITIVES, row.share >= standings.POWER
        yield _share_target(name, says, row, found if kind == "effect" else few_enough)


def _share_target(name: str, says: str, row: pd.DataFrame, met: pd.Series) -> Row:
    """A target for a share, from the one row that it has, if that was recorded."""
    target = _target(name, says, "%")
    for one in row.assign(met=met.astype(bool)).itertuples():
        target |= {"found": one.share, "low": one.low, "high": one.high, "met": one.met}
        target["detail"] = f"{one.hits} of {one.count}"
    return target


def _overhead_target(estimates: pd.DataFrame) -> Row:
    target = _target("overhead", "Comparing two kernels of 100 µs to 1 % takes under 1 s", "s")
    runs = standings.part(estimates, "overhead").dropna(subset=["cost_s"])
    if not runs.empty:
        wide, slowest = int(runs.wide.astype(bool).sum()), float(runs.cost_s.max())
        target |= {"found": slowest, "met": slowest < standings.OVERHEAD_S and not wide}
        target["detail"] = f"the slowest of {len(runs)}; {wide} of them wide"
    return target
