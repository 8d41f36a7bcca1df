"""Lists of pages, made from their front matter: the navigation, and tables of a section.

`[[index: SECTION]]` becomes Markdown, as if it had been written on the page,
so that MkDocs checks their links.
"""

import posixpath
import re
from collections.abc import Mapping
from itertools import count

from anatomy.figures.text import frontmatter
from anatomy.figures.text.frontmatter import Front, Fronts
from anatomy.figures.text.spans import Markdown
from anatomy.record.showing import Showing
from anatomy.table.errors import BadParameter, UnknownName

_LINK = re.compile(r"\]\((?P<source>[^()\s#]+\.md)(?P<part>#[^()\s]*)?\)")
_ASKED = re.compile(r"\[\[\s*index:\s*(.+?)\s*\]\]")


def navigation(
    pages: Mapping[str, str], fronts: Fronts, machines: int = 1
) -> tuple[list[dict], list[str]]:
    """The navigation of a site of so many machines as `nav` of mkdocs.yml would say it, and what
    stands in its way."""
    groups: dict[tuple[str, ...], list[dict]] = {(): []}
    taken: dict[int, str] = {}
    wrong = []
    for page, front in fronts.items():
        place = frontmatter.place(page, pages[page], "order")
        there = {"title": front.name, "section": front.section is not None, "order": front.order}
        if lacks := [key for key, value in there.items() if not value]:
            wrong.append(
                f"{page}:1: the front matter lacks {' and '.join(lacks)}, and so the page has no "
                "place in the navigation. `section: Techniques` puts it there, `section: /` beside "
                "the sections; `order` is a whole number from 1, no other page's."
            )
            continue
        if front.order in taken:
            orders = {each.order for each in fronts.values()}
            free = next(number for number in count(front.order) if number not in orders)
            there = f"that of {taken[front.order]} already; the next free one is {free}"
            wrong.append(f"{place}: order {front.order} is {there}.")
        taken.setdefault(front.order, page)
        if front.several and machines < 2:
            continue
        for depth, name in enumerate(front.section):
            inside = front.section[: depth + 1]
            if inside not in groups:
                groups[inside] = []
                groups[inside[:-1]].append({name: groups[inside]})
        groups[front.section].append({front.name: page})
    return groups[()], wrong


def index(showing: Showing, section: str, spec: str) -> str:
    """`[[index: Techniques]]`, a table with a line for each page of a section that has one."""
    if spec:
        raise BadParameter(f"a list of pages has no parts; got {spec!r}.")
    found = {page: each for page, each in frontmatter.of_site(showing).items() if each.index}
    mine = {page: front for page, front in found.items() if name_of(front) == section}
    if not mine:
        raise UnknownName("section with an index", section, map(name_of, found.values()))
    heads = list(next(iter(mine.values())).index)
    for page, front in mine.items():
        if list(front.index) != heads:
            raise BadParameter(
                f"{page} gives {', '.join(front.index)} as its line in the index of {section}, "
                f"and the page before it {', '.join(heads)}: they must be the same."
            )
    lines = [heads, ["---"] * len(heads)]
    for page, front in mine.items():
        lines.append([_rebased(cell, page, showing.page) for cell in front.index.values()])
    return Markdown("\n".join(f"| {' | '.join(cells)} |" for cells in lines))


def advice(showing: Showing, section: str, spec: str) -> str:
    """`[[advice: Techniques]]` at the end of a table: a line for each page of a section that has
    one; nothing where none has, such as a page that is a draft."""
    if spec:
        raise BadParameter(f"lines of a table have no parts; got {spec!r}.")
    found = {page: each for page, each in frontmatter.of_site(showing).items() if each.section}
    mine = {page: each for page, each in found.items() if name_of(each) == section}
    if not mine:
        raise UnknownName("section", section, map(name_of, found.values()))
    lines = (
        [_rebased(cell, page, showing.page) for cell in each.advice.values()]
        for page, each in mine.items()
        if each.advice
    )
    return Markdown("\n".join(f"| {' | '.join(cells)} |" for cells in lines))


def unlisted(pages: Mapping[str, str], fronts: Fronts) -> list[str]:
    """One sentence for each line of an index that no page shows."""
    shown = {asked for text in pages.values() for asked in _ASKED.findall(text)}
    wrong = []
    for page, front in fronts.items():
        if front.index and (name := name_of(front)) not in shown:
            line = f"the front matter has a line for [[index: {name}]]"
            wrong.append(f"{page}:1: {line}, which is on no page.")
    return wrong


def name_of(front: Front) -> str:
    """The section of a page as `[[index: ...]]` names it: `Benchmarks / Sync points`."""
    return " / ".join(front.section or ()) or "/"


def _rebased(markdown: str, source: str, page: str) -> str:
    """Markdown that stands in the front matter of `source`, its links as `page` must say them."""

    def link(found: re.Match) -> str:
        target = posixpath.join(posixpath.dirname(source), found["source"])
        address = posixpath.relpath(target, posixpath.dirname(page) or ".")
        return f"]({address}{found['part'] or ''})"

    return _LINK.sub(link, markdown)
