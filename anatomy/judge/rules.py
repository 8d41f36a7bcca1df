"""Rules: which columns of an experiment's rows follow from the others, declared where they follow.

A chapter's rules lie in its `judged.py`, or files named `..._judged.py`:

    @rule("accumulation.steps", columns=("memory_ratio",), source="peak_bytes over the control's")
    def memory(rows, known):
        ...
            yield place, {"memory_ratio": ...}

A rule is given the rows as they are kept, with what `anatomy.judge.comparisons` and the rules
before it found for them. It reads no column that it yields, and yields a column only for rows that
keep what it follows from: what it does not yield is read as it is stored.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from anatomy.judge.comparisons import Circumstances, Judged, Row
from anatomy.table import chapters

Judge = Callable[[Sequence[Row], Circumstances], Judged]


@dataclass(frozen=True)
class Rule:
    """What follows for the rows of some experiments."""

    experiments: tuple[str, ...]
    columns: tuple[str, ...]  # those that follow
    source: str  # what from, in words
    judge: Judge  # yields a row's place and its columns
    early: bool = False  # before it is decided who paces a row, and what occasions say of it


_declared: list[Rule] = []


def rule(
    *experiments: str, columns: Sequence[str], source: str, early: bool = False
) -> Callable[[Judge], Judge]:
    """Declare a function as a rule of `experiments`; rules of one module apply in its order."""

    def declare(judge: Judge) -> Judge:
        _declared.append(Rule(experiments, tuple(columns), source, judge, early))
        return judge

    return declare


@cache
def rules() -> tuple[Rule, ...]:
    """All rules that are declared."""
    chapters.load("judged")
    return tuple(_declared)
