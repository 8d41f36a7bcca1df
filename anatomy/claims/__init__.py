"""Claims: a statement with a source, and a function from recorded rows to a verdict.

    @claim(bench(dtype="fp16", size=2048))
    def transpose_costs_2_percent(fp16: Table) -> Finding: ...

The function's name is the claim's id with `_` for `-`; the statement is the seed's of that id, or
the `statement` given. What a claim needs is declared, so that pages know what they show without
evaluating anything. Claims read recordings and need neither a GPU nor torch.
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from anatomy.claims import seeds
from anatomy.claims.table import Table
from anatomy.errors import AnatomyError, UnknownName
from anatomy.showing import Found, Showing

HOLDS = "holds"
FAILS = "fails"
ONLY_WHERE = "holds only where"
INCONCLUSIVE = "inconclusive"
NOT_MEASURABLE = "not measurable here"
WORDS = (HOLDS, FAILS, ONLY_WHERE, INCONCLUSIVE, NOT_MEASURABLE)
# How many places a verdict names before it only counts them.
MOST_NAMED = 4
# No verdict: a recording that the claim needs is missing.
NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class Need:
    """A recording that a claim reads: the experiment, and parameters other than the defaults."""

    name: str
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """What a claim found in its recordings.

    Attributes:
        word: The verdict, one of `WORDS`.
        evidence: What was seen, as a clause with its numbers; computed, never typed.
    """

    word: str
    evidence: str

    def __post_init__(self) -> None:
        if self.word not in WORDS:
            raise UnknownName("verdict", self.word, WORDS)


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes:
        name: Its id, such as `slice-doubles-fp16`.
        statement: What is claimed.
        place: File and lines of the source, or an empty text for a claim of our own.
        row: Its row in the ledger, or None.
        needs: The recordings that it reads.
        judge: From their tables, in the order of `needs`, to a finding; None for a statement that
            was settled by reading.
        settled: The finding of a reading.
        test: How it is tested: the first paragraph of the function's docstring.
    """

    name: str
    statement: str
    place: str
    row: int | None
    needs: tuple[Need, ...] = ()
    judge: Callable[..., Finding] | None = None
    settled: Finding | None = None
    test: str = ""


@dataclass(frozen=True)
class Result:
    """A claim as evaluated on one machine's recordings.

    Attributes:
        claim: The claim.
        word: The verdict, or `NOT_RECORDED`.
        evidence: What was seen.
        found: The recordings it looked for.
    """

    claim: Claim
    word: str
    evidence: str
    found: tuple[Found, ...]


_declared: dict[str, Claim] = {}


def claim(*needs: Need, statement: str | None = None):
    """Declare the decorated function to be a claim that reads the recordings `needs`.

    Args:
        needs: The recordings, in the order of the function's parameters.
        statement: What is claimed, where it is not a statement of the seed.

    Raises:
        AnatomyError: There is neither a statement nor one of the seed with the function's name,
            or the name is taken.
    """

    def declare(judge: Callable[..., Finding]) -> Callable[..., Finding]:
        name = judge.__name__.replace("_", "-")
        said = seeds.statements().get(name)
        if (statement is None) == (said is None):
            raise AnatomyError(
                f"The claim {name} needs one statement: one of claims/seeds.toml with that id, or "
                "the argument `statement`."
            )
        if name in _declared:
            raise AnatomyError(f"There are two claims called {name}. Rename one of them.")
        _declared[name] = Claim(
            name,
            statement or said.says,
            said.place if said else "",
            said.row if said else None,
            needs,
            judge,
            test=(judge.__doc__ or "").partition("\n\n")[0].strip(),
        )
        return judge

    return declare


def all_claims() -> dict[str, Claim]:
    """Every claim by id: those of the seed in the order of the ledger, then our own."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    found = {}
    for name, said in seeds.statements().items():
        if name in _declared:
            found[name] = _declared[name]
        elif said.verdict:
            reading = Finding(said.verdict, f"By reading: {said.because}.")
            found[name] = Claim(name, said.says, said.place, said.row, settled=reading)
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
    if found_claim.settled:
        return Result(found_claim, found_claim.settled.word, found_claim.settled.evidence, ())
    missing = sum(each.recording is None for each in found)
    if missing:
        evidence = f"{missing} of the {len(found)} recordings that it reads are missing."
        return Result(found_claim, NOT_RECORDED, evidence, found)
    tables = [Table(each.recording.data["rows"], each.params) for each in found]
    try:
        finding = found_claim.judge(*tables)
    except Exception as error:
        if not all(each.freshness.current for each in found):
            evidence = "The recordings that it reads are too old for it."
            return Result(found_claim, NOT_RECORDED, evidence, found)
        if isinstance(error, AnatomyError):
            raise
        told = f"{type(error).__name__}: {error}"
        raise AnatomyError(f"The claim {name} could not be evaluated: {told}.") from error
    return Result(found_claim, finding.word, finding.evidence, found)


@dataclass(frozen=True)
class Case:
    """One of several cases that a claim is about.

    Attributes:
        where: What tells it apart, such as {"op": "matmul", "dtype": "fp16"}.
        outcome: Whether the claim is true of it; None where that is not decided.
    """

    where: dict[str, Any]
    outcome: bool | None


def across(cases: Sequence[Case], evidence: str) -> Finding:
    """One verdict over several cases.

    Args:
        cases: They agree on the keys of `where`.
        evidence: What was seen in all of them.

    Returns:
        `holds` or `fails` if all decided cases agree, `inconclusive` if none is decided, and else
        `holds only where`, saying where as shortly as the cases allow. Undecided cases are counted.
    """
    decided = [case for case in cases if case.outcome is not None]
    true = sum(case.outcome for case in decided)
    undecided = len(cases) - len(decided)
    beside = f" {undecided} of {len(cases)} cases are undecided." if undecided else ""
    if not decided:
        return Finding(INCONCLUSIVE, evidence + beside)
    if 0 < true < len(decided):
        return Finding(ONLY_WHERE, f"{evidence} It holds {_where(decided)}.{beside}")
    return Finding(HOLDS if true else FAILS, evidence + beside)


def _where(cases: Sequence[Case]) -> str:
    """The cases in which a claim is true: by one column or two if these decide it, else counted."""
    columns = [name for name in cases[0].where if len({str(c.where[name]) for c in cases}) > 1]
    true = sum(bool(case.outcome) for case in cases)
    for names in (*combinations(columns, 1), *combinations(columns, 2)):
        outcomes: dict[tuple, set] = {}
        for case in cases:
            key = tuple(str(case.where[name]) for name in names)
            outcomes.setdefault(key, set()).add(case.outcome)
        if all(len(each) == 1 for each in outcomes.values()):
            held = [" ".join(key) for key, each in outcomes.items() if True in each]
            other = [" ".join(key) for key, each in outcomes.items() if False in each]
            if len(held) <= min(len(other), MOST_NAMED):
                return f"for {', '.join(held)}, {true} of {len(cases)} cases"
            if len(other) <= MOST_NAMED:
                return f"except for {', '.join(other)}, in {true} of {len(cases)} cases"
    return f"in {true} of {len(cases)} cases"
