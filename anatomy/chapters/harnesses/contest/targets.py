"""The targets of the comparison of harnesses: each with the figure that decides it.

The rules, and the figures that they are about, are in `standings`.
"""

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

import pandas as pd

from anatomy.chapters.harnesses.contest import standings

# Target -> the kind of interval that it is about.
COVERAGES = {"coverage-blocks": standings.LONG, "coverage-processes": standings.OVER_PROCESSES}


def judged(estimates: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Every target with the figure that decides it.

    Returns:
        `target`, a short name; `says`, the target in words; `found`, its figure, with `low` and
        `high` where it has an interval; `unit`, "workloads", "figures", "x", "%" or "s";
        `met`, None while open; `detail`, a sentence on where it stands.
    """
    rows = []
    spreads = standings.spreads(estimates, reference)
    for quantity, who in (("gpu_cold", "do_bench"), ("step_wall", "Timer")):
        rows += _spread_targets(spreads, quantity, who)
    rows.append(_bias_target(standings.biases(estimates, reference)))
    rows += _coverage_targets(standings.coverages(estimates, reference))
    rows += _error_targets(standings.errors(estimates))
    rows.append(_overhead_target(estimates))
    return pd.DataFrame(rows, columns=["target", "says", "found", *_TARGET])


_TARGET = ("low", "high", "unit", "met", "detail")


def _target(name: str, says: str, unit: str, detail: str = "", **figures) -> dict[str, Any]:
    empty = dict.fromkeys(("found", "low", "high", "met"))
    return empty | {"target": name, "says": says, "unit": unit, "detail": detail} | figures


def _spread_targets(table: pd.DataFrame, quantity: str, who: str) -> list[dict[str, Any]]:
    best = closest(table, quantity)
    often = (
        f"Spread at most half of {who}'s on at least {standings.ENOUGH} workloads, in {quantity}"
    )
    never = f"Spread on no workload above {standings.WORST} of {who}'s, in {quantity}"
    names = f"spread-{quantity.partition('_')[2]}", f"worst-{quantity.partition('_')[2]}"
    if best.empty:
        return [_target(names[0], often, "workloads"), _target(names[1], never, "x")]
    worst = best.loc[best.ratio.idxmax()]
    lost = best[best.ratio > standings.HALF].op
    halved = len(best) - len(lost)
    return [
        _target(
            names[0], often, "workloads", f"of {len(best)}{_but(lost)}",
            found=halved, met=halved >= standings.ENOUGH,
        ),
        _target(
            names[1], never, "x", f"worst on {worst.op}, against {worst.variant}",
            found=worst.ratio, low=worst.ratio_low, high=worst.ratio_high,
            met=bool(best.ratio.max() <= standings.WORST),
        ),
    ]  # fmt: skip


def closest(table: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Of each workload the rival's way that spreads least, so the largest of our shares of one.

    Args:
        table: What `standings.spreads` gave.
        quantity: One that has a target.
    """
    rivals = table[(table.quantity == quantity) & table.variant.isin(standings.TARGETED[quantity])]
    most = rivals.dropna(subset=["ratio"]).sort_values("ratio").groupby("op", sort=False).tail(1)
    return most.sort_index()  # the workloads in their order


def _but(lost: Sequence[str]) -> str:
    """Where a target is missed, behind a count."""
    return f"; not on {', '.join(map(_short, lost))}" if len(lost) else ""


def _short(place: str) -> str:
    """A workload by its number alone, with its quantity where it has one: `W8 gpu_cold`."""
    number, *rest = place.split()
    return " ".join([number, *(word for word in rest if word in standings.RIVALS)])


def _bias_target(table: pd.DataFrame) -> dict[str, Any]:
    says = "Bias within 1 % of the kernels' record from 10 µs on, within 0.5 µs below"
    ours = table[(table.variant == standings.OURS) & (table.quantity != "step_wall")]
    if ours.empty:
        return _target("bias", says, "figures")
    out = ours[~ours.within.astype(bool)]
    where = [f"{row.op} {row.quantity}" for row in out.itertuples()]
    return _target(
        "bias", says, "figures", f"of {len(ours)}{_but(where)}",
        found=len(ours) - len(out), met=out.empty,
    )  # fmt: skip


def _coverage_targets(table: pd.DataFrame) -> list[dict[str, Any]]:
    says = {
        "coverage-blocks": "over blocks hold what the long run around them says",
        "coverage-processes": "over processes hold what the kernels' record says",
    }
    rows = []
    for (name, what), kind in zip(says.items(), COVERAGES.values(), strict=True):
        row = table[(table.kind == kind) & (table.quantity == "all")]
        rows.append(_share_target(name, f"91 to 99 % of the intervals {what}", row, _covers))
    return rows


def _covers(found: Any) -> bool:
    low, high = standings.COVERAGE
    return found.share >= low and found.hits <= ceil(high * found["count"])


def _error_targets(table: pd.DataFrame) -> list[dict[str, Any]]:
    ours = table[table.variant == standings.OURS]
    three = f"verdict of {standings.TOGETHER} processes"

    def row(kind: str, by: str) -> pd.DataFrame:
        return ours[(ours.kind == kind) & (ours.by == by)]

    return [
        _share_target(
            "false-positives", "At most 5 % of A/A pairs get the verdict faster or slower",
            row("same", "verdict"), lambda found: found.share <= standings.FALSE_POSITIVES,
        ),
        _share_target(
            "false-positives-of-threes", "At most 5 % of A/A pairs do, from three processes",
            row("same", three), lambda found: found.share <= standings.FALSE_POSITIVES,
        ),
        _share_target(
            "power", "A true 2 % is found at least 80 % of the time, from three processes",
            row("effect", three), lambda found: found.share >= standings.POWER,
        ),
    ]  # fmt: skip


def _share_target(
    name: str, says: str, row: pd.DataFrame, good: Callable[[Any], bool]
) -> dict[str, Any]:
    if row.empty:
        return _target(name, says, "%")
    one = row.iloc[0]
    figures = {"found": one.share, "low": one.low, "high": one.high, "met": bool(good(one))}
    return _target(name, says, "%", f"{one.hits} of {one['count']}", **figures)


def _overhead_target(estimates: pd.DataFrame) -> dict[str, Any]:
    says = "Comparing two kernels of 100 µs to 1 % takes under 1 s"
    runs = standings.part(estimates, "overhead").dropna(subset=["cost_s"])
    if runs.empty:
        return _target("overhead", says, "s")
    wide = int(runs.wide.astype(bool).sum())
    slowest = float(runs.cost_s.max())
    detail = f"the slowest of {len(runs)}; {wide} of them wide"
    return _target(
        "overhead",
        says,
        "s",
        detail,
        found=slowest,
        met=slowest < standings.OVERHEAD_S and not wide,
    )
