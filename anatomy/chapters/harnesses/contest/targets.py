"""The targets of the comparison, each with the figure that decides it. One is open while a
recording is missing, or a harness that it needs could not run."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from anatomy.chapters.harnesses.contest import standings
from anatomy.chapters.harnesses.contest.standings import OURS, RIVALS, Contest, where
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
FALSE_POSITIVES, POWER = 0.05, 0.80
OVERHEAD_S = 1.0
# Target -> the kind of interval that it is about.
COVERAGES = {"coverage-blocks": standings.LONG, "coverage-processes": standings.OVER_PROCESSES}
SAYS = {
    "coverage-blocks": "91 to 99 % of the intervals over blocks hold what the long run around them "
    "says",
    "coverage-processes": "91 to 99 % of the intervals over processes hold what the kernels' "
    "record says",
    "false-positives": "At most 5 % of A/A pairs get the verdict faster or slower",
    "false-positives-of-threes": "At most 5 % of A/A pairs do, from three processes",
    "power": "A true 2 % is found at least 80 % of the time, from three processes",
}


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
    found = (_spreads, _bias, _shares, _overhead)
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
            halved, but = len(best) - len(lost), f"of {len(best)}{_but(lost)}"
            often = Target(*often[:2], halved, f"{halved} workloads", halved >= ENOUGH, but)
            text = units.ratio_range(worst.ratio, worst.ratio_low, worst.ratio_high)
            place = f"worst on {worst.op}, against {worst.variant}"
            never = Target(*never[:2], worst.ratio, text, bool(worst.ratio <= WORST), place)
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


def _shares(contest: Contest) -> Iterator[Target]:
    """The targets for a share, each from the one row that it has, if that was recorded."""
    for name, says in SAYS.items():
        if name in COVERAGES:
            row = where(contest.coverages, kind=COVERAGES[name], quantity="all")
        else:
            together = "" if name == "false-positives" else f" of {standings.TOGETHER} processes"
            kind = "effect" if name == "power" else "same"
            row = where(contest.errors, variant=OURS, kind=kind, by=f"verdict{together}")
        if row.empty:
            yield Target(name, says)
            continue
        (one,) = row.itertuples()
        if name in COVERAGES:
            # The upper end is rounded up to whole intervals: of 20, all may hold.
            low, most = COVERAGE[0], np.ceil(COVERAGE[1] * one.count)
            met = one.share >= low and one.hits <= most
        else:
            met = one.share >= POWER if name == "power" else one.share <= FALSE_POSITIVES
        counted = f"{one.hits} of {one.count}"
        yield Target(name, says, one.share, percent_range(one), bool(met), counted)


def _overhead(contest: Contest) -> Iterator[Target]:
    found = Target("overhead", "Comparing two kernels of 100 µs to 1 % takes under 1 s")
    runs = contest.part("overhead", "cost_s")
    if not runs.empty:
        wide, slowest = int(runs.wide.astype(bool).sum()), float(runs.cost_s.max())
        met = slowest < OVERHEAD_S and not wide
        detail = f"the slowest of {len(runs)}; {wide} of them wide"
        found = Target(*found[:2], slowest, units.seconds(slowest), met, detail)
    yield found
