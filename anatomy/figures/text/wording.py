"""How pages are worded, so that a newcomer can read them: what `prose` holds them to, by page.

- At most three numbers in a sentence: typed figures and references that show a number, of which a
  `range` shows three. Sizes, names of formats and counts are none. A fourth belongs into a table or
  a chart.
- At most three numbers and three sentences in a page's answer, the paragraph marked `.lead`.
- A sentence that a program wrote, `[[claim:ID]]` or `[[claim:ID | evidence]]`, stands in a fold, a
  table or a caption. In prose a chip says the same: `[[claim:ID | verdict]]`.
- Words of the field: `wording.toml` has what was written for them, and what to write.
- An abbreviation in capitals is in the glossary, or in the list of those that everybody knows.

Folds (`???`, `<details>`), tables and fences are left out of the first three, and captions are read
for the last two alone. Pages in `not_yet` of `wording.toml` are counted and don't fail.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from anatomy.figures.text import fences, frontmatter, glossary, inline, prose
from anatomy.table import columns

RULES = Path(__file__).with_name("wording.toml")
MOST_NUMBERS = 3
NUMBERS, MACHINE_MADE, WORDS, ABBREVIATIONS = "numbers", "made sentences", "words", "abbreviations"
LEAD, MOST_SENTENCES = "leads", 3
Problem = tuple[int, str, str]  # line, kind, sentence

_NUMBER = "\1"  # stands in a sentence for each number of a reference
_MADE = ("", "evidence", "condition")  # parts of a claim that are sentences of a program
_NO_NUMBERS = ("machine", "index", "end", "when")
_ABBREVIATION = re.compile(r"(?<![\w.&#/-])[A-Z][A-Z0-9]*[A-Z][A-Z0-9]*s?(?![\w/-])")
_LEAD = re.compile(r"^\{[^}\n]*\.lead\b[^}\n]*\}", re.MULTILINE)
_FOLD = re.compile(r"^(?P<indent>[ \t]*)\?\?\?\+?[ \t]")
_TABLE_LINE = re.compile(r"^[ \t]*\|.*$")


def on_pages(docs: Path, names: list[str] | None = None) -> tuple[list[str], dict[str, Counter]]:
    """What is wrong with the wording of pages, and how often on each that waits to be rewritten."""
    paths = [docs / name for name in names] if names else frontmatter.files_in(docs)
    known = docs / glossary.PAGE
    explained = known.read_text(encoding="utf-8") if known.exists() else ""
    wrong, waiting = [], {}
    for name, text in (frontmatter.page_of(path, docs) for path in paths):
        found = problems(text, explained)
        if name not in _rules()["not_yet"]:
            wrong += [f"{name}:{line}: {said}" for line, _, said in found]
        elif found:
            waiting[name] = Counter(kind for _, kind, _ in found)
        else:
            wrong.append(f"{name}: it breaks no rule. Take it off `not_yet` in {RULES.name}.")
    return wrong, waiting


def problems(text: str, explained: str = "") -> list[Problem]:
    """What is wrong with the wording of one page; `explained` is the glossary's Markdown."""
    found = [*_numbers(text), *_lead(text), *_made(text), *_words(text)]
    return sorted([*found, *_abbreviations(text, explained)])


def _numbers(text: str) -> Iterator[Problem]:
    plain = _with_numbers(_open(text))
    for sentence in prose.SENTENCE.finditer(plain):
        count = _count(sentence[0])
        if count > MOST_NUMBERS:
            at = sentence.end() - len(sentence[0].lstrip())
            yield (
                1 + plain.count("\n", 0, at),
                NUMBERS,
                f"{count} numbers in one sentence, and {MOST_NUMBERS} are the most a reader takes "
                "in. Put them into a table or a chart, and say what it shows.",
            )


def _lead(text: str) -> Iterator[Problem]:
    plain = _open(text)
    if not (mark := _LEAD.search(plain)):
        return
    start = plain.rfind("\n\n", 0, mark.start()) + 2 if "\n\n" in plain[: mark.start()] else 0
    said = _with_numbers(plain[start : mark.start()])
    count, sentences = _count(said), sum(bool(s[0].strip()) for s in prose.SENTENCE.finditer(said))
    if count > MOST_NUMBERS or sentences > MOST_SENTENCES:
        yield (
            1 + plain.count("\n", 0, start),
            LEAD,
            f"the answer of the page has {count} numbers in {sentences} sentences, and at most "
            f"{MOST_NUMBERS} in {MOST_SENTENCES} are read at a glance. Say the rest further down.",
        )


