"""Claims: a statement with a source, and a function from recorded rows to a verdict.

    @claim(bench(dtype="fp16", size=2048))
    def transpose_costs_2_percent(fp16: Table) -> Finding: ...

The function's name is the claim's id with `_` for `-`; the statement is the seed's of that id, or
the `statement` given. What a claim needs is declared, so that pages know what they show without
evaluating anything. Claims read recordings and need neither a GPU nor torch.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from math import log
from typing import Any

from anatomy.claims import seeds
from anatomy.claims.findings import (
    ALL_WORDS,
    FAILS,
    HOLDS,
    INCONCLUSIVE,
    NOT_MEASURABLE,
    NOT_RECORDED,
    NOT_YET,
    ONLY_WHERE,
    WORDS,
    Case,
    Finding,
    Measured,
    Unmeasured,
    across,
    within,
)
from anatomy.claims.table import Table
from anatomy.errors import AnatomyError, UnknownName
from anatomy.showing import Found, Showing

__all__ = [
    "ALL_WORDS",
    "FAILS",
    "HOLDS",
    "INCONCLUSIVE",
    "NOT_MEASURABLE",
    "NOT_RECORDED",
    "NOT_YET",
    "ONLY_WHERE",
    "WORDS",
    "Case",
    "Claim",
    "Finding",
    "Measured",
    "Need",
    "Result",
    "across",
    "all_claims",
    "claim",
    "evaluate",
    "get",
    "within",
]


@dataclass(frozen=True)
class Need:
    """A recording that a claim reads: the experiment, and parameters other than the defaults."""

    name: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes:
        name: Its id, such as `slice-doubles-fp16`.
        statement: What is claimed.
        place: Where: file and lines of the seed, a paper, a page of documentation; empty for a
            claim of our own.
        row: Its row in the ledger, or None.
        needs: The recordings that it reads.
        judge: From their tables, in the order of `needs`, to a finding; None for a statement that
            was settled by reading, or that nobody measures yet.
        settled: The finding of a reading.
        test: How it is tested: the first paragraph of the function's docstring.
        topic: What it is about.
        number: The number that was claimed, as its source prints it; may be empty.
        claimed: Lower and upper end of that number, equal for a single one; None without one.
        unit: Of `claimed`, one of `findings.UNITS`.
        measures: What the measured number is, in a few words; empty if there is none.
        awaits: The page that will measure it, where nothing does yet.
    """

    name: str
    statement: str
    place: str
    row: int | None
    needs: tuple[Need, ...] = ()
    judge: Callable[..., Finding] | None = None
    settled: Finding | None = None
    test: str = ""
    topic: str = ""
    number: str = ""
    claimed: tuple[float, float] | None = None
    unit: str = ""
    measures: str = ""
    awaits: str = ""


@dataclass(frozen=True)
class Result:
    """A claim as evaluated on one machine's recordings.

    Attributes:
        claim: The claim.
        word: The verdict, or `NOT_RECORDED`, or `NOT_YET`.
        evidence: What was seen.
        found: The recordings it looked for.
        measured: The number to hold against the claimed one.
        condition: Where it holds, if only somewhere.
        machine: Slug of the machine: the one shown, or the CPU where all of it is from one.
    """

    claim: Claim
    word: str
    evidence: str
    found: tuple[Found, ...]
    measured: Measured | None = None
    condition: str = ""
    machine: str = ""

    @property
    def deviation(self) -> float | None:
        """The measured number over the nearest end of the claimed one: 1 where it lies within.

        None where there are not two positive numbers of one unit to compare.
        """
        claimed, seen = self.claim.claimed, self.measured
        if claimed is None or seen is None or seen.unit != self.claim.unit:
            return None
        low, high = claimed
        if low <= 0 or seen.value <= 0:
            return None
        return seen.value / min(max(seen.value, low), high)

    @property
    def distance(self) -> float:
        """How far off the claimed number is, in either direction; for sorting."""
        return abs(log(self.deviation)) if self.deviation else 0.0


_declared: dict[str, Claim] = {}


