"""The seed's figures and statements, as data: cited, never measured here."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from anatomy.table import chapters, units
from anatomy.table.errors import AnatomyError, lookup

TABLE = Path(__file__).with_name("seeds.toml")
# Statements that no chapter measures yet, or ever.
BY_READING = Path(__file__).with_name("statements.toml")
# Topics of statements about the documents themselves: counts of days, hours, fences of code.
TRIVIA = ("the suite", "learning")
# What each statement of the seed has in its file.
GIVEN = ("says", "source", "lines", "row", "topic")


@dataclass(frozen=True)
class Figure:
    """One time that the seed published."""

    variant: str
    seconds: float  # of one iteration
    ratio: float  # the same over the run's contiguous variant
    gpu: str
    place: str  # where it stands, in words
    text: str  # the time as the seed prints it, with its four decimals


@dataclass(frozen=True)
class Run:
    """One run of the seed's benchmark, such as `fp16-2048`."""

    dtype: str  # as the seed labels it
    size: int  # side of the matrices
    ops: Mapping[str, Mapping[str, Any]]  # the operations that it times, and how it has them


@dataclass(frozen=True)
class Statement:
    """What is claimed, by the seed or by us, in our words."""

    name: str  # its id, such as `slice-doubles-fp16`
    statement: str
    place: str = ""  # where it stands, in words, or a paper, a page; none of a claim of our own
    row: int | None = None  # in the ledger; of the seed's statements alone
    topic: str = ""
    number: str = ""  # the number that was claimed, as its source prints it
    claimed: tuple[float, float] | None = None  # its lower and upper end, equal for a single one
    unit: str = ""  # of `claimed`, one of `findings.UNITS`
    measures: str = ""  # what the measured number is: `time of a view / of its control`
    verdict: str | None = None  # of a reading, where no measurement can settle it, and its reason
    because: str = ""

    @property
    def trivia(self) -> bool:
        """Whether it is about the documents themselves, and not about what a GPU does."""
        return self.topic in TRIVIA


@cache
def statements() -> dict[str, Statement]:
    """All statements of the seed by id, in the order of the ledger."""
    return read([BY_READING, *chapters.files("statements.toml")])


def read(files: Iterable[Path]) -> dict[str, Statement]:
    """The statements of some files by id, in the order of the ledger; all complete, none twice."""
    by_name, by_row = {}, {}
    for file in files:
        for name, entry in tomllib.loads(file.read_text(encoding="utf-8")).items():
            # The last two names of a file tell its chapter.
            place = f"{'/'.join(file.parts[-2:])}: the statement {name}"
            if lacks := [field for field in GIVEN if field not in entry]:
                raise AnatomyError(f"{place} lacks {', '.join(lacks)}.")
            stated = _statement(name, entry)
            if name in by_name:
                raise AnatomyError(f"{place} is stated twice.")
            if stated.row in by_row:
                other = by_row[stated.row].name
                raise AnatomyError(f"{place} has row {stated.row}, as {other} has already.")
            by_name[name] = by_row[stated.row] = stated
    return {each.name: each for _, each in sorted(by_row.items())}


def _statement(name: str, entry: dict[str, Any]) -> Statement:
    """A statement from its entry in a file: `source` is a document of the seed, `lines` its."""
    statement, source, lines = entry.pop("says"), entry.pop("source"), entry.pop("lines")
    if claimed := entry.pop("claimed", None):
        entry["claimed"] = (claimed[0], claimed[-1])
    return Statement(name, statement, place_in_words(source, lines[0]), **entry)


def place_in_words(source: str, line: int) -> str:
    """Where a line stands, as a reader is told it: the document, and what the part is about."""
    document = lookup("document of the seed", source, _table()["documents"])
    begun = [about for first, about in _table()["parts"].get(source, ()) if first <= line]
    return f"{document}, on {begun[-1]}" if begun else document


@cache
def runs() -> dict[str, Run]:
    """The seed's runs by name."""
    found = {}
    for name, entry in _table()["figures"]["run"].items():
        ops = {op: timed for op, timed in entry.items() if isinstance(timed, dict)}
        found[name] = Run(entry["dtype"], entry["size"], ops)
    return found


def run(name: str) -> Run:
    """The run called `name`; an UnknownName if there is none."""
    return lookup("run of the seed", name, runs())


def figures(run_name: str, op: str) -> list[Figure]:
    """The seed's times of one operation in one run, in the order in which it prints them."""
    entry = lookup(f"operation of the seed's run {run_name}", op, run(run_name).ops)
    cited = _table()["figures"]
    control = entry["ms"]["contiguous"]
    found = []
    for line, (variant, ms) in enumerate(entry["ms"].items(), entry["line"]):
        place = place_in_words(cited["source"], line)
        text = units.format_value(ms / 1e3, "ms.4")
        found.append(Figure(variant, ms / 1e3, ms / control, cited["gpu"], place, text))
    return found


def figure(run_name: str, op: str, variant: str) -> Figure:
    """One of the seed's times; an UnknownName if there is no such run, operation or variant."""
    found = {each.variant: each for each in figures(run_name, op)}
    return lookup("variant of the seed", variant, found)


@cache
def _table() -> dict:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))
