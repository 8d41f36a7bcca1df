"""A page's written tables: each names its columns, so that on a phone its rows can be cards."""

import json
import re
from html import escape, unescape

LEAST = 3  # columns; a narrower table fits a phone as it is
_TABLE = re.compile(
    r"""(?P<abreast><div class="abreast">\s*)?<table>(?=\s*<thead>\s*<tr>(?P<heads>.*?)</tr>)""",
    re.DOTALL,
)
_HEAD = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)


def named(html: str) -> str:
    """A page whose tables of Markdown have the names of their columns in their style, as those of
    figures do (`figures.tables.wrapped`); the stylesheet puts them before the cells of a card.
    One inside `<div class="abreast" markdown>`, whose columns are to be compared, stays a table."""
    return _TABLE.sub(_opening, html)


def _opening(found: re.Match) -> str:
    heads = [
        unescape(re.sub(r"<[^>]*>", "", each)).strip() for each in _HEAD.findall(found["heads"])
    ]
    if len(heads) < LEAST or found["abreast"]:
        return found[0]
    # A string of JSON is one of CSS.
    said = ((at, json.dumps(name, ensure_ascii=False)) for at, name in enumerate(heads, 1))
    style = ";".join(f"--c{at}:{name}" for at, name in said if at > 1 and len(name) > 2)
    return f'<table style="{escape(style)}">'
