"""Fenced code of a Markdown page: which blocks are executed, and whether their options are right.

The Markdown extension takes a fence that it can't read for ordinary text, and markdown-exec takes
an option it does not know for an attribute: either way a page loses its figures without a word.
Here what they would swallow is a problem with a line number.
"""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from anatomy.table.errors import close_names

LANGUAGE = "python"  # the one language that is executed

_SWITCH = ("on", "off", "yes", "no", "true", "false", "1", "0")
_OFF = ("off", "no", "false", "0")
_PLACES = ("above", "below", "block", "console", "tabbed-left", "tabbed-right")
# Option of an executed block -> its values, None for any text.
EXEC_OPTIONS = {
    "exec": _SWITCH,
    "html": _SWITCH,
    "updatetoc": _SWITCH,
    "source": _PLACES,
    **dict.fromkeys(("id", "session", "result", "tabs")),
}
SHOWN_OPTIONS = dict.fromkeys(("title", "linenums", "hl_lines"))

_OPENING = re.compile(r"^(?P<prefix>[> \t]*)(?P<marker>`{3,}|~{3,})(?P<header>[^\n]*)$")
_LANGUAGE = re.compile(r"[\w#.+-]+")  # what the Markdown extension takes for one
_TOKEN = re.compile(
    r"""(?P<key>[A-Za-z][\w-]*)(?:=(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>\S*)))?"""
    r"|[^ \t].*"  # the rest, from what is no option
)


@dataclass(frozen=True)
class Fence:
    """One fenced block."""

    line: int  # of the opening fence in the page, from 1
    end: int  # line of the closing fence; beyond the page's last where it is never closed
    language: str  # the word after the fence, or an empty text
    options: dict[str, str]  # a flag without value has an empty text
    code: str  # without the fence's own indentation
    problems: list[str]  # what is wrong with it, one sentence each

    @property
    def executes(self) -> bool:
        """Whether the page asks for it to be run."""
        return self.options.get("exec", "off").lower() not in ("", *_OFF)


def find(text: str) -> Iterator[Fence]:
    """The fences of a page, in order; a fence inside another one is the other one's text."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        opening = _OPENING.match(lines[at])
        if not opening or "`" in opening["header"]:
            at += 1
            continue
        prefix, marker = opening["prefix"], opening["marker"]
        closing = re.compile(rf"^[> \t]*{re.escape(marker)}[ \t]*$")
        end = next((n for n in range(at + 1, len(lines)) if closing.match(lines[n])), None)
        last = len(lines) if end is None else end
        body = [line.removeprefix(prefix) for line in lines[at + 1 : last]]
        yield _fence(at + 1, last + 1, opening["header"], "\n".join(body), closed=end is not None)
        # An opening that nothing closes is text, and so is not the end of other fences.
        at = at + 1 if end is None else end + 1


def first_figure(
    text: str, printed: Mapping[str, str], marked: Container[str] | None = None
) -> int | None:
    """How many lines of a page its first figure ends after, with the other tabs or the fold that it
    is in, by what its blocks printed; None where it has none above its first section. Of blocks
    that are `marked` the first, in whichever section."""
    lines = text.split("\n")
    for fence in find(text):
        place = fence.options.get("id", "")
        if marked is None and any(line.startswith("## ") for line in lines[: fence.line - 1]):
            return None
        if marked is not None and place not in marked:
            continue
        if re.search("<figure|<!--picture", printed.get(place, "")):
            rest = enumerate(lines[fence.end :], fence.end)
            return next((at for at, line in rest if re.match(r"(?!===)\S", line)), len(lines))
    return None


def lines(text: str) -> set[int]:
    """Lines of a page, from 0, that are part of a fence."""
    return {at for fence in find(text) for at in range(fence.line - 1, fence.end)}


def problems(text: str) -> list[tuple[int, str]]:
    """Line and sentence of everything that is wrong with the fences of a page."""
    found, seen = [], {}
    for fence in find(text):
        found += [(fence.line, problem) for problem in fence.problems]
        name = fence.options.get("id")
        if name and seen.setdefault(name, fence.line) != fence.line:
            taken = f'id="{name}" is taken by the block at line {seen[name]} of this page.'
            found.append((fence.line, taken))
    return found


def with_places(text: str, page: str, offset: int = 0) -> str:
    """The page with each executed block's id set to its place, `page.md:line`. Its own id, or its
    number, goes on to prefix the ids of headings that it prints, so that those do not change when
    lines are added above."""
    lines = text.split("\n")
    for number, fence in enumerate(f for f in find(text) if f.executes):
        header = lines[fence.line - 1]
        own = fence.options.get("id") or f"block-{number + 1}"
        header = re.sub(r"""[ \t]+id=("[^"]*"|'[^']*')""", "", header)
        added = f' id="{page}:{fence.line + offset}" idprefix="{own}-"'
        lines[fence.line - 1] = header + added
    return "\n".join(lines)


