"""Prose without typed figures: finds measured numbers on a page that nobody can trace.

A figure such as `1.8×`, `3.2 TB/s`, `25 ms` or `40 %` in the text of a page or in a caption is
either a reference to a recording, or a fact that says where it is from:

    [[cited: 4.8 TB/s | NVIDIA, H200 datasheet]]     somebody else's figure
    [[given: 0.3 s | the budget of an estimate]]      chosen by us, or plain arithmetic

Above a paragraph or a table that is full of such figures one comment stands for all of them, up to
the next empty line: `<!-- given: the rules, committed before the run -->`, or `cited`.

Sizes (4096, 16 MiB), counts and the 95 % of an interval are no measurements and stand as they are.
Code, comments, links' targets and what stands in `[[...]]` are not looked at.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from anatomy.figures.text import fences, inline

_NUMBER = r"(?<![\w.,/-])\d+(?:[.,]\d+)*(?:\s?(?:-|–|to)\s?\d+(?:\.\d+)?)?"
_UNITS = (
    # A multiplication sign that belongs to the number, and not to a shape as in 4096 × 4096.
    r"(?:×|x)(?![\w])(?!\s?\d)",
    r"[\s-]?times\s(?:as|faster|slower|more|less|longer|the)\b",
    r"\s?%(?!\s(?:interval|confidence))",
    r"\s?(?:[kMGTP]?(?:B/s|FLOP/s|FLOPS|FLOPs/s|OP/s)|GB/sec)\b",
    r"\s?(?:ns|µs|us|ms|s|seconds|microseconds|milliseconds|nanoseconds|minutes)\b",
    r"\s?(?:W|MHz|GHz|°C)(?![\w])",
)
FIGURE = re.compile(rf"{_NUMBER}(?:{'|'.join(_UNITS)})")
_WHOLE_BLOCK = re.compile(
    r"<!--\s*(?:given|cited):\s*\S[^>]*-->[ \t]*\n(?:[ \t]*\S.*(?:\n|$))*", re.MULTILINE
)
_LEVEL = re.compile(r"^95\s?%$")  # the level of every interval of this site
# What is no prose: it becomes blanks, so that every line keeps its number.
_HIDDEN = re.compile(
    r"\]\([^()\s]*\)|<[A-Za-z/][^<>]*>|\{[^{}\n]*\}|https?://\S+|^\[[^\]]+\]:.*$", re.MULTILINE
)


def figures(text: str) -> list[tuple[int, str]]:
    """Line and wording of each figure that was typed on a page, front matter included."""
    fenced = fences.lines(text)
    prose = "\n".join("" if n in fenced else line for n, line in enumerate(text.split("\n")))
    for pattern in (_WHOLE_BLOCK, inline.SKIPPED_OR_REFERENCE, _HIDDEN):
        prose = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), prose)
    found = [(prose.count("\n", 0, each.start()) + 1, each[0]) for each in _in(prose)]
    for line, caption in _captions(text):
        plain = inline.SKIPPED_OR_REFERENCE.sub(" ", caption)
        found += [(line, each[0]) for each in _in(_HIDDEN.sub(" ", plain))]
    return sorted((line, " ".join(typed.split())) for line, typed in found)


def problems(name: str, text: str) -> list[str]:
    """One sentence with `page.md:line` for each typed figure of the page called `name`."""
    return [
        f"{name}:{line}: the figure {typed!r} is typed by hand. Refer to its recording, or say "
        f"where it is from: [[cited: {typed} | SOURCE]] or [[given: {typed} | REASON]]."
        for line, typed in figures(text)
    ]


def on_pages(docs: Path, names: list[str] | None = None) -> list[str]:
    """The problems of the pages called `names`, by default of every page under `docs`."""
    paths = [docs / name for name in names] if names else sorted(docs.rglob("*.md"))
    texts = {path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    return [problem for name, text in texts.items() for problem in problems(name, text)]


def _in(prose: str) -> Iterator[re.Match]:
    return (found for found in FIGURE.finditer(prose) if not _LEVEL.match(found[0]))


def _captions(text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of every string that an executed block passes on."""
    for fence in fences.find(text):
        if not fence.executes:
            continue
        try:
            tree = ast.parse(fence.code)
        except SyntaxError:  # which the build reports with its line
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield fence.line + node.lineno, node.value
