"""Several ways to write one thing: tabs on a phone, and all in sight where there is room."""

import re

MOST = 3  # ways in sight at once; more of them stay tabs
_SET = re.compile(
    r'<div class="tabbed-set tabbed-alternate"(?P<inputs>[^>]*>(?:<input\b[^>]*>)+)'
    r'(?P<labels><div class="tabbed-labels">(?:<label\b[^>]*>.*?</label>)+</div>)',
    re.DOTALL,
)
_NAME = re.compile(r"<label\b[^>]*>(.*?)</label>", re.DOTALL)
_BLOCK = '<div class="tabbed-block">'
_CODE = re.compile(r'\s*<div class="(?:[\w-]+ )*highlight">')


def in_sight(html: str) -> str:
    """A page whose tabs of code name each way over its code, and are marked for the stylesheet as
    `ways`. Tabs that begin with anything else, and more than `MOST`, stay as they are."""
    parts, at = [], 0
    for found in _SET.finditer(html):
        names = _NAME.findall(found["labels"])
        begins = _blocks(html, found.end(), len(names))
        code = all(_CODE.match(html, begin) for begin in begins)
        if len(begins) != len(names) or len(names) > MOST or not code:
            continue
        parts += [
            html[at : found.start()],
            found[0].replace('"tabbed-set ', '"tabbed-set ways ', 1),
        ]
        at = found.end()
        for name, begin in zip(names, begins, strict=True):
            parts += [html[at:begin], f'\n<p class="way" data-search-exclude>{name}</p>']
            at = begin
    return "".join(parts) + html[at:]


def _blocks(html: str, start: int, count: int) -> list[int]:
    """Where the next so many blocks begin, after their tags."""
    found = []
    while len(found) < count and (at := html.find(_BLOCK, start)) >= 0:
        start = at + len(_BLOCK)
        found.append(start)
    return found
