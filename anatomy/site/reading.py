"""How long a page takes to read and what a reader should know before, in one small line."""

import re
from collections.abc import Sequence
from html import escape, unescape
from math import ceil

WORDS_A_MINUTE = 220
CODE_LINES_A_MINUTE = 30
_CODE = re.compile(r"<pre\b.*?</pre>", re.DOTALL)
# What is looked at, unfolded or jumped over, and not read word by word.
_NOT_READ = re.compile(
    r"<!--.*?-->|<(?P<name>figure|table|details|aside|script|style|svg)\b.*?</(?P=name)>", re.DOTALL
)
_TAG = re.compile(r"<[^>]*>")


def minutes(html: str) -> int:
    """How long the words and the code of a page take to read, in whole minutes from 1."""
    lines = sum(_plain(code).strip().count("\n") + 1 for code in _CODE.findall(html))
    words = len(_plain(_NOT_READ.sub(" ", _CODE.sub(" ", html))).split())
    return max(1, ceil(words / WORDS_A_MINUTE + lines / CODE_LINES_A_MINUTE))


def with_line(html: str, needs: Sequence[str]) -> str:
    """A page with its line under the heading; as it is where the page `needs` nothing."""
    if not needs:
        return html
    said = f"{minutes(html)} min · you should know: {escape(', '.join(needs))}"
    line = f'<p class="reads" data-search-exclude>{said}</p>'
    heading, end, rest = html.partition("</h1>")
    return f"{heading}{end}\n{line}{rest}" if end else f"{line}\n{html}"


def _plain(html: str) -> str:
    return unescape(_TAG.sub("", html))
