"""Prose that rests on recordings: finds what a page says of a measurement on its word alone.

A figure such as `1.8×`, `3.2 TB/s`, `25 ms` or `40 %` in the text of a page or in a caption is
either a reference to a recording, or a fact that says where it is from:

    [[cited: 4.8 TB/s | NVIDIA, H200 datasheet]]     somebody else's figure
    [[given: 0.3 s | the budget of an estimate]]      chosen by us, or plain arithmetic

A verdict such as `is faster`, `takes twice` or `gains nothing` would outlive a recording that says
otherwise. It stands in a paragraph of `[[when ...]]`, or in one sentence with a reference to what
decides it. Questions, quotations, premises (`if it is faster`) and how to read a ratio (`below 1 it
is faster`) tell no result. What is so by logic says why in a comment within its sentence, which no
reader sees: `<!-- given: it runs the same kernels -->`.

Above a paragraph or a table one such comment stands for all that is in it, up to the next empty
line: `<!-- given: the rules, committed before the run -->`, or `cited`.

Sizes (4096, 16 MiB), counts and the 95 % of an interval are no measurements and stand as they are.
Code, comments, links' targets and what stands in `[[...]]` are not looked at.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from anatomy.figures.text import fences, frontmatter, inline, paragraphs

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
HIDDEN = re.compile(
    r"\]\([^()\s]*\)|<[A-Za-z/][^<>]*>|\{[^{}\n]*\}|https?://\S+|^\[[^\]]+\]:.*$", re.MULTILINE
)

# A verdict is a verb in the indicative and what it says of a result, with few words between them;
# after "can", "to" or "a host that" (group `none`) and as the first words, an order, it is none.
_VERBS = (
    *("is", "are", "was", "were", "does", "do", "did", "takes?", "took", "runs?", "ran", "needs?"),
    *(
        "costs?",
        "makes",
        "gives?",
        "stays?",
        "keeps?",
        "shows?",
        "pays?",
        "spends?",
        "launch(?:es)?",
    ),
    *(
        "gains?",
        "gained",
        "loses?",
        "lost",
        "saves?",
        "saved",
        "wins?",
        "won",
        "changes?",
        "changed",
    ),
)
_DEGREES = (
    r"(?:about|almost|much|far|no|not|a|all|still|even|often|just|as|at|each|any|bit|\w+ly"
    r"|(?:an?|the) \w+)"
)
_RESULTS = (
    r"the same(?: time| speed| cost)?(?! *(?!as\b)\w)",
    *(
        "nothing",
        "equal(?:ly)?",
        "twice",
        "half",
        "double",
        "faste[rs]t?",
        "slowe[rs]t?",
        "dear(?:er|est)",
    ),
    *("cheape[rs]t?", "longer", "shorter", "more", "less", "fewer", "little", "most of"),
)
VERDICT = re.compile(
    r"(?P<none>\b(?:to|can|could|may|might|must|should|will|would|cannot|that|than) "
    r"(?:not |\w+ly )?)?"
    rf"(?<=[^.?!:;] )(?:(?:{'|'.join(_VERBS)}) (?:{_DEGREES} ){{0,3}}(?:{'|'.join(_RESULTS)})"
    r"|gains|loses|wins|doubles|halves|(?:always|never) (?:pays?|helps?|costs?|saves?))\b"
)
SENTENCE = re.compile(
    r"""(?:(?!\n[ \t]*(?:\n|[-*#|!?=+]|\d+\.)|[.?!][")*_]*\s).)+[.?!]?""", re.DOTALL
)
_PREMISE = re.compile(
    r"\b(?:if|when|where|unless|until|once|as long as|whether|how|what|who|(?:of|for|in) which"
    r"|which of)\b[^,;:]*",
    re.IGNORECASE,
)
_NO_RESULT = re.compile(r"\?\W*$|\b(?:above|below|at) 1\b", re.IGNORECASE)
_DECIDES = re.compile(r"\[\[(?!\s*(?:cited|given|machine|index):)|<!--\s*(?:given|cited):\s*\S")
_DECIDED = "\0"
SHOWN, LABELS = ("caption", "title"), "labels"  # keywords whose texts a reader sees


def figures(text: str) -> list[tuple[int, str]]:
    """Line and wording of each figure that was typed on a page, front matter included."""
    found = []
    for first, prose in seen(text, fences.lines(text)):
        plain = HIDDEN.sub(blank, inline.SKIPPED_OR_REFERENCE.sub(blank, prose))
        found += [
            (first + plain.count("\n", 0, each.start()), " ".join(each[0].split()))
            for each in FIGURE.finditer(plain)
            if not _LEVEL.match(each[0])
        ]
    return sorted(found)


def verdicts(text: str) -> list[tuple[int, str]]:
    """Line and wording of each verdict whose sentence holds nothing that decides it."""
    found = []
    for first, prose in seen(text, fences.lines(text) | paragraphs.lines(text)):
        plain = HIDDEN.sub(blank, inline.SKIPPED_OR_REFERENCE.sub(_decided, prose))
        for sentence in SENTENCE.finditer(re.sub(r'"[^"]*"', blank, plain)):
            if _DECIDED in sentence[0] or _NO_RESULT.search(sentence[0]):
                continue
            said = " ".join(re.sub(r"[*_\[\]]", "", _PREMISE.sub(",", sentence[0])).split())
            at = sentence.end() - len(sentence[0].lstrip())
            line = first + plain.count("\n", 0, at)
            found += [(line, each[0]) for each in VERDICT.finditer(said) if not each["none"]]
    return sorted(found)


def problems(name: str, text: str) -> list[str]:
    """One sentence with `page.md:line` for each typed figure and bare verdict of a page, and for
    each verdict of a claim that paragraphs bound to it leave out."""
    typed = [
        f"{name}:{line}: the figure {typed!r} is typed by hand. Refer to its recording, or say "
        f"where it is from: [[cited: {typed} | SOURCE]] or [[given: {typed} | REASON]]."
        for line, typed in figures(text)
    ]
    left = [
        f"{name}:{line}: on another machine {claim} may come to {words}. Write a paragraph for it: "
        f"[[when {words}]]."
        for line, claim, words in paragraphs.unwritten(text)
    ]
    bare = [
        f"{name}:{line}: the verdict {said!r} rests on no recording. Refer in its sentence to what "
        "decides it ([[claim:ID | verdict]], or a number), put it under [[when claim:ID is VERDICT"
        "]], or say why it needs none: <!-- given: REASON -->."
        for line, said in verdicts(text)
    ]
    return typed + left + bare


def on_pages(docs: Path, names: list[str] | None = None) -> list[str]:
    """The problems of the pages called `names`, by default of every page under `docs`."""
    paths = [docs / name for name in names] if names else frontmatter.files_in(docs)
    pages = (frontmatter.page_of(path, docs) for path in paths)
    return [problem for page in pages for problem in problems(*page)]


def blank(found: re.Match) -> str:
    """Blanks in place of a text, so that every line keeps its number."""
    return re.sub(r"[^\n]", " ", found[0])


def _decided(found: re.Match) -> str:
    """A mark for what decides a sentence; a word in place of other references and of code."""
    mark = _DECIDED if _DECIDES.match(found[0]) else " " if found["comment"] else "x"
    return re.sub(r"[^\n]", mark, found[0])


def seen(text: str, without: set[int]) -> Iterator[tuple[int, str]]:
    """First line and text of what a reader sees: the page but for some lines, and its captions."""
    lines = ("" if n in without else line for n, line in enumerate(text.split("\n")))
    yield 1, _WHOLE_BLOCK.sub(blank, "\n".join(lines))
    for fence in fences.find(text):
        if not fence.executes:
            continue
        try:
            tree = ast.parse(fence.code)
        except SyntaxError:  # which the build reports with its line
            continue
        for node in _words(tree):
            yield fence.line + node.lineno, node.value


def _words(node: ast.AST) -> Iterator[ast.Constant]:
    """The texts in a block's code that a reader sees. Others name what is shown, an experiment, a
    row or a column: they are what a call is given in place, or under a keyword without words."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node
    elif isinstance(node, ast.keyword) and node.arg == LABELS and isinstance(node.value, ast.Dict):
        for value in node.value.values:  # the keys are names of rows
            yield from _words(value)
    elif not isinstance(node, ast.keyword) or node.arg in (*SHOWN, LABELS):
        named = isinstance(node, ast.Call) and ast.unparse(node.func) != "print"
        for child in ast.iter_child_nodes(node):
            if not (named and isinstance(child, ast.Constant)):
                yield from _words(child)
