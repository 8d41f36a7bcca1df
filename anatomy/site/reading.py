"""How long a page takes to read and what a reader should know before, in one small line.

One measure for all pages: the words in sight, code and tables among them, with all folds closed and
one tab of each set open. Words in a drawing are looked at, and not read.
"""

import re
from collections.abc import Sequence
from html import escape
from html.parser import HTMLParser
from math import ceil

WORDS_A_MINUTE = 200
_UNSEEN = re.compile(r"<(script|style|svg)\b.*?</\1>", re.DOTALL)  # most of a page, and no words
_TAB = "tabbed-block"
# What ends with no tag of its own, and what stands within a word.
_EMPTY = {"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
_INSIDE = {"a", "abbr", "b", "code", "em", "i", "mark", "small", "span", "strong", "sub", "sup"}


def minutes(html: str) -> int:
    """How long the words in sight of a page take to read, in whole minutes from 1."""
    return max(1, ceil(len(words(html)) / WORDS_A_MINUTE))


def words(html: str) -> list[str]:
    """What is in sight of a page with its folds closed and the first tab of each set open."""
    page = _InSight()
    page.feed(_UNSEEN.sub("", html))
    page.close()
    return "".join(page.text).split()


def with_line(html: str, needs: Sequence[str], whole: str) -> str:
    """A page with its line under the heading; as it is where the page `needs` nothing. `whole` is
    the page with its figures, which are read with it."""
    if not needs:
        return html
    said = f"{minutes(whole)} min · you should know: {escape(', '.join(needs))}"
    line = f'<p class="reads" data-search-exclude>{said}</p>'
    heading, end, rest = html.partition("</h1>")
    return f"{heading}{end}\n{line}{rest}" if end else f"{line}\n{html}"


class _Element:
    """An element that has begun and not ended."""

    def __init__(self, tag: str, *, seen: bool, folded: bool) -> None:
        self.tag = tag
        self.seen = seen  # whether it is in sight
        self.folded = folded  # whether nothing in it is but its summary
        self.tabs = 0  # begun in it so far


class _InSight(HTMLParser):
    """The text of a page that is in sight."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self._open = [_Element("", seen=True, folded=False)]

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag not in _INSIDE:
            self.text.append(" ")
        if tag in _EMPTY:
            return
        around, given = self._open[-1], dict(attrs)
        seen = around.seen and (tag == "summary" or not around.folded)
        if _TAB in (given.get("class") or "").split():
            around.tabs += 1
            seen = seen and around.tabs == 1
        self._open.append(_Element(tag, seen=seen, folded=tag == "details" and "open" not in given))

    def handle_endtag(self, tag: str) -> None:
        if tag not in _INSIDE:
            self.text.append(" ")
        begun = [at for at, element in enumerate(self._open) if at and element.tag == tag]
        if begun:
            del self._open[begun[-1] :]

    def handle_data(self, data: str) -> None:
        if self._open[-1].seen and not self._open[-1].folded:
            self.text.append(data)
