"""What a recording must hold (`check`), and what would tell a stranger who measured, where, or on
which card (`scrub`). Both raise ValueError with the place and the reason alone."""

import getpass
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any

from anatomy.judge.occasions import FIGURES
from anatomy.table import columns
from anatomy.table.columns import Column

SCHEMA = 1  # Schema 1, 2026-11: the first

NUMBER, TEXT, FLAG, TABLE, LIST = "a number", "text", "true or false", "an object", "a list"
KINDS = {NUMBER: int | float, TEXT: str, FLAG: bool, TABLE: dict, LIST: list}

# Field -> (kind, whether it may be null). A dot leads into an object.
FIELDS = {
    "experiment": (TEXT, False),
    "params": (TABLE, False),
    "machine": (TABLE, False),
    "machine.slug": (TEXT, False),
    "machine.gpu": (TEXT, True),
    "machine.card": (TEXT, True),
    "machine.driver": (TEXT, True),
    "software": (TABLE, False),
    "software.torch": (TEXT, True),
    "software.cuda": (TEXT, True),
    "method": (TABLE, False),
    "code": (TABLE, False),
    "code.hash": (TEXT, False),
    "code.files": (LIST, False),
    "code.commit": (TEXT, True),
    "code.dirty": (FLAG, True),
    "started_at": (TEXT, False),
    "seconds": (NUMBER, False),
    "conditions": (TABLE, True),
    "noise_floor": (TABLE, False),
    "rows": (LIST, False),
    "warnings": (LIST, False),
}

# What is kept of an earlier occasion, as of the recording's own; `figures` has a list of numbers or
# nulls for each row. There may be `MOST` of them.
OCCASION = {
    "started_at": (TEXT, False),
    "card": (TEXT, True),
    "cpu": (TEXT, True),
    "driver": (TEXT, True),
    "torch": (TEXT, True),
    "commit": (TEXT, True),
    "seconds": (NUMBER, False),
    "figures": (TABLE, False),
}
MOST = 4

# Kind of a declared column -> what its values must be. Any may be null or absent.
OF_KIND = {columns.NUMBER: NUMBER, columns.COUNT: NUMBER, columns.TEXT: TEXT}
OF_KIND |= {columns.FLAG: FLAG, columns.LIST: LIST}


def check(data: Any) -> None:
    """Raise ValueError unless `data` is a recording of this schema; the schema's number is looked
    at first, so that a file of a newer version is called that."""
    if not isinstance(data, dict) or "schema" not in data or "experiment" not in data:
        raise ValueError("it is no recording: it has no schema and experiment")
    version = data["schema"]
    if isinstance(version, int) and version > SCHEMA:
        raise ValueError(
            f"it has schema {version}, and this version reads up to {SCHEMA}; "
            "update pytorch-gpu-anatomy to read it"
        )
    if version != SCHEMA or isinstance(version, bool):
        raise ValueError(f"its schema is {version!r}, and the only one so far is {SCHEMA}")
    for name, (kind, nullable) in FIELDS.items():
        parent, _, last = name.rpartition(".")
        holder = data[parent] if parent else data
        if last not in holder:
            raise ValueError(f"the field {name} is missing")
        _expect(name, holder[last], kind, nullable)
    _check_time("started_at", data["started_at"])
    for index, warning in enumerate(data["warnings"]):
        _expect(f"warnings[{index}]", warning, TEXT, False)
    for name, floor in data["noise_floor"].items():
        _expect(f"noise_floor.{name}", floor, NUMBER, True)
    declared = columns.of_experiment(data["experiment"])
    for index, row in enumerate(data["rows"]):
        _expect(f"rows[{index}]", row, TABLE, False)
        _check_row(f"rows[{index}]", row, declared)
    if "occasions" in data:
        _expect("occasions", data["occasions"], LIST, False)
        if len(data["occasions"]) > MOST:
            raise ValueError(f"occasions has {len(data['occasions'])} entries; {MOST} may be kept")
        for index, each in enumerate(data["occasions"]):
            _check_occasion(f"occasions[{index}]", each, len(data["rows"]))
    if "columns" in data:  # of all rows, where their nulls are left out
        _expect("columns", data["columns"], LIST, False)
        for index, name in enumerate(data["columns"]):
            _expect(f"columns[{index}]", name, TEXT, False)
        if lacking := set().union(*data["rows"]).difference(data["columns"]):
            raise ValueError(f"columns lacks {min(lacking)!r}, which a row has")


def _check_time(place: str, text: str) -> None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{place} is {text!r}, which is no ISO time") from None
    if time.tzinfo is None:
        raise ValueError(f"{place} names no time zone; it must be UTC")


def _check_occasion(place: str, occasion: Any, rows: int) -> None:
    _expect(place, occasion, TABLE, False)
    if odd := set(occasion).symmetric_difference(OCCASION):
        raise ValueError(f"{place} has {min(odd)!r} too much or too little; see {sorted(OCCASION)}")
    for name, (kind, nullable) in OCCASION.items():
        _expect(f"{place}.{name}", occasion[name], kind, nullable)
    _check_time(f"{place}.started_at", occasion["started_at"])
    figures = occasion["figures"]
    for name, values in figures.items():
        if name not in FIGURES:
            raise ValueError(f"{place}.figures has {name!r}, none of {', '.join(FIGURES)}")
        _expect(f"{place}.figures.{name}", values, LIST, False)
        if len(values) != rows:
            raise ValueError(f"{place}.figures.{name} has {len(values)} values for {rows} rows")
        for index, number in enumerate(values):
            _expect(f"{place}.figures.{name}[{index}]", number, NUMBER, True)
            if number is not None and not number > 0:
                raise ValueError(f"{place}.figures.{name}[{index}] is {number!r}, and not above 0")


