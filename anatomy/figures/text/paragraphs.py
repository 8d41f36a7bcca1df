"""Paragraphs bound to a verdict: the one written for it is shown, and none is a build error.

    [[when claim:slice-doubles-fp16 is holds]]
    The slice takes twice as long, as the seed says.
    [[when fails, holds in part]]
    Here it does not: [[claim:slice-doubles-fp16 | evidence]]
    [[end]]

Each line in brackets stands alone. Between them may stand anything, blocks included. If no
paragraph is written for the verdict of the machine shown, prose and number would contradict each
other, and the page is wrong. Where the verdict's recordings are missing a gap shows instead. Lines
that are not shown become empty ones, so that every line keeps its number.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from anatomy import claims
from anatomy.figures.text import fences, spans
from anatomy.record.showing import Showing
from anatomy.table.errors import AnatomyError, BadParameter, UnknownName

_LINE = re.compile(r"^(?P<indent>[ \t]*)\[\[\s*(?P<what>when\b.*|end)\s*\]\][ \t]*$")
_WHEN = re.compile(r"^when\s+(?:claim:(?P<claim>[\w-]+)\s+is\s+)?(?P<words>.+)$")
HOW = (
    "bound paragraphs begin with a line [[when claim:ID is VERDICT]], go on with [[when VERDICT]] "
    "and close with [[end]]."
)


@dataclass
class _Bound:
    """One group of paragraphs: lines are numbered from 0, `end` is that of `[[end]]`."""

    claim: str
    line: int
    indent: str
    # First line after `[[when]]`, line after the last, and the verdicts that it is written for.
    parts: list[tuple[int, int, list[str]]] = field(default_factory=list)
    end: int = 0


def choose(showing: Showing, text: str, offset: int = 0) -> tuple[str, list[str]]:
    """A page's Markdown with the paragraphs that its verdicts call for, and what is wrong with it;
    while `showing` collects, all paragraphs stay, so that what they show is noted."""
    lines = text.split("\n")
    groups, wrong = _groups(lines, fences.lines(text))
    problems = [f"{showing.page}:{line + 1 + offset}: {problem}" for line, problem in wrong]
    for group in groups:
        showing.line = group.line + 1 + offset
        try:
            shown, gap = _shown(showing, group)
        except AnatomyError as error:
            problems.append(f"{showing.place}: {error}")
            shown, gap = set(), ""
        for at in range(group.line, group.end + 1):
            if at not in shown:
                lines[at] = ""
        lines[group.line] = group.indent + gap if gap else ""
    return "\n".join(lines), problems


def lines(text: str) -> set[int]:
    """Lines of a page, from 0, that are bound to a verdict."""
    groups, _ = _groups(text.split("\n"), fences.lines(text))
    return {at for group in groups for at in range(group.line, group.end + 1)}


def unwritten(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, claim and verdicts of each group that lacks a paragraph for them. One that does ends
    the build on the first machine that comes to such a verdict, which may be a reader's."""
    groups, _ = _groups(text.split("\n"), fences.lines(text))
    for group in groups:
        written = {word for _, _, words in group.parts for word in words}
        if left := [word for word in claims.WORDS if word not in written]:
            yield group.line + 1, group.claim, ", ".join(left)


def _shown(showing: Showing, group: _Bound) -> tuple[set[int], str]:
    """Numbers of the lines that stay, and the gap that stands there if none does."""
    result = claims.evaluate(showing, group.claim)
    if showing.collecting:
        return {at for first, last, _ in group.parts for at in range(first, last)}, ""
    if result.word == claims.NOT_RECORDED:
        return set(), spans.gap(*result.found)
    for first, last, words in group.parts:
        if result.word in words:
            return set(range(first, last)), ""
    written = ", ".join(word for _, _, words in group.parts for word in words)
    raise AnatomyError(
        f"on {showing.machine} the verdict of {group.claim} is {result.word!r}, and the paragraphs "
        f"here are written for {written} alone. Write one for [[when {result.word}]]. "
        f"{result.evidence}"
    )


def _groups(lines: list[str], fenced: set[int]) -> tuple[list[_Bound], list[tuple[int, str]]]:
    """Groups of bound paragraphs, and (line, problem) of what can't be read as one."""
    groups, wrong = [], []
    group: _Bound | None = None
    start, words = 0, []
    for at, line in enumerate(lines):
        found = None if at in fenced else _LINE.match(line)
        if not found:
            continue
        when = _WHEN.match(found["what"])
        opens = bool(when and when["claim"])
        if group is None and not opens:
            wrong.append((at, HOW))
            continue
        if group is not None:
            group.parts.append((start, at, words))
            if found["what"] == "end":
                group.end = at
                groups.append(group)
                group = None
                continue
            if opens:
                wrong.append((at, "paragraphs bound to another claim begin here before [[end]]."))
        else:
            group = _Bound(when["claim"], at, found["indent"])
        try:
            words = _words(when["words"] if when else "")
        except AnatomyError as error:
            wrong.append((at, str(error)))
            words = []
        taken = {word for _, _, others in group.parts for word in others}
        if twice := [word for word in words if word in taken]:
            wrong.append((at, f"a paragraph for {twice[0]!r} stands above already."))
        start = at + 1
    if group is not None:
        wrong.append((group.line, "these paragraphs are never closed; write [[end]] after them."))
    return groups, wrong


def _words(text: str) -> list[str]:
    words = [" ".join(word.split()) for word in text.split(",")]
    for word in words:
        if word not in claims.WORDS:
            raise UnknownName("verdict", word, claims.WORDS)
    if len(set(words)) < len(words):
        raise BadParameter("a verdict is named twice.")
    return words
