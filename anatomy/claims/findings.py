"""What a claim found: a verdict in one of five words, with the number and the condition behind it.

A number that was timed is above or below a claimed one exactly if their ratio has the verdict
`slower` or `faster` that a table would give it: beyond the noise floor and 0.5 %, and under 2 %
from several processes. What straddles an end is undecided. Nothing here compares two bare medians.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import median_high, median_low
from typing import Any

from anatomy.judge import replication
from anatomy.table import units
from anatomy.table.errors import AnatomyError, UnknownName
from anatomy.table.intervals import Interval

HOLDS = "holds"
FAILS = "fails"
IN_PART = "holds in part"
INCONCLUSIVE = "inconclusive"
NOT_MEASURABLE = "not measurable here"
WORDS = (HOLDS, FAILS, IN_PART, INCONCLUSIVE, NOT_MEASURABLE)
NOT_RECORDED = "not recorded"  # no verdict: a recording that the claim needs is missing
ALL_WORDS = (*WORDS, NOT_RECORDED)
# What a comparison of two times may find, besides that it is undecided.
DECIDED = ("faster", "slower", "same")
# How far a number may lie from the one that was claimed and still be called the same finding.
NEAR = 0.1
# How a number of a unit is printed: a ratio, a time, a share, a count; all others are rates.
PRINTED = {"x": units.ratio, "s": units.seconds, "share": units.percent, "count": units.significant}
# What a claimed number may be in.
UNITS = (*PRINTED, "B/s")


class Unmeasured(AnatomyError):
    """A row that a claim reads could not be measured on this machine; the message is its reason."""


@dataclass(frozen=True)
class Measured:
    """A measured number in the terms of a claim."""

    value: float
    # Its interval as the recording has it, of 95 % or the envelope of a few processes; of several
    # cases, from the lowest end to the highest.
    low: float
    high: float
    unit: str = "x"  # one of `UNITS`, or of another rate
    cases: int = 1  # how many numbers it sums up; `value` is then their median
    floor: float = 0.0  # noise floor of its table, as a share of 1; of several cases, the largest
    exact: bool = True  # False of too few blocks for an interval of 95 %, which decide nothing
    runs: tuple[float, ...] = ()  # of what was timed: the figure of each process
    verdict: str = ""  # of a ratio of times: one of `DECIDED`, or `undecided`
    recorded: bool = True  # False of what was reckoned from a datasheet alone

    @classmethod
    def counted(cls, value: float, unit: str = "x", *, recorded: bool = True) -> "Measured":
        """A number that was counted and not timed: it has no interval."""
        return cls(value, value, value, unit, recorded=recorded)

    def within(self, low: float, high: float) -> bool | None:
        """Whether the number lies between `low` and `high`; None where that is not decided."""
        inside = self.at_least(low), self.at_most(high)
        return False if False in inside else None if None in inside else True

    def at_least(self, end: float) -> bool | None:
        """Whether it is `end` or more: of what was timed by the verdict of its ratio to `end`, of
        what was counted or fitted with all of its interval."""
        if self.runs and end > 0:
            return {"slower": True, "faster": False}.get(self._over(end))
        if not self.exact:
            return None
        wide = 1.0 + self.floor
        return True if self.low / wide >= end else False if self.high * wide < end else None

    def at_most(self, end: float) -> bool | None:
        """Whether it is `end` or less, as `at_least` decides it."""
        if self.runs and end > 0:
            return {"faster": True, "slower": False}.get(self._over(end))
        if not self.exact:
            return None
        wide = 1.0 + self.floor
        return True if self.high * wide <= end else False if self.low / wide > end else None

    def _over(self, end: float) -> str:
        """The verdict of its ratio to `end`."""
        over = Interval(self.value / end, self.low / end, self.high / end, self.exact)
        runs = [run / end for run in self.runs]
        # That of one process alone is all the same: its ratio is the figure.
        label = "exact" if len(runs) >= replication.EXACT_FROM else "envelope"
        found = replication.Replicated(over, runs, label)
        return replication.verdict(found, self.floor)

    def near(self, claimed: float, by: float = NEAR) -> bool | None:
        """Whether it is the claimed number up to a share of it, as `within` decides it."""
        return self.within(claimed * (1 - by), claimed * (1 + by))

    def says(self, *words: str) -> bool | None:
        """Whether its verdict is one of `words`; None where that is not decided."""
        return self.verdict in words if self.verdict in DECIDED else None

    @property
    def inverse(self) -> "Measured":
        """A ratio the other way round: the speed-up of a time over that of its control."""
        ends, runs = (1 / self.high, 1 / self.low), tuple(1 / run for run in self.runs)
        return replace(self, value=1 / self.value, low=ends[0], high=ends[1], runs=runs, verdict="")

    @property
    def text(self) -> str:
        """`1.99× [1.97, 2.01]`; of several cases, lowest to highest end; `5`, of a count."""
        if self.low == self.high:  # as all that is counted
            return f"{self.middle} in all {self.cases} cases" if self.cases > 1 else self.middle
        low, high = (_printed(end, self.unit) for end in (self.low, self.high))
        if self.cases > 1:
            return f"{low} to {high} in {self.cases} cases"
        if ranged := {"x": units.ratio_range, "s": units.seconds_range}.get(self.unit):
            return ranged(self.value, self.low, self.high)
        if self.unit.endswith("/s"):
            return units.rate_range(self.value, self.unit, self.low, self.high)
        return f"{self.middle} [{low}, {high}]"

    @property
    def middle(self) -> str:
        """The number alone; of several cases, their median."""
        if self.unit == "count" and self.low == self.high == round(self.value):
            return f"{self.value:.0f}"
        return _printed(self.value, self.unit)


@dataclass(frozen=True)
class Finding:
    """What a claim found in its recordings."""

    word: str  # one of `WORDS`
    evidence: str  # what was seen, as a clause with its numbers; computed, never typed
    measured: Measured | None = None  # the number to hold against the one that was claimed
    condition: str = ""  # where it holds, if it holds only somewhere
    short: tuple[str, ...] = ()  # that in clauses, the count of cases last; or what is undecided
    counted: str = ""  # in how many cases it holds, and how many are undecided

    def __post_init__(self) -> None:
        if self.word not in WORDS:
            raise UnknownName("verdict", self.word, WORDS)
        if self.word == IN_PART and not self.condition:
            raise AnatomyError("A claim that holds only somewhere says where: give `condition`.")


@dataclass(frozen=True)
class Case:
    """One of several cases that a claim is about."""

    where: dict[str, Any]  # what tells it apart, such as {"op": "matmul", "dtype": "fp16"}
    outcome: bool | None  # whether the claim is true of it; None where that is not decided
    measured: Measured | None = None
    said: str = ""  # what the evidence says of it, if it is said case by case
    why: str = ""  # why it could not be measured here; empty where it was


def span(found: Sequence[Measured]) -> Measured | None:
    """Several numbers as one: their median, and from the lowest to the highest end."""
    if not found:
        return None
    first, *others = found
    if not others:
        return first
    values = [each.value for each in found]
    low, high = median_low(values), median_high(values)
    between = sqrt(low * high) if min(values) > 0 else (low + high) / 2
    return Measured(
        low if low == high else between,
        min(each.low for each in found),
        max(each.high for each in found),
        first.unit,
        sum(each.cases for each in found),
        max(each.floor for each in found),
        exact=all(each.exact for each in found),
    )


def answer(outcome: bool | None, evidence: str, measured: Measured | None = None) -> Finding:
    """The finding of one question: `holds`, `fails`, or `inconclusive` where it is not decided."""
    return Finding({True: HOLDS, False: FAILS, None: INCONCLUSIVE}[outcome], evidence, measured)


def _printed(value: float, unit: str) -> str:
    return PRINTED[unit](value) if unit in PRINTED else units.rate(value, unit)
