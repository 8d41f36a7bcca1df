"""Lists of days, made from the outline and from the pages that are there.

`[[days: all]]` is the whole curriculum, `[[days: phase 1]]` two weeks and `[[days: week 1]]` seven
days, as Markdown whose headings stand in the page's table of contents. What is published is linked,
and what is not says so. In a sentence, `[[days: day 2]]` or `[[days: Day 2]]` links where it can.
"""

import re
from collections.abc import Iterator
from html import escape
from textwrap import indent

from anatomy.figures.curriculum import outline
from anatomy.figures.curriculum.outline import Part
from anatomy.figures.text import frontmatter
from anatomy.figures.text.spans import Markdown
from anatomy.record.showing import Showing
from anatomy.table.errors import BadParameter

UNWRITTEN = '<span class="tag">not written yet</span>'
UNMEASURED = '<span class="tag">written, not yet measured</span>'
_ASKED = re.compile(r"all|(?P<kind>phase|week|[dD]ay) (?P<number>\d+)")


def days(showing: Showing, asked: str, spec: str) -> str:
    """What `[[days: ...]]` stands for."""
    wanted = _ASKED.fullmatch(asked)
    if spec or not wanted:
        ask = "`all`, `phase N`, `week N` or `day N`"
        raise BadParameter(f"{asked!r}: ask for {ask}, and nothing more.")
    if not wanted["kind"]:
        return Markdown("\n\n".join(_phases(showing)))
    about = outline.numbered(wanted["kind"].lower(), int(wanted["number"]))
    if about.kind == "day":
        return linked(showing, about, asked)
    if about.kind == "week":
        return Markdown(_days(showing, about, long=True))
    shown = (
        f"## {linked(showing, week)}\n\n{week.about}\n\n{_days(showing, week, long=True)}"
        for week in about.parts
    )
    return Markdown("\n\n".join(shown))


def linked(showing: Showing, about: Part, text: str = "") -> str:
    """A text, by default its name, as HTML: a link where the page about it is written."""
    text, there = escape(text or about.name), address(showing, about)
    return f'<a href="{escape(there)}">{text}</a>' if there else text


def address(showing: Showing, about: Part) -> str | None:
    """Where the page about it is; None where it is not written."""
    for page, front in frontmatter.of_site(showing).items():
        if getattr(front, about.kind) == about.number:
            return showing.link_to(page)
    return None


def missing(showing: Showing, day: Part) -> str:
    """Why a day has no page in this build, as HTML; empty where it has one."""
    if address(showing, day):
        return ""
    written = any(front.day == day.number for front in showing.drafts.values())
    return UNMEASURED if written else UNWRITTEN


def _phases(showing: Showing) -> Iterator[str]:
    """Each phase; those of which no page is written stand folded, at the end."""
    folded = []
    for phase in outline.parts("phase"):
        inside = [phase, *phase.parts, *(day for week in phase.parts for day in week.parts)]
        if any(address(showing, each) for each in inside):
            yield _phase(showing, phase)
        else:
            folded.append(_phase(showing, phase))
    if folded:
        said = "\n\n".join(folded)
        yield f'??? note "The phases to come"\n\n{indent(said, " " * 4)}'


def _phase(showing: Showing, phase: Part) -> str:
    """A heading, and both weeks side by side with the titles of their days."""
    cards = (
        f'<div><p class="week">{linked(showing, week)}</p>{_days(showing, week)}</div>'
        for week in phase.parts
    )
    weeks = f'<div class="weeks">{"".join(cards)}</div>'
    return f"## {linked(showing, phase)}\n\n{phase.about}\n\n{weeks}"


def _days(showing: Showing, week: Part, *, long: bool = False) -> str:
    """A numbered list; `long` tells of each day what is measured and what it needs. What all days
    lack is said once."""
    lacks = [missing(showing, day) for day in week.parts]
    once = lacks[0] if len(set(lacks)) == 1 else ""
    lines = []
    for day, lack in zip(week.parts, lacks, strict=True):
        said = f" {lack}" if lack and not once else ""
        text = f"<span>{linked(showing, day, day.title)}{said}</span>"
        if long:
            on = "" if day.on == "1 GPU" else f" · {day.on}"
            text += f"<small>{escape(day.measures[0].upper() + day.measures[1:])}.{on}</small>"
        lines.append(f'<li data-day="{day.number:d}" value="{day.number:d}">{text}</li>')
    note = f'<p class="unwritten">{once}</p>' if once else ""
    return f'{note}<ol class="days{" long" if long else ""}">{"".join(lines)}</ol>'
