"""Lists of days, made from the outline and from the pages that are there.

`[[days: all]]` is the whole curriculum, `[[days: phase 1]]` two weeks and `[[days: week 1]]` seven
days, as Markdown whose headings stand in the page's table of contents. What is written is linked,
and what is not says so. In a sentence, `[[days: day 2]]` or `[[days: Day 2]]` links where it can.
"""

import re
from html import escape

from anatomy.figures.curriculum import outline
from anatomy.figures.curriculum.outline import Part
from anatomy.figures.text import frontmatter
from anatomy.figures.text.spans import Markdown
from anatomy.record.showing import Showing
from anatomy.table.errors import BadParameter

UNWRITTEN = '<span class="tag">not written yet</span>'
_ASKED = re.compile(r"all|(?P<kind>phase|week|[dD]ay) (?P<number>\d+)")


def days(showing: Showing, asked: str, spec: str) -> str:
    """What `[[days: ...]]` stands for."""
    wanted = _ASKED.fullmatch(asked)
    if spec or not wanted:
        ask = "`all`, `phase N`, `week N` or `day N`"
        raise BadParameter(f"{asked!r}: ask for {ask}, and nothing more.")
    if not wanted["kind"]:
        return Markdown("\n\n".join(_phase(showing, each) for each in outline.parts("phase")))
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


def _phase(showing: Showing, phase: Part) -> str:
    """A heading, and both weeks side by side with the titles of their days."""
    cards = (
        f'<div><p class="week">{linked(showing, week)}</p>{_days(showing, week)}</div>'
        for week in phase.parts
    )
    weeks = f'<div class="weeks">{"".join(cards)}</div>'
    return f"## {linked(showing, phase)}\n\n{phase.about}\n\n{weeks}"


def _days(showing: Showing, week: Part, *, long: bool = False) -> str:
    """A numbered list; `long` tells of each day what is measured and what it needs. Where no day
    is written, this is said once."""
    names = [linked(showing, day, day.title) for day in week.parts]
    some = any(name.startswith("<a") for name in names)
    lines = []
    for day, name in zip(week.parts, names, strict=True):
        missing = f" {UNWRITTEN}" if some and not name.startswith("<a") else ""
        text = f"<span>{name}{missing}</span>"
        if long:
            on = "" if day.on == "1 GPU" else f" · {day.on}"
            text += f"<small>{escape(day.measures[0].upper() + day.measures[1:])}.{on}</small>"
        lines.append(f'<li data-day="{day.number:d}" value="{day.number:d}">{text}</li>')
    note = "" if some else f'<p class="unwritten">{UNWRITTEN}</p>'
    return f'{note}<ol class="days{" long" if long else ""}">{"".join(lines)}</ol>'
