"""What is put into a sentence: a recorded value, a cited one, a gap. It is HTML, escaped as all is;
`inert` alone keeps Markdown from reading anything into it."""

import re
from html import escape

from anatomy.record.showing import Found

# Characters that Markdown would read as markup, in text and inside a tag's quotes alike.
_MARKDOWN = str.maketrans({c: f"&#{ord(c)};" for c in "\\`*_[]{}|~^=+!\n"})
_QUOTED_OR_TEXT = re.compile(r'"[^"<>]*"(?=[^<>]*>)|[^<>]+(?=<|$)')
LONG = 30  # characters: more than a figure with its interval
STALE = "†"  # at what is out of date
_BEGINS_BLOCK = re.compile(r"[^\w<&]|\d+[.)]")  # a heading, a list, a rule at the start of a line


class Markdown(str):
    """What a reference gives for Markdown to read, as if it had been written on the page."""


def inert(html: str) -> str:
    """HTML into which Markdown reads nothing, whatever stands in its text and its attributes."""
    if isinstance(html, Markdown):
        return html
    if _BEGINS_BLOCK.match(html):
        html = f"&#{ord(html[0])};{html[1:]}"
    return _QUOTED_OR_TEXT.sub(lambda found: found[0].translate(_MARKDOWN), html)


def figure(kind: str, text: str, origin: str) -> str:
    """A figure with its origin on hover, by tap and by the tab key; `kind`, its class, is measured,
    cited or given; what is `LONG` may be broken over two lines."""
    kind += " long" if len(text) > LONG else ""
    return f'<span class="{kind}" tabindex="0" title="{escape(origin)}">{escape(text)}</span>'


def marks(*found: Found) -> str:
    """Marks for recordings that are of another machine than the one shown, and for those that are
    not current; empty where all are neither, or are missing."""
    return elsewhere(*found) + stale(*found)


def stale(*found: Found) -> str:
    """A mark for recordings that are not current; a page's badge says what it means."""
    old = [each for each in found if each.freshness.state not in ("current", "missing")]
    if not old:
        return ""
    why = escape(f"Out of date: {old[0].freshness.reason} Mend it: {old[0].command}")
    how = 'role="note" aria-label="out of date"'
    return f'<span class="stale" {how} title="{why}">{STALE}</span>'


# Of a recording that this machine has too.
OTHER_ROWS = (
    "On this machine other sizes were measured, such as those of its cache, or what this is read "
    "together with was not."
)


def elsewhere(*found: Found) -> str:
    """A mark with the name of the published machine that figures are of, where one stands in."""
    borrowed = [each for each in found if each.instead_of and each.recording]
    if not borrowed:
        return ""
    machine = borrowed[0].recording.data["machine"]
    lacking = [each.command for each in borrowed if each.lacking]
    told = f"Not measured on this machine yet: {lacking[0]}" if lacking else OTHER_ROWS
    why = escape(told)
    name = escape(machine.get("gpu") or machine["slug"])
    # The stylesheet repeats a name within a paragraph by a ditto mark.
    return f'<span class="tag elsewhere" title="{why}"><span>{name}</span></span>'


def gap(*found: Found) -> str:
    """What stands in a sentence in place of a value that was not recorded yet."""
    missing = next((each for each in found if each.recording is None), found[0])
    # The stylesheet shows the command at the first gap of a paragraph, a list or a table only.
    command = escape(missing.command)
    if missing.failure:
        why = f"could not be measured on this machine: {missing.failure.reason}"
        return f'<span class="gap-inline" title="{command}">{escape(why)}</span>'
    told = f'<span class="gap-command">: <code>{command}</code></span>'
    return f'<span class="gap-inline" title="{command}">not recorded yet{told}</span>'


def gap_because(reason: str, command: str = "") -> str:
    """Why there is no value, in its place, and the command that would mend it."""
    mend = f": <code>{escape(command)}</code>" if command else ""
    return f'<span class="gap-inline">{escape(reason)}{mend}</span>'
