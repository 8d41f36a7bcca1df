"""Who won: the recordings of a comparison of harnesses, judged by rules fixed before the first run.

The rules of judging; those of measuring are in `anatomy.experiments.harnesses`.

1. **Spread** of a harness on a workload: from the 2.5 % to the 97.5 % quantile of its figures over
   all processes and replicates, as a share of their median. Ours is at most half of do_bench's (of
   its mean or its median, whichever spreads less on that workload) in `gpu_cold`, and at most half
   of Timer's (of its two ways, likewise) in `step_wall`, on at least 7 of the 10 workloads; and it
   is above 1.25 of it on none.
2. **Bias**: the median figure of all runs against the median of the references. In `gpu_cold` and
   `gpu_warm` it is within 1 % of a reference of 10 us or more, and within 0.5 us of a shorter one,
   on every workload. A wall time has no record on the GPU and is shown without a target.
3. **Coverage** of 95 % intervals is 91 to 99 %: of the intervals over blocks, how many hold what
   the rest of their process says; of the intervals over the six processes' medians, one for each
   workload and quantity, how many hold the reference.
4. **A/A false positives**: of pairs that are the same callable twice, at most 5 % get the verdict
   faster or slower; and likewise of threes of processes, since rule 5 judges by those. How many
   intervals of the ratio exclude 1 is shown beside it, and is no claim: a difference that is real
   and tiny, such as one of placement, is none of the code.
5. **Power**: a true 2 % is found, which means that the verdict is slower, at least 80 % of the
   time. An effect under 2 % is claimed from three fresh processes or more, never from one, so
   what is judged are threes: processes 0 to 2 and 3 to 5, their blocks' ratios put together, in
   each replicate, quantity and effect. One process alone is shown beside it.
6. **Overhead**: every comparison of two kernels of 100 us, with its default precision of 1 % and
   warm, takes under 1 s of wall time, and its rows are narrow.
7. The other harnesses give no verdicts. So that they can be set beside ours at all, two figures
   count as different when they are more than 1 % apart, half of the effect: for them of successive
   estimates, for ours of the two variants of a comparison. Shown, and no target.
8. A target is met or not met on what was recorded. It is open while a recording is missing or a
   harness that it needs could not run. Losses stand in the same tables as gains.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from anatomy import intervals, scoring
from anatomy.recording import Recording

PROCESSES, REFERENCES = 6, 3
ESTIMATES, REFERENCE = "harnesses.estimates", "harnesses.reference"
OURS = "compare"
# Ours in each quantity is held against these; those of the first two are of the target.
RIVALS = {
    "gpu_cold": ("do_bench mean", "do_bench median", "inductor"),
    "step_wall": ("blocked_autorange", "adaptive_autorange"),
    "gpu_warm": ("do_bench_cudagraph",),
}
TARGETED = {"gpu_cold": RIVALS["gpu_cold"][:2], "step_wall": RIVALS["step_wall"]}

HALF, WORST, ENOUGH = 0.5, 1.25, 7
SHORT_S, BIAS, BIAS_SHORT_S = 10e-6, 0.01, 0.5e-6
COVERAGE = (0.91, 0.99)
FALSE_POSITIVES, POWER = 0.05, 0.80
OVERHEAD_S = 1.0
APART = 0.01
TOGETHER = 3  # fresh processes behind one claim of less than 2 %


def gathered(recordings: Sequence[Recording]) -> pd.DataFrame:
    """The rows of recordings of one experiment, with the number of the process beside each."""
    tables = [each.table.assign(process=each.params["process"]) for each in recordings]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def spreads(estimates: pd.DataFrame) -> pd.DataFrame:
    """The spread of every harness on every workload, and ours as a share of it.

    Returns:
        `op`, `quantity`, `variant`, `median_s` of all runs, `runs`, `spread`; for the others
        `ratio`, our spread over theirs, with `ratio_low` and `ratio_high`.
    """
    rows = []
    for (op, quantity), group in _figures(estimates).groupby(["op", "quantity"], sort=False):
        by_process = {
            name: {p: list(runs.median_s) for p, runs in runs.groupby("process")}
            for name, runs in group.groupby("variant", sort=False)
        }
        for name in (OURS, *RIVALS[quantity]):
            runs = [time for times in by_process.get(name, {}).values() for time in times]
            if len(runs) < 2:
                continue
            row = {"op": op, "quantity": quantity, "variant": name, "runs": len(runs)}
            row |= {"median_s": float(np.median(runs)), "spread": scoring.spread(runs)}
            if name != OURS and OURS in by_process:
                shared = [p for p in by_process[name] if p in by_process[OURS]]
                sides = ([by_process[side][p] for p in shared] for side in (OURS, name))
                row |= dict(zip(_RATIO, scoring.spread_ratio(*sides), strict=True))
            rows.append(row)
    return pd.DataFrame(rows, columns=["op", "quantity", "variant", "runs", *_SPREAD])


_RATIO = ("ratio", "ratio_low", "ratio_high")
_SPREAD = ("median_s", "spread", *_RATIO)


def biases(estimates: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """How far every harness's median figure lies from the reference.

    Returns:
        `op`, `quantity`, `variant`, `median_s`, `reference_s`, `bias` as a share of it, `off_s` in
        seconds, and `within`, whether rule 2 is kept.
    """
    truths = _truths(reference)
    rows = []
    for (op, quantity, name), runs in _figures(estimates).groupby(_CELL, sort=False):
        truth = truths.get((op, quantity))
        if truth is None:
            continue
        middle = float(runs.median_s.median())
        off, bias = middle - truth, scoring.bias(runs.median_s, truth)
        within = abs(bias) <= BIAS if truth >= SHORT_S else abs(off) <= BIAS_SHORT_S
        rows.append((op, quantity, name, middle, truth, bias, off, within))
    columns = [*_CELL, "median_s", "reference_s", "bias", "off_s", "within"]
    return pd.DataFrame(rows, columns=columns)


_CELL = ["op", "quantity", "variant"]


def coverages(estimates: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """How many of our 95 % intervals hold what they should, by `kind` and `quantity`.

    The kind is `blocks` or `processes`; the quantity `all` stands for the cold and the warm GPU
    times, which the target is about.
    """
    found = _figures(estimates)
    ours = found[found.variant == OURS]
    truths = _truths(reference)
    held: dict[tuple[str, str], list[bool]] = {}
    for row in ours.dropna(subset=["rest_s"]).itertuples():
        hit = row.low_s <= row.rest_s <= row.high_s
        held.setdefault(("blocks", row.quantity), []).append(hit)
    for (op, quantity), runs in ours.groupby(["op", "quantity"], sort=False):
        middles = runs.groupby("process").median_s.median()
        around = intervals.median_interval(middles)
        if (op, quantity) in truths and around.exact:
            hit = around.low <= truths[op, quantity] <= around.high
            held.setdefault(("processes", quantity), []).append(hit)
    for kind in ("blocks", "processes"):
        both = [h for (k, q), hits in held.items() if k == kind and q != "step_wall" for h in hits]
        held[kind, "all"] = both
    rows = [
        {"kind": kind, "quantity": quantity} | vars(scoring.share(hits))
        for (kind, quantity), hits in sorted(held.items())
        if hits
    ]
    return pd.DataFrame(rows, columns=["kind", "quantity", *_SHARE])


_SHARE = ("hits", "count", "share", "low", "high")


def errors(estimates: pd.DataFrame) -> pd.DataFrame:
    """How often equals were told apart, and how often a true 2 % was found.

    Returns:
        `variant`, the harness; `kind`, `same` or `effect`; `by`, what counted: `verdict`, `verdict
        of 3 processes`, `interval` (it excludes 1) or `1% apart`; hits, count, share, low, high.
    """
    rows: list[dict[str, Any]] = []

    def add(variant: str, kind: str, by: str, outcomes: Sequence[bool]) -> None:
        if outcomes:
            found = vars(scoring.share(list(outcomes)))
            rows.append({"variant": variant, "kind": kind, "by": by} | found)

    effects = _part(estimates, "effect").dropna(subset=["ratio"])
    same = _part(estimates, "pair").dropna(subset=["ratio"])
    for pairs, kind in ((same, "same"), (effects, "effect")):
        mine = pairs[pairs.variant == OURS]
        claimed = ("slower",) if kind == "effect" else ("slower", "faster")
        add(OURS, kind, "verdict", list(mine.verdict.isin(claimed)))
        add(OURS, kind, f"verdict of {TOGETHER} processes", _together(mine, claimed))
        add(OURS, kind, "interval", list((mine.ratio_low > 1) | (mine.ratio_high < 1)))
        beyond = mine.ratio - 1 > APART if kind == "effect" else abs(mine.ratio - 1) > APART
        add(OURS, kind, "1% apart", list(beyond))
    figures = _figures(estimates)
    for name in [rival for rivals in RIVALS.values() for rival in rivals]:
        runs = figures[figures.variant == name].sort_values("replicate")
        apart = [
            scoring.apart(first, second, APART)
            for _, times in runs.groupby(["process", "op"])
            for first, second in zip(times.median_s, times.median_s[1:], strict=False)
        ]
        add(name, "same", "1% apart", apart)
        theirs = effects[effects.variant == name]
        add(name, "effect", "1% apart", list(theirs.ratio - 1 > APART))
    return pd.DataFrame(rows, columns=["variant", "kind", "by", *_SHARE])


def _together(pairs: pd.DataFrame, claimed: Sequence[str]) -> list[bool]:
    """Whether threes of processes claim something, their blocks' ratios put together."""
    found = []
    for _, cell in pairs.groupby(["op", "quantity"]):
        # An effect is measured in every replicate, an A/A pair once in a process.
        turn = cell.sort_values("replicate").groupby("process").cumcount()
        for _, runs in cell.groupby(turn):
            runs = runs.sort_values("process")
            for first in range(0, len(runs) - TOGETHER + 1, TOGETHER):
                three = runs.iloc[first : first + TOGETHER]
                pooled = [ratio for ratios in three.block_ratios for ratio in ratios]
                ratio = intervals.ratio_interval(pooled, np.ones(len(pooled)))
                floor = float(three.noise_floor.max())
                found.append(intervals.verdict(ratio, floor, processes=TOGETHER) in claimed)
    return found


