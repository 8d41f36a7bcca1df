"""The outline of the curriculum, from outline.toml, and what follows from a day's number."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from anatomy.table.errors import BadParameter

SECTION = "Curriculum"
HOURS = 2.5  # of work in a day
FIRST_ORDER = 310  # of the pages of the curriculum among all pages; its index has it
KINDS = ("phase", "week", "day")  # each with several of the next
ROMAN = ("", "I", "II", "III", "IV", "V")


@dataclass(frozen=True)
class Part:
    """A phase, a week or a day; each kind is numbered through, from 1."""

    kind: str
    number: int
    within: int  # number of the week of a day, of the phase of a week
    title: str
    about: str = ""  # of a phase and of a week, in a sentence
    measures: str = ""  # of a day: ends the sentence "You measure ..."
    on: str = ""  # of a day, what it needs: `1 GPU`, `8 GPUs`, `CPU`

    @property
    def place(self) -> str:
        """`Day 2`; a phase has a Roman number."""
        number = ROMAN[self.number] if self.kind == "phase" else self.number
        return f"{self.kind.capitalize()} {number}"

    @property
    def name(self) -> str:
        """`Day 2: GPU anatomy`."""
        return f"{self.place}: {self.title}"

    @property
    def parts(self) -> tuple["Part", ...]:
        """The weeks of a phase, the days of a week."""
        inner = KINDS[KINDS.index(self.kind) + 1]
        return tuple(each for each in parts(inner) if each.within == self.number)


@cache
def parts(kind: str) -> tuple[Part, ...]:
    """All phases, weeks or days, in their order."""
    made = []
    for number, (within, told) in enumerate(_told(kind), 1):
        own = {key: value for key, value in told.items() if key not in KINDS}
        made.append(Part(kind, number, within, **own))
    return tuple(made)


@cache
def _told(kind: str) -> list[tuple[int, dict[str, Any]]]:
    """What outline.toml says of each part of one kind, after the number of what it is within."""
    if kind == KINDS[0]:
        text = Path(__file__).with_name("outline.toml").read_text(encoding="utf-8")
        return [(0, each) for each in tomllib.loads(text)[kind]]
    outer = enumerate(_told(KINDS[KINDS.index(kind) - 1]), 1)
    return [(number, each) for number, (_, told) in outer for each in told[kind]]


def numbered(kind: str, number: int) -> Part:
    """A phase, week or day by its number; BadParameter where the curriculum has none such."""
    found = parts(kind)
    if not 1 <= number <= len(found):
        raise BadParameter(f"{kind} {number}: the curriculum has {kind}s 1 to {len(found)}.")
    return found[number - 1]


def place(kind: str, number: int) -> dict[str, Any]:
    """Title, section and order of the page that is about a phase, a week or a day."""
    about = numbered(kind, number)
    told = {"title": about.name, "section": (SECTION,), "order": FIRST_ORDER + number}
    if kind == "phase":
        return told
    week = about if kind == "week" else numbered("week", about.within)
    told["section"] += (week.name,)
    # Eight pages a week, its own first.
    told["order"] = FIRST_ORDER + len(parts("phase")) + 8 * (week.number - 1) + 1
    if kind == "week":
        return told | {"nav": "The week"}
    return told | {"order": told["order"] + week.parts.index(about) + 1}
