"""Every column of every table, declared once: what it is called, its unit, and what it means. A
declaration stands in a TOML file. Those that all experiments share lie in `table/declared/`; what
one topic alone returns lies in the topic's own file, so that a new topic touches no file that is
there. What is not written has the field's default in `Column`, or follows from the name. A name has
one meaning. A declaration that holds for a few experiments alone, because another topic had used
the same word first, lists them in `of`; a test finds every other that is there twice."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from anatomy.table.errors import AnatomyError

PACKAGE = Path(__file__).resolve().parent.parent
SHARED = "table/declared/*.toml"
# A topic is what its experiments' names begin with. Its file is called by it, or lies in the folder
# of a chapter that is; a chapter of several topics has a folder with a file for each.
TOPICS = ("chapters/*/columns.toml", "chapters/*/columns/*.toml")

NUMBER, COUNT, TEXT, FLAG, LIST = "number", "count", "text", "flag", "list"
KINDS = (NUMBER, COUNT, TEXT, FLAG, LIST)
# Ending of a name -> the unit of what it holds. The design says: a unit ends the name.
ENDINGS = {"_s": "s", "_bytes": "B", "_flops": "FLOP", "_mhz": "MHz", "_w": "W", "_c": "°C"}
ENDINGS["_share"] = "1"
WHOLE = {"bytes": "B", "flops": "FLOP"}  # names that are a unit's alone
COUNTED = ("B", "FLOP")  # bytes and operations are counted, and so whole
PERCENT, TIMES = "%", "x"
PER_SECOND = "FLOP/s or B/s"  # the row says which
ALWAYS, TERMINAL = "always", "terminal"


@dataclass(frozen=True)
class Column:
    """One column as declared."""

    name: str  # what rows call it
    meaning: str = ""  # what its values say, in a sentence; empty where nobody declared it
    topic: str = ""  # the file that declares it
    kind: str = NUMBER  # one of `KINDS`; a count is a whole number
    unit: str = ""  # s, B, FLOP, FLOP/s, B/s, MHz, W, °C, 1 for ratios and shares, or none
    heading: str = ""  # what it is called over a column of a table and beside an axis
    # Whether it tells rows of one table apart: a coordinate, and not a result. Rows of several
    # processes are matched by it.
    identifies: bool = False
    # Whether rows that belong together by their coordinates may be merged or compared only where
    # they agree in it, too.
    must_match: bool = False
    judged: bool = False  # whether it follows from other columns, and is computed on reading
    interval: tuple[str, ...] = ()  # the columns of its lower and upper end
    spread: str = ""  # what lies between those ends, where that is no 95% interval
    # How its values from several processes become one; see `anatomy.judge.merging`. Empty keeps a
    # value that all agree in, and takes the median of numbers that differ.
    merge: str = ""
    above_zero: bool = False  # whether it stands for something measured that is always positive
    words: tuple[str, ...] = ()  # the only texts that it may hold; empty allows any
    shown: str = ""  # how a number without unit reads: `x` as 1.99×, `%` as 81 %
    # Where tables leave it out unless asked for it, because another column shows it or readers
    # have no use for it: `always`, in the `terminal`, or nowhere (empty).
    aside: str = ""
    of: tuple[str, ...] = ()  # the only experiments in which it means this; empty for all
    of_recording: bool = False  # whether exports write it, from the recording, into each row


# What exports tell of a column, after its name, its topic and its experiments.
TOLD = ("kind", "unit", "heading", "meaning", "words", "interval")
TOLD += ("identifies", "must_match", "judged")
# What a file may say of a column; its name is the table's, and its topic the file's.
GIVEN = {each.name for each in fields(Column)} - {"name", "topic"}


@cache
def declared(package: Path = PACKAGE) -> tuple[Column, ...]:
    """All columns that a package declares, those that topics share first, in the order of files."""
    files = [(file, "") for file in sorted(package.glob(SHARED))]
    for pattern in TOPICS:
        for file in sorted(package.glob(pattern)):
            files.append((file, file.parent.name if file.stem == "columns" else file.stem))
    return tuple(column for file, topic in files for column in _read(file, topic, package))


def _read(file: Path, topic: str, package: Path) -> list[Column]:
    try:
        entries = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AnatomyError(f"{file.relative_to(package)} can't be read: {error}.") from None
    for name, entry in entries.items():
        if unknown := sorted(set(entry) - GIVEN):
            raise AnatomyError(
                f"{file.relative_to(package)}: the column {name} has the field "
                f"{', '.join(unknown)}; a column has {', '.join(sorted(GIVEN))}."
            )
    return [_made(name, topic, entry) for name, entry in entries.items()]


def _made(name: str, topic: str, entry: Mapping[str, Any]) -> Column:
    """A column with what its name says of it filled in."""
    given = {key: tuple(x) if isinstance(x, list) else x for key, x in entry.items()}
    if given.get("kind", NUMBER) in (NUMBER, COUNT, LIST):
        given.setdefault("unit", unit_of(name))
    given.setdefault("kind", COUNT if given.get("unit") in COUNTED else NUMBER)
    if name.endswith("_share"):
        given.setdefault("shown", PERCENT)
    given.setdefault("heading", _plain(name))
    return Column(name=name, topic=topic, **given)


def unit_of(name: str) -> str:
    """The unit that a name ends in; empty where it ends in none."""
    if name in WHOLE:
        return WHOLE[name]
    return next((unit for end, unit in ENDINGS.items() if name.endswith(end)), "")


def _plain(name: str) -> str:
    """A name as words, without the unit that ends it."""
    for end, unit in ENDINGS.items():
        if unit not in ("1", "FLOP") and len(name) > len(end) + 1:
            name = name.removesuffix(end)
    return name.replace("_", " ")


@cache
def _by_name() -> dict[str, Column]:
    """Column by name: of several meanings, the one that holds wherever no other is declared."""
    found: dict[str, Column] = {}
    for column in sorted(declared(), key=lambda each: bool(each.of)):
        found.setdefault(column.name, column)
    return found


@cache
def column(name: str, experiment: str | None = None) -> Column:
    """What is declared of a column, for an `experiment` if given, or else what its name says."""
    if experiment is not None and (found := of_experiment(experiment).get(name)):
        return found
    return _by_name().get(name) or _made(name, "", {})


@cache
def identifies(name: str) -> bool:
    """Whether a column tells rows apart in some experiment; one that nobody declared may."""
    meanings = [each for each in declared() if each.name == name]
    return not meanings or any(each.identifies for each in meanings)


@cache
def of_experiment(experiment: str) -> Mapping[str, Column]:
    """The columns that an experiment may return: those that all share and its topic's, by name."""
    topic = experiment.partition(".")[0]
    found = {}
    for each in sorted(declared(), key=lambda each: bool(each.of)):
        if each.topic in ("", topic) and (not each.of or experiment in each.of):
            found[each.name] = each
    return found