def _with_numbers(text: str) -> str:
    """The text with a mark for each number that a reference shows, and without what is no prose."""
    return prose.HIDDEN.sub(prose.blank, inline.SKIPPED_OR_REFERENCE.sub(_counted, text))


def _count(plain: str) -> int:
    """How many numbers a reader sees in such a text."""
    return plain.count(_NUMBER) + len(prose.FIGURE.findall(plain))


def _made(text: str) -> Iterator[Problem]:
    plain = _open(text)
    for found in inline.SKIPPED_OR_REFERENCE.finditer(plain):
        body = " ".join((found["body"] or "").split())
        target, part = _parts(body)
        if target.startswith("claim:") and part in _MADE:
            yield (
                1 + plain.count("\n", 0, found.start()),
                MACHINE_MADE,
                f"a program writes the sentence of [[{body}]]. Say it in your own words beside "
                f"[[{target} | verdict]], or put it into a fold or a table.",
            )


def _words(text: str) -> Iterator[Problem]:
    for line, plain in _lines(text):
        for pattern, instead in _rules()["instead"]:
            for found in pattern.finditer(plain):
                said = " ".join(found[0].split())
                yield line + plain.count("\n", 0, found.start()), WORDS, f"{said!r}: {instead}."


def _abbreviations(text: str, explained: str) -> Iterator[Problem]:
    terms = glossary.of(explained).terms
    known = {*_rules()["known"], *(name for term in terms for name in term.names)}
    for line, plain in _lines(text):
        for found in _ABBREVIATION.finditer(plain):
            if found[0] not in known:
                yield (
                    line + plain.count("\n", 0, found.start()),
                    ABBREVIATIONS,
                    f"{found[0]} is explained nowhere: add it to docs/{glossary.PAGE}, or write it "
                    "out.",
                )


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """First line and text of what a reader sees, captions included, without code and references."""
    for line, seen in prose.seen(text, fences.lines(text)):
        yield (
            line,
            prose.HIDDEN.sub(prose.blank, inline.SKIPPED_OR_REFERENCE.sub(prose.blank, seen)),
        )


def _open(text: str) -> str:
    """The prose of a page: the rest (front matter, fences, folds, tables) are empty lines."""
    lines, hidden = text.split("\n"), fences.lines(text)
    if lines and lines[0].rstrip() == "---":
        hidden |= set(range(next((n for n in range(1, len(lines)) if lines[n] == "---"), 0) + 1))
    fold = None  # the indent of the fold that a line is in
    for at, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if fold is not None and line.strip() and indent <= fold:
            fold = None
        if fold is not None or _TABLE_LINE.match(line):
            hidden.add(at)
        elif at not in hidden and (opening := _FOLD.match(line)):
            fold = len(opening["indent"])
            hidden.add(at)
    kept = "\n".join("" if at in hidden else line for at, line in enumerate(lines))
    return re.sub(r"<details.*?</details>", prose.blank, kept, flags=re.DOTALL)


def _counted(found: re.Match) -> str:
    """A reference as so many marks as it shows numbers; blanks in place of code and comments."""
    blank = prose.blank(found)
    body = found["body"]
    return blank if not body else _NUMBER * _shown_by(*_parts(body)) + blank


def _shown_by(target: str, part: str) -> int:
    """How many numbers a reference shows."""
    kind, colon, rest = target.partition(":")
    if colon and re.fullmatch(r"\w+", kind):
        if kind == "claim":
            return {"measured": MOST_NUMBERS, "claimed": 1}.get(part, 0)
        if kind in ("cited", "given"):
            return int(bool(prose.FIGURE.search(rest)))
        return int(kind not in _NO_NUMBERS)
    if part == "range":
        return MOST_NUMBERS
    column = columns.column(target.rpartition(".")[2].strip())
    return int(column.kind in (columns.NUMBER, columns.COUNT))


def _parts(body: str) -> tuple[str, str]:
    """What a reference is to, and what of it is shown."""
    before, bar, after = " ".join(body.split()).rpartition(" | ")
    return (before, after) if bar else (after, "")


@cache
def _rules() -> dict:
    said = tomllib.loads(RULES.read_text(encoding="utf-8"))
    pairs = [
        (re.compile(each["wording"], re.IGNORECASE), f"write {each['write']}")
        for each in said["instead"]
    ]
    return said | {"instead": pairs}