def costs(estimates: pd.DataFrame) -> pd.DataFrame:
    """What one estimate costs in wall seconds: median and largest, by `variant` and `quantity`."""
    found = _figures(estimates)
    grouped = found.groupby(["variant", "quantity"], sort=False).cost_s
    table = grouped.agg(cost_s="median", largest_s="max", runs="size").reset_index()
    return table.astype({"runs": int})


def targets(estimates: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Every target with the figure that decides it.

    Returns:
        `target`, a short name; `says`, the target in words; `found`, its figure, with `low` and
        `high` where it has an interval; `unit`, "of 10", "x", "%" or "s"; `met`, None while open;
        `detail`, a sentence on where it stands.
    """
    rows = []
    for quantity, who in (("gpu_cold", "do_bench"), ("step_wall", "Timer")):
        rows += _spread_targets(spreads(estimates), quantity, who)
    rows.append(_bias_target(biases(estimates, reference)))
    rows += _coverage_targets(coverages(estimates, reference))
    rows += _error_targets(errors(estimates))
    rows.append(_overhead_target(estimates))
    return pd.DataFrame(rows, columns=["target", "says", "found", *_TARGET])


_TARGET = ("low", "high", "unit", "met", "detail")


def _target(name: str, says: str, unit: str, detail: str = "", **figures) -> dict[str, Any]:
    empty = dict.fromkeys(("found", "low", "high", "met"))
    return empty | {"target": name, "says": says, "unit": unit, "detail": detail} | figures


def _spread_targets(table: pd.DataFrame, quantity: str, who: str) -> list[dict[str, Any]]:
    rivals = table[(table.quantity == quantity) & table.variant.isin(TARGETED[quantity])]
    # The rival's way that spreads less, so the larger of our shares of it.
    best = rivals.dropna(subset=["ratio"]).sort_values("ratio").groupby("op", sort=False).tail(1)
    often = f"Spread at most half of {who}'s on at least {ENOUGH} workloads, in {quantity}"
    never = f"Spread on no workload above {WORST} of {who}'s, in {quantity}"
    names = f"spread-{quantity.partition('_')[2]}", f"worst-{quantity.partition('_')[2]}"
    if best.empty:
        return [_target(names[0], often, "workloads"), _target(names[1], never, "x")]
    halved, worst = best[best.ratio <= HALF], best.loc[best.ratio.idxmax()]
    lost = best[best.ratio > HALF].op
    return [
        _target(
            names[0], often, "workloads", f"of {len(best)}{_but(lost)}",
            found=len(halved), met=len(halved) >= ENOUGH,
        ),
        _target(
            names[1], never, "x", f"worst on {worst.op}, against {worst.variant}",
            found=worst.ratio, low=worst.ratio_low, high=worst.ratio_high,
            met=bool(best.ratio.max() <= WORST),
        ),
    ]  # fmt: skip


def _but(lost: Sequence[str]) -> str:
    """Where a target is missed, behind a count."""
    return f"; not on {', '.join(lost)}" if len(lost) else ""


def _bias_target(table: pd.DataFrame) -> dict[str, Any]:
    says = "Bias within 1 % of the kernels' record from 10 µs on, within 0.5 µs below"
    ours = table[(table.variant == OURS) & (table.quantity != "step_wall")]
    if ours.empty:
        return _target("bias", says, "figures")
    out = ours[~ours.within.astype(bool)]
    where = [f"{row.op} {row.quantity}" for row in out.itertuples()]
    return _target(
        "bias", says, "figures", f"of {len(ours)}{_but(where)}",
        found=len(ours) - len(out), met=out.empty,
    )  # fmt: skip


def _coverage_targets(table: pd.DataFrame) -> list[dict[str, Any]]:
    whats = {"blocks": "the rest of their process", "processes": "the kernels' record"}
    rows = []
    for kind, what in whats.items():
        says = f"91 to 99 % of the intervals over {kind} hold what {what} says"
        row = table[(table.kind == kind) & (table.quantity == "all")]
        rows.append(_share_target(f"coverage-{kind}", says, row, _covers))
    return rows


def _covers(share: float) -> bool:
    return COVERAGE[0] <= share <= COVERAGE[1]


def _error_targets(table: pd.DataFrame) -> list[dict[str, Any]]:
    ours = table[table.variant == OURS]
    three = f"verdict of {TOGETHER} processes"

    def row(kind: str, by: str) -> pd.DataFrame:
        return ours[(ours.kind == kind) & (ours.by == by)]

    return [
        _share_target(
            "false-positives", "At most 5 % of A/A pairs get the verdict faster or slower",
            row("same", "verdict"), lambda share: share <= FALSE_POSITIVES,
        ),
        _share_target(
            "false-positives-of-threes", "At most 5 % of A/A pairs do, from three processes",
            row("same", three), lambda share: share <= FALSE_POSITIVES,
        ),
        _share_target(
            "power", "A true 2 % is found at least 80 % of the time, from three processes",
            row("effect", three), lambda share: share >= POWER,
        ),
    ]  # fmt: skip


def _share_target(
    name: str, says: str, row: pd.DataFrame, good: Callable[[float], bool]
) -> dict[str, Any]:
    if row.empty:
        return _target(name, says, "%")
    one = row.iloc[0]
    figures = {"found": one.share, "low": one.low, "high": one.high, "met": bool(good(one.share))}
    return _target(name, says, "%", f"{one.hits} of {one['count']}", **figures)


def _overhead_target(estimates: pd.DataFrame) -> dict[str, Any]:
    says = "Comparing two kernels of 100 µs to 1 % takes under 1 s"
    runs = _part(estimates, "overhead").dropna(subset=["cost_s"])
    if runs.empty:
        return _target("overhead", says, "s")
    wide = int(runs.wide.astype(bool).sum())
    slowest = float(runs.cost_s.max())
    detail = f"the slowest of {len(runs)}; {wide} of them wide"
    return _target(
        "overhead", says, "s", detail, found=slowest, met=slowest < OVERHEAD_S and not wide
    )


def _figures(estimates: pd.DataFrame) -> pd.DataFrame:
    """The estimates that gave a figure."""
    found = _part(estimates, "estimate").dropna(subset=["median_s"])
    return found[found.quantity.isin(RIVALS)]


# What is read of a row; a recording in which nothing of a kind could be measured has fewer.
_READ = (
    *("part", "process", "op", "quantity", "variant", "replicate", "cost_s", "wide", "verdict"),
    *("median_s", "low_s", "high_s", "rest_s", "noise_floor", "block_ratios", *_RATIO),
)


def _part(estimates: pd.DataFrame, part: str) -> pd.DataFrame:
    """The rows of one part, with every column that is read."""
    whole = estimates.reindex(columns=list(dict.fromkeys([*estimates.columns, *_READ])))
    return whole[whole.part == part].reset_index(drop=True)


def _truths(reference: pd.DataFrame) -> Mapping[tuple[str, str], float]:
    """The median of the reference processes, by workload and quantity."""
    if reference.empty:
        return {}
    middles = reference.dropna(subset=["median_s"]).groupby(["op", "quantity"]).median_s.median()
    return {key: value for key, value in middles.items() if isfinite(value)}