def undeclared(experiment: str, names: Iterable[str]) -> list[str]:
    """Those of `names` that nobody declared for this experiment, in order."""
    known = of_experiment(experiment)
    return [name for name in dict.fromkeys(names) if name not in known]


def described(column: Column) -> dict[str, Any]:
    """A declaration as a row of a table: what a reader of exported rows needs to know."""
    told = {"column": column.name, "topic": column.topic, "experiments": column.of}
    told |= {name: getattr(column, name) for name in TOLD}
    return {n: ", ".join(each) if isinstance(each, tuple) else each for n, each in told.items()}


@cache
def must_match() -> tuple[str, ...]:
    """Columns in which rows of the same coordinates must agree to be merged or compared. A name of
    several meanings is one of them only if each of these says so."""
    free = {each.name for each in declared() if not each.must_match}
    return tuple(dict.fromkeys(each.name for each in declared() if each.name not in free))


def aside(*where: str) -> set[str]:
    """Columns that tables leave out: ends of intervals, and those that lie aside in `where`."""
    ends = {end for each in declared() for end in each.interval}
    return ends | {each.name for each in declared() if each.aside in where}


@cache
def intervals() -> Mapping[str, tuple[str, str]]:
    """Column -> the columns of its 95 % interval."""
    return {each.name: each.interval for each in declared() if each.interval}