def _check_row(place: str, row: dict, declared: Mapping[str, Column]) -> None:
    for name, value in row.items():
        if value is None or not (column := declared.get(name)):
            continue
        _expect(f"{place}.{name}", value, OF_KIND[column.kind], True)
        if column.words and value not in column.words:
            raise ValueError(f"{place}.{name} is {value!r}, none of {', '.join(column.words)}")
        if column.above_zero and not value > 0:
            raise ValueError(f"{place}.{name} is {value!r}; a time is above 0, or null")
    for name in row:
        if (column := declared.get(name)) and column.interval:
            names = (column.interval[0], name, column.interval[1])
            values = [row[name] for name in names if row.get(name) is not None]
            if values != sorted(values):
                raise ValueError(f"{place}: {', '.join(names)} are out of order: {values}")
    for name in ("blocks_s", "run_blocks", "run_medians_s", "run_ratios"):
        values, runs = row.get(name), row.get("runs")
        for index, number in enumerate(values or []):
            _expect(f"{place}.{name}[{index}]", number, NUMBER, False)
        if values is not None and name != "blocks_s" and len(values) != runs:
            raise ValueError(f"{place}.{name} has {len(values)} values of {runs} runs")
    if row.get("run_blocks") and sum(row["run_blocks"]) != len(row.get("blocks_s") or []):
        raise ValueError(f"{place}.run_blocks do not add up to the number of blocks_s")


def _expect(place: str, value: Any, kind: str, nullable: bool) -> None:
    if value is None:
        if not nullable:
            raise ValueError(f"{place} is null; it must be {kind}")
    elif not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind is not FLAG):
        raise ValueError(f"{place} is {value!r}; it must be {kind}{' or null' * nullable}")
    elif isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{place} is {value!r}; JSON has no such number, write null")


# A slash at the start of a word and another later: a path. FLOP/s, a / b and https:// are none.
_PATH = re.compile(r"""(?:^|[:\s"'=(\[{,;<>|`]|file:/?/?)(?:/[\w.@+-]+){2,}|(?:^|\s)~[\w.-]*/""")
_TELLING = (
    (_PATH, "an absolute path"),
    (re.compile(r"(?:/home/|/root/|/Users/)"), "an absolute path"),
    (re.compile(r"(?<![A-Za-z])[A-Za-z]:\\|^\\\\\w"), "an absolute path"),
    (re.compile(r"\b(?:GPU|MIG)-[0-9a-fA-F]{8}\b"), "a GPU's UUID"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "a UUID"),
    (re.compile(r"^\d{10,}$"), "a serial number"),
)
_TELLING_FIELD = re.compile(r"(?i)(?:^|_)(?:serial|uuid|(?:host|user)_?name|login|home)(?:_|$)")
# Names that thousands of machines and accounts share tell nobody apart.
_COMMON = {"root", "user", "users", "admin", "ubuntu", "debian", "runner", "localhost", "docker"}
_SHORTEST_NAME = 4  # a user called `max` must still be able to record a kernel of that name


def scrub(data: dict) -> None:
    """Raise ValueError where `data` names the host, the user, a folder or a single card."""
    known = " ".join(str(data["machine"].get(name)) for name in ("slug", "gpu", "cpu")).casefold()
    private = [each for each in _private_names() if each[0].casefold() not in known]
    for place, text, is_field in texts_in(data):
        if is_field and _TELLING_FIELD.search(text):
            raise ValueError(f"{place} has a field called {text!r}, which no recording may hold")
        for pattern, what in _TELLING:
            if found := pattern.search(text):
                raise ValueError(f"{place} holds {what} ({found[0].strip()!r} in {text[:120]!r})")
        for name, what in private:
            if re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", text, re.IGNORECASE):
                raise ValueError(f"{place} holds {what} (in {text[:120]!r})")


def redacted(text: str) -> str:
    """A text with `…` in place of what `scrub` would refuse in it, for a message nobody wrote."""
    for pattern, _ in _TELLING:
        text = pattern.sub(" …", text)
    for name, _ in _private_names():
        text = re.sub(rf"(?<![\w]){re.escape(name)}(?![\w])", "…", text, flags=re.IGNORECASE)
    return text


def _private_names() -> list[tuple[str, str]]:
    """Names that would tell who measured and where."""
    host, home = socket.gethostname(), str(Path.home())
    names = [(host, "this host's name"), (home, "a home folder")]
    names.append((host.partition(".")[0], "this host's name"))
    with suppress(OSError, KeyError):  # no account has this process's id: nothing to give away
        names.append((getpass.getuser(), "this user's name"))
    long = [(name, what) for name, what in names if len(name) >= _SHORTEST_NAME]
    return [(name, what) for name, what in long if name.casefold() not in _COMMON]


def texts_in(value: Any, place: str = "") -> Iterator[tuple[str, str, bool]]:
    """Every text in `value` with its place, and whether it is a field's name."""
    if isinstance(value, str):
        yield place, value, False
    elif isinstance(value, dict):
        for name, item in value.items():
            yield place or "the recording", name, True
            yield from texts_in(item, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from texts_in(item, f"{place}[{index}]")
