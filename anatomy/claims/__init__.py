"""Claims: a statement with a source, and a function from recorded rows to a verdict.

    @claim(bench(dtype="fp16", size=2048))
    def transpose_costs_2_percent(fp16: Table) -> Finding: ...

The function's name is the claim's id with `_` for `-`; the statement is the seed's of that id, or
the first paragraph of the docstring of a claim with a `topic`. Its needs are declared, so that
pages know what they show without evaluating anything. Claims read recordings and need neither a GPU
nor torch.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from math import log
from typing import Any

from anatomy.claims import seeds
from anatomy.claims.cases import Cases
from anatomy.claims.findings import (
    ALL_WORDS,
    FAILS,
    HOLDS,
    IN_PART,
    INCONCLUSIVE,
    NOT_MEASURABLE,
    NOT_RECORDED,
    WORDS,
    Case,
    Finding,
    Measured,
    Unmeasured,
    answer,
)
from anatomy.claims.table import Table
from anatomy.record import recording
from anatomy.record.showing import Found, Showing
from anatomy.table import chapters
from anatomy.table.errors import AnatomyError, lookup

# The words of a verdict, and what claims are written with.
__all__ = ["ALL_WORDS", "FAILS", "HOLDS", "INCONCLUSIVE", "NOT_MEASURABLE", "NOT_RECORDED"]
__all__ += ["IN_PART", "WORDS", "Case", "Cases", "Claim", "Finding", "Measured"]
__all__ += ["Need", "Result", "Unmeasured", "all_claims", "answer", "claim", "evaluate"]


@dataclass(frozen=True)
class Need:
    """A recording that a claim reads: the experiment, and parameters other than the defaults."""

    name: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim(seeds.Statement):
    """A statement, and how it is put to recordings."""

    needs: tuple[Need, ...] = ()  # the recordings that it reads
    # From their tables, in this order, to a finding; None for a statement that was settled by
    # reading, or that nobody measures yet.
    judge: Callable[..., Finding] | None = None
    test: str = ""  # how it is tested: the next paragraph of the function's docstring

    @property
    def settled(self) -> Finding | None:
        """The finding of a reading, where no measurement can settle it."""
        if self.judge or not self.verdict:
            return None
        where = self.because if self.verdict == IN_PART else ""
        return Finding(self.verdict, f"By reading: {self.because}.", condition=where)


@dataclass(frozen=True)
class Result:
    """A claim as evaluated on one machine's recordings."""

    claim: Claim
    word: str  # the verdict, or `NOT_RECORDED`
    evidence: str
    found: tuple[Found, ...]  # the recordings it looked for
    measured: Measured | None = None  # the number to hold against the claimed one
    condition: str = ""  # where it holds, if only somewhere
    short: tuple[str, ...] = ()  # that in clauses, or what is undecided, as its finding has it
    counted: str = ""  # in how many cases it holds, as its finding has it
    machine: str = ""  # slug of the one shown, or of the CPU where all of it is from one

    @property
    def deviation(self) -> float | None:
        """The measured number over the nearest end of the claimed one: 1 where it lies within.

        None where there are not two positive numbers of one unit to compare.
        """
        claimed, seen = self.claim.claimed, self.measured
        comparable = claimed and seen and seen.unit == self.claim.unit
        if not comparable or min(*claimed, seen.value) <= 0:
            return None
        low, high = claimed
        return seen.value / min(max(seen.value, low), high)

    @property
    def distance(self) -> float:
        """How far off the claimed number is, in either direction; for sorting."""
        return abs(log(self.deviation)) if self.deviation else 0.0


_declared: dict[str, Claim] = {}


