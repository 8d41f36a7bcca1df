"""The cases of a claim: judged one by one, counted, and put into words.

    cases = Cases()
    for row in loop.select(variant="item each step"):
        with cases.at(model=row["model"]) as case:
            ratio = over_control(row)
            case(ratio.at_least(2.0), ratio, f"the {row['model']} model takes {ratio.text}")
    return cases.finding(f"With .item() each step, {cases.said(' and ')}.")

What a block reads and can't be measured here raises `Unmeasured`: its case says why.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

from anatomy.claims import findings, places
from anatomy.claims.findings import Case, Finding, Measured, Unmeasured, span
from anatomy.claims.places import Place
from anatomy.table import units

# How many places a verdict names before it only counts them.
MOST_NAMED = 5


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
        """One verdict over all of them: that of a statement about every case.

        `holds` if it is true of each, `fails` if it is true of none and false of more than half;
        if it is true of some and false of others `holds in part`, saying where as shortly as the
        cases allow; else `inconclusive`. So what is undecided never counts for a verdict. Cases
        that can't be measured are told apart; if none can, it is `not measurable here`.
        """
        there = self.measurable
        if self.true and self.false:
            where, *short = _where(there)
            return self._found(findings.IN_PART, f"{evidence} It holds {where}.", where, *short)
        if there and self.true == len(there):
            return self._found(findings.HOLDS, evidence)
        refuted = not self.true and 2 * self.false > len(there)
        return self._found(findings.FAILS if refuted else findings.INCONCLUSIVE, evidence)

    def every(self, evidence: str) -> Finding:
        """One verdict over all of them: that of a sentence that itself says *every*.

        One case against it makes it `fails`; else it is that of `finding`. Of 23 November 2026:
        until then some cases in its favour made such a sentence `holds in part`.
        """
        if not self.false:
            return self.finding(evidence)
        condition = f"so in {self.true} of {len(self.measurable)} cases"
        return self._found(findings.FAILS, f"{evidence} It is {condition}.", condition)

    def possible(self, evidence: str) -> Finding:
        """One verdict over all of them: that of a statement that something can be, or may be.

        `holds` if it is true of one case, `fails` if it is false of each, else `inconclusive`.
        """
        there = self.measurable
        word = findings.FAILS if self.false == len(there) else findings.INCONCLUSIVE
        seen = f"{evidence} It is so in {self.true} of {len(there)} cases."
        return self._found(findings.HOLDS if self.true else word, seen)

    def _found(self, word: str, evidence: str, where: str = "", *short: str) -> Finding:
        """The finding of a verdict, with what is undecided and what can't be measured beside it."""
        there, absent = self.measurable, [case for case in self if case.why]
        if not there:
            why = absent[0].why if absent else "There is no such case."
            return Finding(findings.NOT_MEASURABLE, why)
        every, rest = f"{len(there)} cases", self.true + self.false
        if undecided := len(there) - rest:
            others = f"{'holds' if self.true else 'fails'} in {rest}"
            alike = rest and rest in (self.true, self.false)
            evidence += f" Undecided: {undecided} of {every}{f'; it {others}' if alike else ''}."
            counted = f"{others} of {every}, {undecided}" if alike else f"{undecided} of {every}"
            short = short or (f"{counted} undecided",)
        if absent:
            why = absent[0].why.rstrip(".")
            evidence += f" {len(absent)} of {len(self)} cases can't be measured: {why}."
        counted = f"in {self.true} of {every}{f', {undecided} undecided' if undecided else ''}"
        return Finding(word, evidence, span(there.numbers), where, short, counted)

    def of(self, **where: Any) -> "Cases":
        """Those with these values in `where`."""
        return Cases(case for case in self if where.items() <= case.where.items())

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
                seen = case.measured
                # Of counts there are no digits that an interval pays for.
                ends = () if seen.low == seen.high else (seen.low, seen.high)
                texts.append(f"{units.ratio(seen.value, *ends)} ({rest})")
            parts.append(f"{' over '.join(key)} {' to '.join(dict.fromkeys(texts))}")
        return "; ".join(parts)

    def tally(self, low: float, high: float) -> str:
        """How many gains meet a promise of `low` to `high`, keep to it, exceed it, and are a gain.

        Advice with a factor is a promise to who follows it. Less than its lower end breaks it. More
        than its upper end doesn't: nobody who got it was misled. Whoever reads it as a range finds
        how many keep to that beside the verdict. `docs/how-we-measure.md` says since when.
        """
        gains = self.numbers
        met = sum(gain.at_least(low) is True for gain in gains)
        text = f"{units.ratio(low)} or more is reached in {met} of {len(gains)} cases"
        if met and high > low:
            inside = sum(gain.within(low, high) is True for gain in gains)
            more = sum(gain.at_most(high) is False for gain in gains)
            text += f" (up to {units.ratio(high)} in {inside}, beyond it in {more})"
        if low > 1:
            faster = sum(gain.at_most(1.0) is False for gain in gains)
            slower = sum(gain.at_most(1.0) is True for gain in gains)
            text += f"; {faster} are faster at all, {slower} slower"
        return f"{text}."