def claim(*needs: Need, statement: str | None = None, **told: Any):
    """Declare the decorated function to be a claim that reads the recordings `needs`.

    Args:
        needs: The recordings, in the order of the function's parameters.
        statement: What is claimed, where it is not a statement of the seed.
        told: For such a claim `place` (a paper, a page of documentation), `topic`, `number`,
            `claimed`, `unit` and `measures`, as in `Claim`.

    Raises:
        AnatomyError: There is neither a statement nor one of the seed with the function's name,
            or the name is taken.
    """

    def declare(judge: Callable[..., Finding]) -> Callable[..., Finding]:
        name = judge.__name__.replace("_", "-")
        said = seeds.statements().get(name)
        if (statement is None) == (said is None):
            raise AnatomyError(
                f"The claim {name} needs one statement: one of claims/statements/ with that id, or "
                "the argument `statement`."
            )
        if name in _declared:
            raise AnatomyError(f"There are two claims called {name}. Rename one of them.")
        test = (judge.__doc__ or "").partition("\n\n")[0].strip()
        if said:
            _declared[name] = _of(said, needs=needs, judge=judge, test=test)
        else:
            own = {"place": "", "row": None} | told
            _declared[name] = Claim(name, statement, needs=needs, judge=judge, test=test, **own)
        return judge

    return declare


def _of(said: seeds.Statement, **more: Any) -> Claim:
    """The claim that a statement of the seed makes."""
    shared = {
        name: getattr(said, name)
        for name in ("place", "row", "topic", "number", "claimed", "unit", "measures", "awaits")
    }
    return Claim(said.name, said.says, **shared | more)


def all_claims() -> dict[str, Claim]:
    """Every claim by id: those of the seed in the order of the ledger, then our own."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    found = {}
    for name, said in seeds.statements().items():
        if name in _declared:
            found[name] = _declared[name]
        elif said.verdict:
            where = said.because if said.verdict == ONLY_WHERE else ""
            reading = Finding(said.verdict, f"By reading: {said.because}.", condition=where)
            found[name] = _of(said, settled=reading)
        else:
            found[name] = _of(said)
    return found | {name: each for name, each in _declared.items() if name not in found}


def get(name: str) -> Claim:
    """The claim called `name`; `_` may stand for `-`.

    Raises:
        UnknownName: There is none.
    """
    known = all_claims()
    plain = name.replace("_", "-")
    if plain not in known:
        raise UnknownName("claim", name, known)
    return known[plain]


def evaluate(showing: Showing, name: str) -> Result:
    """The verdict on a claim, from the recordings of the machine shown.

    While `showing` is collecting, the recordings are noted and nothing is evaluated.

    Raises:
        UnknownName: There is no such claim, or it reads a row that its recording has not.
        RecordingError: A recording can't be used.
    """
    found_claim = get(name)
    found = tuple(showing.find(need.name, **need.params) for need in found_claim.needs)
    measured_on = {
        each.recording.machine if each.on_cpu else showing.machine
        for each in found
        if each.recording
    }
    machine = measured_on.pop() if len(measured_on) == 1 else showing.machine

    def result(word: str, evidence: str, seen: Finding | None = None) -> Result:
        told = (seen.measured, seen.condition) if seen else (None, "")
        return Result(found_claim, word, evidence, found, *told, machine)

    if settled := found_claim.settled:
        return result(settled.word, settled.evidence, settled)
    if found_claim.judge is None:
        return result(NOT_YET, f"To be measured with the pages on {found_claim.awaits}.")
    missing = sum(each.recording is None for each in found)
    if missing:
        evidence = f"{missing} of the {len(found)} recordings that it reads are missing."
        return result(NOT_RECORDED, evidence)
    try:
        finding = found_claim.judge(*(Table.of(each.recording, each.params) for each in found))
    except Unmeasured as reason:
        return result(NOT_MEASURABLE, str(reason))
    except Exception as error:
        if not all(each.freshness.current for each in found):
            return result(NOT_RECORDED, "The recordings that it reads are too old for it.")
        if isinstance(error, AnatomyError):
            raise
        told = f"{type(error).__name__}: {error}"
        raise AnatomyError(f"The claim {name} could not be evaluated: {told}.") from error
    return result(finding.word, finding.evidence, finding)
