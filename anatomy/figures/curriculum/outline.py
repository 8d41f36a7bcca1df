"""The outline of the curriculum, from outline.toml, and what follows from a day's number."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from anatomy.table.errors import BadParameter

SECTION = "Curriculum"
HOURS = 2.5  # of work in a day
FIRST_ORDER = 310  # of the pages of the curriculum among all pages; its index has it
ROMAN = ("", "I", "II", "III", "IV", "V")


@dataclass(frozen=True)
class Day:
    """One day; phases, weeks and days are numbered through, from 1."""

    number: int
    week: int
    phase: int
    title: str
    measures: str  # ends the sentence "Tomorrow you measure ..."
    on: str  # what it needs: `1 GPU`, `8 GPUs`, `CPU`

    @property
    def name(self) -> str:
        """`Day 2: GPU anatomy`."""
        return f"Day {self.number}: {self.title}"


@dataclass(frozen=True)
class Week:
    """Seven days."""

    number: int
    phase: int
    title: str
    about: str
    days: tuple[Day, ...]

    @property
    def name(self) -> str:
        """`Week 1: The machine`."""
        return f"Week {self.number}: {self.title}"


@dataclass(frozen=True)
class Phase:
    """Two weeks."""

    number: int
    title: str
    about: str
    weeks: tuple[Week, ...]

    @property
    def name(self) -> str:
        """`Phase I: Foundations`."""
        return f"Phase {ROMAN[self.number]}: {self.title}"


@cache
def phases() -> tuple[Phase, ...]:
    """The whole curriculum."""
    told = tomllib.loads(Path(__file__).with_name("outline.toml").read_text(encoding="utf-8"))
    made, week_number, day_number = [], 0, 0
    for number, phase in enumerate(told["phase"], 1):
        weeks_of = []
        for week in phase["week"]:
            week_number += 1
            first, day_number = day_number + 1, day_number + len(week["days"])
            numbered = enumerate(week["days"], first)
            days_of = tuple(Day(n, week_number, number, **each) for n, each in numbered)
            weeks_of.append(Week(week_number, number, week["title"], week["about"], days_of))
        made.append(Phase(number, phase["title"], phase["about"], tuple(weeks_of)))
    return tuple(made)


def weeks() -> Iterator[Week]:
    """All weeks, in order."""
    return (week for phase in phases() for week in phase.weeks)


def days() -> Iterator[Day]:
    """All days, in order."""
    return (day for week in weeks() for day in week.days)


def numbered(kind: str, number: int) -> Phase | Week | Day:
    """A `phase`, `week` or `day` by its number; BadParameter where the curriculum has none such."""
    found = tuple({"phase": phases, "week": weeks, "day": days}[kind]())
    if not 1 <= number <= len(found):
        raise BadParameter(f"{kind} {number}: the curriculum has {kind}s 1 to {len(found)}.")
    return found[number - 1]


def place(kind: str, number: int) -> dict[str, Any]:
    """Title, section and order of the page that is about a phase, a week or a day."""
    about = numbered(kind, number)
    if kind == "phase":
        return {"title": about.name, "section": (SECTION,), "order": FIRST_ORDER + number}
    week = about if kind == "week" else numbered("week", about.week)
    # Eight pages a week, its own first.
    before = FIRST_ORDER + len(phases()) + 8 * (week.number - 1) + 1
    order = before + (number - week.days[0].number + 1 if kind == "day" else 0)
    nav = {"nav": "The week"} if kind == "week" else {}
    return {"title": about.name, "section": (SECTION, week.name), "order": order, **nav}
