"""The targets of the comparison, each with the figure that decides it. One is open while a
recording is missing, or a harness that it needs could not run."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from anatomy.chapters.harnesses.contest.standings import (
    LONG,
    OURS,
    OVER_PROCESSES,
    RIVALS,
    TOGETHER,
    Contest,
    where,
)
from anatomy.table import units
from anatomy.table.errors import lookup

MET, NOT_MET, OPEN = "met", "not met", "open"
# Whose spread ours is held against, and of which ways of theirs the steadier one counts.
TARGETED = {
    "gpu_cold": ("do_bench", RIVALS["gpu_cold"][:2]),
    "step_wall": ("Timer", RIVALS["step_wall"]),
}
HALF, WORST, ENOUGH = 0.5, 1.25, 7
COVERAGE = (0.91, 0.99)
# Target -> the kind of interval that it is about, and what it asks, in words.
COVERAGES = {
    "coverage-blocks": (LONG, "over blocks hold what the long run around them says"),
    "coverage-processes": (OVER_PROCESSES, "over processes hold what the kernels' record says"),
}
FALSE_POSITIVES, POWER = 0.05, 0.80
OVERHEAD_S = 1.0


class Target(NamedTuple):
    """A target, and where it stands."""

    name: str
    says: str
    found: float | None = None  # the figure that decides it
    text: str = units.NOT_MEASURED  # the same with its unit, and its interval if it has one
    met: bool | None = None  # None while it is open
    detail: str = ""

    @property
    def verdict(self) -> str:
        """Whether it is met, in a word."""
        return OPEN if self.met is None else MET if self.met else NOT_MET


@lru_cache(maxsize=4)
def judged(contest: Contest) -> dict[str, Target]:
    """Every target by its name."""
    found = (_spreads, _bias, _coverages, _errors, _overhead)
    return {each.name: each for judge in found for each in judge(contest)}


def target(contest: Contest, name: str) -> Target:
    """One of them; UnknownName is raised where there is none of that name."""
    return lookup("target", name, judged(contest))


def closest(contest: Contest, quantity: str) -> pd.DataFrame:
    """Of each workload in `spreads` the rival's way that spreads least, so the largest of our
    shares of one; for a quantity that has a target."""
    table, ways = contest.spreads, TARGETED[quantity][1]
    rivals = table[(table.quantity == quantity) & table.variant.isin(ways)]
    most = rivals.dropna(subset=["ratio"]).sort_values("ratio").groupby("op", sort=False).tail(1)
    return most.sort_index()  # the workloads in their order


def percent_range(row: Any) -> str:
    """A `scoring.Share` with its interval."""
    return "{} [{}, {}]".format(*map(units.percent, (row.share, row.low, row.high)))


def _spreads(contest: Contest) -> Iterator[Target]:
    for quantity, (who, _) in TARGETED.items():
        best, short = closest(contest, quantity), quantity.partition("_")[2]
        half = f"Spread at most half of {who}'s on at least {ENOUGH} workloads, in {quantity}"
        most = f"Spread on no workload above {WORST} of {who}'s, in {quantity}"
        often, never = Target(f"spread-{short}", half), Target(f"worst-{short}", most)
        if not best.empty:
            lost, worst = best[best.ratio > HALF].op, best.loc[best.ratio.idxmax()]
            halved = len(best) - len(lost)
            counted = f"of {len(best)}{_but(lost)}"
            often = often._replace(
                found=halved, text=f"{halved} workloads", met=halved >= ENOUGH, detail=counted
            )
            never = never._replace(
                found=worst.ratio,
                text=units.ratio_range(worst.ratio, worst.ratio_low, worst.ratio_high),
                met=bool(worst.ratio <= WORST),
                detail=f"worst on {worst.op}, against {worst.variant}",
            )
        yield from (often, never)


def _but(lost: Iterable[str]) -> str:
    """Where a target is missed, behind a count: `; not on W3, W8 gpu_cold`."""
    places = []
    for number, *words in map(str.split, lost):
        places.append(" ".join([number, *(word for word in words if word in RIVALS)]))
    return f"; not on {', '.join(places)}" if places else ""


def _bias(contest: Contest) -> Iterator[Target]:
    says = "Bias within 1 % of the kernels' record from 10 µs on, within 0.5 µs below"
    ours = where(contest.biases, variant=OURS)
    ours = ours[ours.quantity != "step_wall"]
    if ours.empty:
        yield Target("bias", says)
        return
    out = ours[~ours.within.astype(bool)]
    kept, but = len(ours) - len(out), _but(out.op + " " + out.quantity)
    yield Target("bias", says, kept, f"{kept} figures", out.empty, f"of {len(ours)}{but}")


def _coverages(contest: Contest) -> Iterator[Target]:
    low, high = COVERAGE
    for name, (kind, asked) in COVERAGES.items():
        row = where(contest.coverages, kind=kind, quantity="all")
        # The upper end is rounded up to whole intervals: of 20, all may hold.
        met = (row.share >= low) & (row.hits <= np.ceil(high * row["count"]))
        yield _share(name, f"91 to 99 % of the intervals {asked}", row, met)


def _errors(contest: Contest) -> Iterator[Target]:
    three = f"verdict of {TOGETHER} processes"
    few, often = "At most 5 % of A/A pairs", "at least 80 % of the time"
    for name, says, kind, by in (
        ("false-positives", f"{few} get the verdict faster or slower", "same", "verdict"),
        ("false-positives-of-threes", f"{few} do, from three processes", "same", three),
        ("power", f"A true 2 % is found {often}, from three processes", "effect", three),
    ):
        row = where(contest.errors, variant=OURS, kind=kind, by=by)
        met = row.share >= POWER if kind == "effect" else row.share <= FALSE_POSITIVES
        yield _share(name, says, row, met)


def _share(name: str, says: str, row: pd.DataFrame, met: pd.Series) -> Target:
    """A target for a share, from the one row that it has, if that was recorded."""
    if row.empty:
        return Target(name, says)
    (one,) = row.itertuples()
    counted = f"{one.hits} of {one.count}"
    return Target(name, says, one.share, percent_range(one), bool(met.all()), counted)


def _overhead(contest: Contest) -> Iterator[Target]:
    found = Target("overhead", "Comparing two kernels of 100 µs to 1 % takes under 1 s")
    runs = contest.part("overhead", "cost_s")
    if not runs.empty:
        wide, slowest = int(runs.wide.astype(bool).sum()), float(runs.cost_s.max())
        met = slowest < OVERHEAD_S and not wide
        detail = f"the slowest of {len(runs)}; {wide} of them wide"
        found = Target(*found[:2], slowest, units.seconds(slowest), met, detail)
    yield found
