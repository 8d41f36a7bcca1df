"""Lists of days, made from the outline and from the pages that are there.

`[[days: all]]` is the whole curriculum, `[[days: phase 1]]` two weeks and `[[days: week 1]]` seven
days, as Markdown whose headings stand in the page's table of contents. What is written is linked,
and what is not says so.
"""

import posixpath
import re
from collections.abc import Iterable
from html import escape

from anatomy.figures.curriculum import outline
from anatomy.figures.curriculum.outline import Day, Phase, Week
from anatomy.figures.text import frontmatter
from anatomy.figures.text.spans import Markdown
from anatomy.record.showing import Showing
from anatomy.table.errors import BadParameter

UNWRITTEN = '<span class="tag">not written yet</span>'
_ASKED = re.compile(r"all|(?P<kind>phase|week) (?P<number>\d+)")


def days(showing: Showing, asked: str, spec: str) -> str:
    """What `[[days: ...]]` stands for."""
    wanted = _ASKED.fullmatch(asked)
    if spec or not wanted:
        raise BadParameter(f"{asked!r}: ask for `all`, `phase N` or `week N`, and nothing more.")
    if not wanted["kind"]:
        return Markdown("\n\n".join(_phase_of_all(showing, each) for each in outline.phases()))
    about = outline.numbered(wanted["kind"], int(wanted["number"]))
    if isinstance(about, Week):
        return Markdown(_days(showing, about.days, long=True))
    return Markdown("\n\n".join(_week_of_phase(showing, each) for each in about.weeks))


def address(showing: Showing, kind: str, number: int) -> str:
    """Where the page about a phase, a week or a day is, relative to the page shown; empty where
    there is none."""
    for page, front in frontmatter.of_site(showing).items():
        if getattr(front, kind) == number:
            return showing.page_link(
                posixpath.relpath(page, posixpath.dirname(showing.page) or ".")
            )
    return ""


def linked(showing: Showing, kind: str, number: int, text: str) -> str:
    """A text as HTML, as a link where the page about it is written."""
    target = address(showing, kind, number)
    return f'<a href="{escape(target)}">{escape(text)}</a>' if target else escape(text)


def _phase_of_all(showing: Showing, phase: Phase) -> str:
    """A heading, and both weeks side by side with the titles of their days."""
    cards = []
    for week in phase.weeks:
        name = linked(showing, "week", week.number, week.name)
        cards.append(f'<div><p class="week">{name}</p>\n{_days(showing, week.days)}</div>')
    name = linked(showing, "phase", phase.number, phase.name)
    return f'## {name}\n\n{phase.about}\n\n<div class="weeks">{"".join(cards)}</div>'


def _week_of_phase(showing: Showing, week: Week) -> str:
    name = linked(showing, "week", week.number, week.name)
    return f"## {name}\n\n{week.about}\n\n{_days(showing, week.days, long=True)}"


def _days(showing: Showing, shown: Iterable[Day], *, long: bool = False) -> str:
    """A numbered list; `long` tells of each day what it measures and what it needs. Where no day
    is written, this is said once."""
    shown = list(shown)
    written = [bool(address(showing, "day", day.number)) for day in shown]
    lines = []
    for day, there in zip(shown, written, strict=True):
        text = f"<span>{linked(showing, 'day', day.number, day.title)}"
        text += f" {UNWRITTEN}</span>" if any(written) and not there else "</span>"
        if long:
            on = "" if day.on == "1 GPU" else f" · {day.on}"
            text += f"<small>You measure {escape(day.measures)}{on}.</small>"
        lines.append(f'<li data-day="{day.number}" value="{day.number}">{text}</li>')
    note = "" if any(written) else f'<p class="unwritten">{UNWRITTEN}</p>'
    return f'{note}<ol class="days{" long" if long else ""}">{"".join(lines)}</ol>'
