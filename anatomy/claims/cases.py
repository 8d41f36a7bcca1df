"""The cases of a claim: judged one by one, counted, and put into words.

    cases = Cases()
    for row in loop.select(variant="item each step"):
        with cases.at(model=row["model"]) as case:
            ratio = over_control(row)
            case(ratio.at_least(2.0), ratio, f"the {row['model']} model takes {ratio.text}")
    return cases.finding(f"With .item() each step, {cases.said(' and ')}.")

What a block reads and can't be measured here raises `Unmeasured`: its case says why.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from anatomy.claims.findings import Case, Finding, Measured, Unmeasured, across, span
from anatomy.table import units


class Cases(list[Case]):
    """Cases that agree on the keys of `where`."""

    @contextmanager
    def at(self, **where: Any) -> Iterator[Callable[..., None]]:
        """A block that judges one case, by calling what it is given with the fields of `Case`."""

        def judge(outcome: bool | None, measured: Measured | None = None, said: str = "") -> None:
            self.append(Case(where, outcome, measured, said))

        try:
            yield judge
        except Unmeasured as reason:
            self.append(Case(where, None, why=str(reason)))

    def finding(self, evidence: str) -> Finding:
        """One verdict over all of them."""
        return across(self, evidence)

    def of(self, **where: Any) -> "Cases":
        """Those with these values in `where`."""
        return Cases(
            case for case in self if all(case.where[name] == value for name, value in where.items())
        )

    @property
    def measurable(self) -> "Cases":
        """Those that could be measured here."""
        return Cases(case for case in self if not case.why)

    @property
    def true(self) -> int:
        """In how many the claim is true."""
        return sum(case.outcome is True for case in self)

    @property
    def false(self) -> int:
        """In how many it is false."""
        return sum(case.outcome is False for case in self)

    @property
    def numbers(self) -> list[Measured]:
        """The numbers of those that have one."""
        return [case.measured for case in self if case.measured]

    @property
    def range(self) -> str:
        """The smallest and the largest ratio: `0.98× to 2.04×`."""
        return between(each.value for each in self.numbers)

    def said(self, between: str = "; ") -> str:
        """What each says for itself."""
        return between.join(case.said for case in self if case.said)

    def numbers_by(self, *columns: str) -> dict[tuple[str, ...], list[Measured]]:
        """The numbers of those that are the same in these columns."""
        groups: dict[tuple[str, ...], list[Measured]] = {}
        for case in self:
            if case.measured:
                key = tuple(str(case.where[column]) for column in columns)
                groups.setdefault(key, []).append(case.measured)
        return groups

    def spans(self, *columns: str) -> str:
        """Those that share `columns` as one number each: `8192 1.9× to 2.0× in 3 cases`."""
        groups = self.numbers_by(*columns).items()
        return "; ".join(f"{' over '.join(key)} {span(each).text}" for key, each in groups)

    def ends(self, *columns: str) -> str:
        """The least and the largest number of those that share `columns`, and where each was seen.

        `bf16 0.83× (C=256) to 8.45× (C=2048)`; one number alone stands alone.
        """
        parts = []
        for key in self.numbers_by(*columns):
            group = self.of(**dict(zip(columns, key, strict=True))).measurable
            group.sort(key=lambda case: case.measured.value)
            texts = []
            for case in (group[0], group[-1]):
                rest = " ".join(str(at) for name, at in case.where.items() if name not in columns)
                texts.append(f"{_in_short(case.measured)} ({rest})")
            parts.append(f"{' over '.join(key)} {' to '.join(dict.fromkeys(texts))}")
        return "; ".join(parts)

    def tally(self, low: float, high: float) -> str:
        """How many gains meet a promise of `low` to `high`, exceed it, and are a gain at all.

        Advice with a factor is a promise to who follows it. Less than its lower end breaks it. More
        than its upper end doesn't: nobody who got it was misled, so it is counted and stands beside
        the verdict. The techniques of the axioms are judged by this one rule.
        """
        gains = self.numbers
        met = sum(gain.at_least(low) is True for gain in gains)
        text = f"At least {units.ratio(low)} in {met} of {len(gains)} cases"
        if met and high > low:
            more = sum(gain.at_most(high) is False for gain in gains)
            text += f", more than {units.ratio(high)} in {more}"
        if low > 1:
            faster = sum(gain.at_most(1.0) is False for gain in gains)
            slower = sum(gain.at_most(1.0) is True for gain in gains)
            text += f"; faster at all in {faster}, slower in {slower}"
        return f"{text}."


def between(values: Iterable[float], printed: Callable[[float], str] = units.ratio) -> str:
    """The smallest and largest of many: `0.98× to 2.04×`; one alone stands alone."""
    values = list(values)
    if not values:
        return units.NOT_MEASURED
    low, high = printed(min(values)), printed(max(values))
    return low if low == high else f"{low} to {high}"


def _in_short(ratio: Measured) -> str:
    if ratio.low == ratio.high:  # of counts: there are no digits that an interval pays for
        return units.ratio(ratio.value)
    return units.ratio(ratio.value, ratio.low, ratio.high)
