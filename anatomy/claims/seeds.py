"""The seed's figures and statements, as data: cited, never measured here."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from anatomy.table import units
from anatomy.table.errors import lookup

TABLE = Path(__file__).with_name("seeds.toml")
STATEMENTS = Path(__file__).with_name("statements")


@dataclass(frozen=True)
class Figure:
    """One time that the seed published.

    Attributes:
        run: Name of the run, such as `fp16-2048`.
        op: Operation, by its name here.
        variant: Layout variant.
        seconds: Time of one iteration, in seconds.
        ratio: The same over the run's contiguous variant.
        gpu: The card.
        place: File and line of the seed.
        text: The time as the seed prints it, with its four decimals.
    """

    run: str
    op: str
    variant: str
    seconds: float
    ratio: float
    gpu: str
    place: str
    text: str


@dataclass(frozen=True)
class Run:
    """One run of the seed's benchmark.

    Attributes:
        dtype: Number format, as the seed labels it.
        size: Side of the matrices.
        ops: Names of the operations that it times.
    """

    dtype: str
    size: int
    ops: tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """What is claimed, by the seed or by us, in our words.

    Attributes:
        name: Its id, such as `slice-doubles-fp16`.
        statement: What is claimed.
        place: Where: file and lines of the seed, a paper, a page of documentation; empty for a
            claim of our own.
        row: Its row in the ledger; None for what is none of the seed's.
        topic: What it is about.
        number: The number that was claimed, as its source prints it; may be empty.
        claimed: Lower and upper end of that number, equal for a single one; None without one.
        unit: Of `claimed`, one of `findings.UNITS`.
        measures: What the measured number is, in a few words: `time of a view / of its control`.
        awaits: The pages that will measure it, where no claim does.
        verdict: The verdict of a reading, where no measurement can settle it; else None.
        because: The reason for that verdict.
    """

    name: str
    statement: str
    place: str = ""
    row: int | None = None
    topic: str = ""
    number: str = ""
    claimed: tuple[float, float] | None = None
    unit: str = ""
    measures: str = ""
    awaits: str = ""
    verdict: str | None = None
    because: str = ""


@cache
def statements() -> dict[str, Statement]:
    """All statements of the seed by id, in the order of the ledger."""
    found = []
    for source in _table()["source"].values():
        text = (STATEMENTS / f"{source['statements']}.toml").read_text(encoding="utf-8")
        for name, entry in tomllib.loads(text).items():
            statement, lines = entry.pop("says"), entry.pop("lines")
            if claimed := entry.pop("claimed", None):
                entry["claimed"] = (claimed[0], claimed[-1])
            found.append(Statement(name, statement, f"{source['file']}:{_lines(lines)}", **entry))
    return {each.name: each for each in sorted(found, key=lambda each: each.row)}


def _lines(lines: list[int]) -> str:
    """`56`, `7-12`, or `325, 347, 349`."""
    return "-".join(map(str, lines)) if len(lines) < 3 else ", ".join(map(str, lines))


@cache
def runs() -> dict[str, Run]:
    """The seed's runs by name."""
    found = {}
    for name, entry in _table()["figures"]["run"].items():
        ops = tuple(op for op, value in entry.items() if isinstance(value, dict))
        found[name] = Run(entry["dtype"], entry["size"], ops)
    return found


def run(name: str) -> Run:
    """The run called `name`.

    Raises:
        UnknownName: There is none.
    """
    return lookup("run of the seed", name, runs())


def figures(run_name: str, op: str) -> list[Figure]:
    """The seed's times of one operation in one run, in the order in which it prints them.

    Raises:
        UnknownName: There is no such run, or it does not time that operation.
    """
    ops, cited = run(run_name).ops, _table()["figures"]
    timed = {name: cited["run"][run_name][name] for name in ops}
    entry = lookup(f"operation of the seed's run {run_name}", op, timed)
    file = _table()["source"][cited["source"]]["file"]
    control = entry["ms"]["contiguous"]
    return [
        Figure(
            run_name,
            op,
            variant,
            ms / 1e3,
            ms / control,
            cited["gpu"],
            f"{file}:{line}",
            units.format_value(ms / 1e3, "ms.4"),
        )
        for line, (variant, ms) in enumerate(entry["ms"].items(), entry["line"])
    ]


def figure(run_name: str, op: str, variant: str) -> Figure:
    """One of the seed's times.

    Raises:
        UnknownName: There is no such run, operation or variant.
    """
    found = {each.variant: each for each in figures(run_name, op)}
    return lookup("variant of the seed", variant, found)


@cache
def _table() -> dict:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))
