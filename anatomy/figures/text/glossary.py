"""Words of the field: docs/glossary.md is their one source, a Markdown definition list.

    warp, warps
    :   A group of 32 threads that run the same instruction together. An SM keeps many of them.

A term's line has its variants; the first is its name. The first sentence of the definition is what
a reader sees on hover, tap or tab wherever a section of a page first uses the word.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape
from itertools import groupby

from anatomy.table.errors import AnatomyError

PAGE = "glossary.md"
# Words of this section, such as `wide`, are other words elsewhere: no definition links to them.
OURS = "How this site measures"
_ENTRY = re.compile(r"^(?P<names>\S.*)\n:[ \t]+(?P<said>.+(?:\n[ \t]+\S.*)*)", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[])")
_TAKEN = re.compile(r"(\[[^\]]+\]\([^)]*\)|`[^`]*`)")  # a link, or code
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_TAG = re.compile(
    r"<!--.*?-->|<(?P<end>/?)(?P<name>[a-zA-Z][\w-]*)(?P<rest>(?:\"[^\"]*\"|'[^']*'|[^'\">])*)>",
    re.DOTALL,
)
_VOID = {"br", "hr", "img", "input", "link", "meta", "source", "wbr", "col"}
# In these nothing is explained: they are no prose, or a hover of their own.
_LEFT_ALONE = {"h1", "h2", "h3", "h4", "h5", "h6", "th", "code", "pre", "a", "abbr", "dfn", "kbd"}
_LEFT_ALONE |= {"figure", "svg", "script", "style", "button", "label", "summary", "aside", "nav"}


@dataclass(frozen=True)
class Term:
    """One word of the field."""

    names: tuple[str, ...]  # as it is called first, then other forms of the word
    definition: str  # plain text, in one line

    @property
    def name(self) -> str:
        """What the glossary calls it."""
        return self.names[0]

    @cached_property
    def tooltip(self) -> str:
        """The first sentence of the definition."""
        return _SENTENCE_END.split(self.definition, maxsplit=1)[0]

    @property
    def anchor(self) -> str:
        """Id of its line on the glossary's page."""
        return "term-" + re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def terms(text: str) -> list[Term]:
    """The terms of a glossary, in its order; AnatomyError where a word is there twice."""
    found, taken = [], set()
    for entry in _ENTRY.finditer(text):
        names = tuple(name.strip() for name in entry["names"].split(","))
        if twice := taken & set(names):
            raise AnatomyError(f"{PAGE}: {sorted(twice)[0]!r} is explained twice.")
        taken |= set(names)
        plain = re.sub(r"[`*]", "", _LINK.sub(r"\1", entry["said"]))
        found.append(Term(names, " ".join(plain.split())))
    return found


def with_anchors(text: str) -> str:
    """The glossary's page with the name alone of each term, a place that links can lead to, links
    from each definition to the terms in it, and over the first section all words by letter."""
    known = {term.names: term for term in terms(text)}
    words = Glossary(text.partition(f"\n## {OURS}\n")[0])

    def line(entry: re.Match) -> str:
        term = known[tuple(name.strip() for name in entry["names"].split(","))]
        said = words.linked(entry[0].partition("\n")[2], term)
        return f'<dfn id="{escape(term.anchor)}">{escape(term.name)}</dfn>\n{said}'

    head, section, rest = _ENTRY.sub(line, text).partition("\n## ")
    return f"{head}{section and _by_letter(known.values())}{section}{rest}"


def _by_letter(known: Iterable[Term]) -> str:
    """Links to all terms, each letter followed by its own."""
    plain = {term.name.strip("`"): term for term in known}
    lines = []
    for letter, names in groupby(sorted(plain, key=str.lower), key=lambda name: name[0].upper()):
        links = (f'<a href="#{escape(plain[name].anchor)}">{escape(name)}</a>' for name in names)
        lines.append(f"<span><b>{letter}</b>&nbsp;{'&nbsp;· '.join(links)}</span>")
    return f'\n<p class="letters" data-search-exclude>{" ".join(lines)}</p>\n'


class Glossary:
    """Terms, ready to be found in the text of pages."""

    def __init__(self, text: str) -> None:
        """Read a glossary's Markdown; an empty one explains nothing."""
        self.terms = terms(text)
        self._by_name: Mapping[str, Term] = {
            name if name != name.lower() else name.lower(): term
            for term in self.terms
            for name in term.names
        }
        longest = sorted(self._by_name, key=len, reverse=True)
        # A word in lower case may begin a sentence; one with a capital is written so.
        forms = (
            re.escape(name) if name != name.lower() else f"(?i:{re.escape(name)})"
            for name in longest
        )
        self._word = re.compile(rf"(?<![\w./&#-])(?:{'|'.join(forms)})(?![\w/-])")

    def explained(self, html: str) -> str:
        """A page's HTML with the first use of each term in each of its sections explained."""
        if not self.terms:
            return html
        parts, seen = [], set()
        for text, tag in _pieces(html):
            if tag == "h2":
                seen.clear()
            parts.append(text if tag is not None else self._words(text, seen, _hover))
        return "".join(parts)

    def linked(self, text: str, own: Term) -> str:
        """The Markdown of the definition of a term, with a link from the first use of each other
        term; what is a link or code already is left alone."""
        seen, parts = {own}, _TAKEN.split(text)
        parts[::2] = [
            self._words(part, seen, lambda term, name: f"[{name}](#{term.anchor})")
            for part in parts[::2]
        ]
        return "".join(parts)

    def _words(self, text: str, seen: set[Term], told: Callable[[Term, str], str]) -> str:
        def word(found: re.Match) -> str:
            name = found[0]
            term = self._by_name.get(name) or self._by_name[name.lower()]
            if term in seen:
                return name
            seen.add(term)
            return told(term, name)

        return self._word.sub(word, text)


def _hover(term: Term, name: str) -> str:
    return f'<abbr title="{escape(term.tooltip)}" tabindex="0">{name}</abbr>'


@cache
def of(text: str) -> Glossary:
    """The glossary of this Markdown."""
    return Glossary(text)


def _pieces(html: str) -> Iterator[tuple[str, str | None]]:
    """The pieces of a page: (text that may be explained, None), and (the rest, the tag that it is,
    empty where it is text)."""
    at, open_tags = 0, []
    for tag in _TAG.finditer(html):
        yield html[at : tag.start()], "" if any(alone for _, alone in open_tags) else None
        at, name = tag.end(), (tag["name"] or "").lower()
        if tag["end"]:
            while open_tags and open_tags.pop()[0] != name:
                pass
        elif name and name not in _VOID and not tag["rest"].endswith("/"):
            # By a program, not written.
            made = name in ("table", "ol") and " class=" in tag["rest"]
            hovers = " title=" in tag["rest"]
            open_tags.append((name, hovers or made or name in _LEFT_ALONE))
        yield tag[0], "" if tag["end"] else name
    yield html[at:], None