def _fence(line: int, end: int, header: str, code: str, *, closed: bool) -> Fence:
    language, rest = _language(header.strip())
    options, wrong = _options(rest)
    fence = Fence(line, end, language, options, code, wrong)
    wrong += ([] if closed else ["the fence is never closed."]) + _misused(fence, header)
    return fence


def _language(header: str) -> tuple[str, str]:
    """Language and options of ` ```python title="x" ` and of ` ``` {.python title="x"} `."""
    word, _, rest = header.partition(" ")
    if word.startswith("{") or "=" in word:
        word, rest = "", header
    rest = rest.strip()
    if rest.startswith("{") and rest.endswith("}"):
        rest = rest[1:-1].strip()
    classes = [part[1:] for part in rest.split() if part.startswith(".")]
    rest = " ".join(part for part in rest.split(" ") if not part.startswith((".", "#")))
    return word.lstrip(".") or (classes[0] if classes else ""), rest


def _options(text: str) -> tuple[dict[str, str], list[str]]:
    options, wrong = {}, []
    for token in _TOKEN.finditer(text):
        key, bare = token["key"], token["bare"]
        if key is None:
            wrong.append(f'{token[0]!r} can\'t be read as options, such as html="1".')
            break
        if bare is not None:
            value = bare.strip("\"'")
            wrong.append(f'the option {key}={bare} must be quoted: {key}="{value}".')
        elif key in options:
            wrong.append(f"the option {key} is given twice.")
        options[key] = token["double"] or token["single"] or bare or ""
    return options, wrong


def _misused(fence: Fence, header: str) -> list[str]:
    """Options that markdown-exec would pass over in silence."""
    wrong = []
    if fence.language and not _LANGUAGE.fullmatch(fence.language):
        wrong.append(f"{fence.language!r} can't be read as a language, such as python.")
    known = EXEC_OPTIONS | SHOWN_OPTIONS
    for key, value in fence.options.items():
        if key not in known:
            near = close_names(key, known)
            hint = f" Did you mean {near[0]}?" if near else ""
            wrong.append(f"a code block has no option {key!r}.{hint} Known: {', '.join(known)}.")
        elif known[key] and value.lower() not in known[key]:
            wrong.append(f"{key}={value!r} must be one of {', '.join(known[key])}.")
    if fence.executes and fence.language != LANGUAGE:
        wrong.append(f"only {LANGUAGE} blocks are executed, and this one is {fence.language!r}.")
    if fence.executes and "{" in header.partition("=")[0]:
        # The Markdown extension takes such a fence for ordinary text, or drops its options.
        wrong.append('an executed block has its options without braces: ```python exec="on".')
    if fence.executes and "--8<--" in fence.code:
        wrong.append(
            "an executed block may not include a snippet: pages call anatomy.page, and what is "
            "measured runs in the recorder. Show the snippet in a block without exec."
        )
    idle = [key for key in fence.options if key in EXEC_OPTIONS and key not in ("exec", "id")]
    if idle and "exec" not in fence.options:
        wrong.append(f'the option {idle[0]} does nothing without exec="on".')
    return wrong
