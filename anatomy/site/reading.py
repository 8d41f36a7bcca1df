"""How long a page takes to read and what a reader should know before, in one small line.

One measure for all pages: the words in sight, code and tables among them, with all folds closed and
one tab of each set open. Words in a drawing are looked at, and not read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape, unescape
from math import ceil

WORDS_A_MINUTE = 200
# Most of a page, and no words.
_UNSEEN = re.compile(r"<(script|style|svg)\b.*?</\1>|<!--.*?-->", re.DOTALL)
# An end or a beginning with its attributes, or text: Python's parser of HTML takes three times as
# long, which over all pages is seconds.
_PART = re.compile(r"""<(/?)([a-z][\w-]*)((?:[^<>"']|"[^"]*"|'[^']*')*)>|([^<]+|<)""")
_TAB = re.compile(r"""\sclass=["'](?:[^"']*\s)?tabbed-block[\s"']""")
_UNFOLDED = re.compile(r"\sopen(?![\w-])")
# What ends with no tag of its own, and what stands within a word.
_EMPTY = {"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
_INSIDE = {"a", "abbr", "b", "code", "em", "i", "mark", "small", "span", "strong", "sub", "sup"}


def minutes(html: str) -> int:
    """How long the words in sight of a page take to read, in whole minutes from 1."""
    return max(1, ceil(len(words(html)) / WORDS_A_MINUTE))


def words(html: str) -> list[str]:
    """What is in sight of a page with its folds closed and the first tab of each set open."""
    found, begun = [], [_Element("")]
    for ends, tag, given, text in _PART.findall(_UNSEEN.sub("", html)):
        around = begun[-1]
        if text:
            found += [text] if around.seen and not around.folded else []
            continue
        found += [] if tag in _INSIDE else [" "]
        if ends:
            last = next((at for at in range(len(begun) - 1, 0, -1) if begun[at].tag == tag), None)
            del begun[last or len(begun) :]
        elif tag not in _EMPTY and not given.endswith("/"):
            seen = around.seen and (tag == "summary" or not around.folded)
            if _TAB.search(given):
                around.tabs += 1
                seen = seen and around.tabs == 1
            folded = tag == "details" and not _UNFOLDED.search(given)
            begun.append(_Element(tag, seen, folded))
    return unescape("".join(found)).split()


def with_line(html: str, needs: Sequence[str], whole: str) -> str:
    """A page with its line under the heading; as it is where the page `needs` nothing. `whole` is
    the page with its figures, which are read with it."""
    if not needs:
        return html
    said = f"{minutes(whole)} min · you should know: {escape(', '.join(needs))}"
    line = f'<p class="reads" data-search-exclude>{said}</p>'
    heading, end, rest = html.partition("</h1>")
    return f"{heading}{end}\n{line}{rest}" if end else f"{line}\n{html}"


@dataclass
class _Element:
    """An element that has begun and not ended."""

    tag: str
    seen: bool = True  # whether it is in sight
    folded: bool = False  # whether nothing in it is but its summary
    tabs: int = 0  # begun in it so far