def between(values: Iterable[float], printed: Callable[[float], str] = units.ratio) -> str:
    """The smallest and largest of many: `0.98× to 2.04×`; one alone stands alone."""
    values = list(values)
    if not values:
        return units.NOT_MEASURED
    low, high = printed(min(values)), printed(max(values))
    return low if low == high else f"{low} to {high}"


def _where(cases: Sequence[Case]) -> tuple[str, ...]:
    """The cases in which a claim is true, in as few words as they allow; then that in clauses.

    By one column or two if these decide it; else by name, if it is true or false of few; else by
    the column or two that leave least open: always, never, and partly. A case that is undecided
    counts as neither, so that nothing is said to be always so, or all but so, beside it.
    """
    columns = [name for name in cases[0].where if len({str(c.where[name]) for c in cases}) > 1]
    count = f"{sum(bool(case.outcome) for case in cases)} of {len(cases)} cases"
    ways: list[tuple[int, tuple[str, ...]]] = []
    for names in (*combinations(columns, 1), *combinations(columns, 2)):
        outcomes: dict[Place, list[bool | None]] = {}
        for case in cases:
            outcomes.setdefault(_place(case, names), []).append(case.outcome)
        kinds = _kinds(outcomes)
        held, other = kinds["always"], kinds["never"]
        if len(held) + len(other) == len(outcomes):
            if len(held) <= min(len(other), MOST_NAMED):
                named, *only = places.said(held, [*outcomes])
                return f"{named}, {count}", *only, count
            if len(other) <= MOST_NAMED:
                return f"except {places.said(other, [*outcomes])[0]}, in {count}", count
        open_ = sum(len(each) for each in outcomes.values() if len(set(each)) > 1)
        if any(0 < len(each) <= MOST_NAMED for each in (held, other)):
            ways.append((open_ + len(outcomes), _always_never_partly(kinds, count)))
    undecided = any(case.outcome is None for case in cases)
    for kind, outcome in [("", True)] if undecided else [("", True), ("except ", False)]:
        single = [_place(case, columns) for case in cases if case.outcome is outcome]
        if columns and len(single) <= MOST_NAMED:
            named, *only = places.said(single, [_place(case, columns) for case in cases])
            return f"{kind}{named}, {count}", *(only if outcome else ()), count
    return min(ways, key=lambda way: way[0])[1] if ways else (f"in {count}", count)


def _place(case: Case, names: Iterable[str]) -> Place:
    return tuple(str(case.where[name]) for name in names)


def _kinds(outcomes: dict[Place, list[bool | None]]) -> dict[str, list[Place]]:
    """The places in which a claim is always true, never, sometimes, and not known to be."""
    kinds: dict[str, list[Place]] = {"always": [], "never": [], "in part": [], "undecided": []}
    for place, each in outcomes.items():
        some = "in part" if any(each) else "never" if set(each) == {False} else "undecided"
        kinds["always" if all(each) else some].append(place)
    return kinds


def _always_never_partly(kinds: dict[str, list[Place]], count: str) -> tuple[str, ...]:
    """`always for a; never for b; in part for c; undecided for d; 4 of 9 cases in all`, and then in
    clauses; of too many places only their count, and no clause."""
    every, said = [place for each in kinds.values() for place in each], {}
    for kind, there in kinds.items():
        if there:
            few = len(there) <= MOST_NAMED
            named = places.said(there, every)[0] if few else f"for {len(there)} combinations"
            said[f"{kind} {named}"] = few
    return "; ".join([*said, f"{count} in all"]), *filter(said.get, said), count