def claim(*needs: Need, topic: str = "", **details: Any):
    """Declare the decorated function to be a claim that reads `needs`, in its parameters' order.

    The first paragraph of its docstring says how it is tested. A claim of our own, which is none of
    the seed, has a `topic`: there the first paragraph is the statement, and the second says how it
    is tested. Its `details` are other fields of `seeds.Statement`, such as `place`. An AnatomyError
    is raised where a claim has neither a topic nor a statement of the seed, or both, and where its
    name is taken.
    """

    def declare(judge: Callable[..., Finding]) -> Callable[..., Finding]:
        name = judge.__name__.replace("_", "-")
        stated = seeds.statements().get(name)
        said = (inspect.getdoc(judge) or "").split("\n\n")
        if bool(topic) == bool(stated) or (topic and len(said) < 2):
            raise AnatomyError(
                f"The claim {name} needs one statement: one with that id in a statements.toml, or "
                "a `topic`, and a docstring that begins with it and then says how it is tested."
            )
        if name in _declared:
            raise AnatomyError(f"There are two claims called {name}. Rename one of them.")
        if topic:
            statement = " ".join(said.pop(0).split())
            stated = seeds.Statement(name, statement, topic=topic, **details)
        _declared[name] = Claim(**vars(stated), needs=needs, judge=judge, test=said[0])
        return judge

    return declare


def all_claims() -> dict[str, Claim]:
    """Every claim by id: those of the seed in the order of the ledger, then our own."""
    chapters.load("claims")
    return _of_the_seed() | _declared


@cache
def _of_the_seed() -> dict[str, Claim]:
    return {name: Claim(**vars(stated)) for name, stated in seeds.statements().items()}


def evaluate(showing: Showing, name: str) -> Result:
    """The verdict on a claim, from the recordings of one machine: the one shown, or where that
    lacks any, the published one that `Showing.find_together` chose, which the evidence then names.

    While `showing` is collecting, the recordings are noted and nothing is evaluated. A claim that
    is not there, or reads a row that its recording has not, is an UnknownName; a recording that
    can't be used, a RecordingError.
    """
    asked = lookup("claim", name.replace("_", "-"), all_claims())
    found = tuple(showing.find_together((need.name, need.params) for need in asked.needs))
    if showing.collecting:
        return Result(asked, NOT_RECORDED, "", found)
    whose = (showing.machine, showing.published, showing.borrowing, showing.here is None)
    key = (*whose, "claim", asked.name)
    return showing.once(key, lambda: _result(asked, found, showing.machine))


def _result(asked: Claim, found: tuple[Found, ...], shown: str) -> Result:
    result = _judged(asked, found)
    evidence = result.evidence
    # What several GPUs of a machine did belongs to that machine.
    machines = {recording.one_of(each.recording.machine) for each in found if each.recording}
    machine = machines.pop() if len(machines) == 1 else shown
    if borrowed := [each for each in found if each.instead_of]:
        machine = next(recording.one_of(e.recording.machine) for e in borrowed if e.recording)
        lacks = sum(each.lacking for each in borrowed)
        evidence += f" Judged on {machine}: {shown} lacks {lacks} of {len(found)} recordings."
    return replace(result, evidence=evidence, machine=machine)


def _judged(asked: Claim, found: tuple[Found, ...]) -> Result:
    """What the recordings come to: a finding, or why there is none."""
    if finding := asked.settled:
        return Result(asked, found=found, **vars(finding))
    if missing := sum(each.recording is None for each in found):
        evidence = f"{missing} of the {len(found)} recordings that it reads are missing."
        return Result(asked, NOT_RECORDED, evidence, found)
    try:
        tables = [Table(each.recording.rows, each.params, each.recording.data) for each in found]
        finding = asked.judge(*tables)
    except Unmeasured as reason:
        return Result(asked, NOT_MEASURABLE, str(reason), found)
    except Exception as error:
        if not all(each.freshness.current for each in found):
            evidence = "The recordings that it reads are too old for it."
            return Result(asked, NOT_RECORDED, evidence, found)
        if isinstance(error, AnatomyError):
            raise
        raise AnatomyError(
            f"The claim {asked.name} could not be evaluated: {type(error).__name__}: {error}."
        ) from error
    return Result(asked, found=found, **vars(finding))
