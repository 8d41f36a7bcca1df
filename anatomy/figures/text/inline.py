"""References in prose: `[[...]]` becomes a recorded number, a verdict, a limit, or a visible gap.

    [[contiguity.bench.matmul.gpu_warm.sliced_offset_view.ratio | speed]]   5.9× slower
    [[contiguity.bench(dtype=fp16, m=4096).matmul.gpu_warm.contiguous.median_s]]   57.6 µs
    [[contiguity.bench.matmul.gpu_warm.contiguous.median_s | range]]   with its interval: in tables
    [[claim:transposed-view-costs-nothing]]        the sentence, both numbers, verdict, evidence
    [[claim:transposed-view-costs-nothing | verdict]]  its verdict alone, as a chip
    [[claim:transposed-view-costs-nothing | measured]]
    [[claim:transposed-view-costs-nothing | where]]    in which cases it holds, shortly: in tables
    [[claim:transposed-view-costs-nothing | count]]    in how many, and how many are undecided
    [[claim:registers-are-smallest | states]]      a chip on the misconception that it `states`, or
                                                   `refutes`: refuted, confirmed, not decided
    [[limit:matmul fp16]]  [[limit:copy | TB/s.2]]  a ceiling of the machine
    [[seed:fp16-2048.matmul.sliced_offset_view | ratio]]  a figure that the seed published
    [[machine:gpu]]  [[machine:torch]]              what the figures were made on
    [[target:power]]  [[target:power | found]]      a target of the harnesses' comparison
    [[l2:copy]]  [[exponentials:forward N=8192]]    what chapters reckon (their references.py)
    [[cited: 1.8× | WHERE IT STANDS]]  [[given: 0.3 s | WHY]]  a figure that is not ours
    [[calculated: time-to-read-a-gib]]  what a function of a chapter makes of recorded numbers
    [[index: Techniques]]  pages of a section, by what their front matter says
    [[advice: Techniques]]  at the end of a table, lines of such pages
    [[days: all]]  [[days: phase 1]]  [[days: week 1]]  the curriculum, or a part of it

An experiment with its parameters is followed by selectors, each the value of a text column (op,
quantity, variant, ...) or `column=value` (`width=1024`, `training=yes`), and last by the column
wanted. The selectors must meet exactly one row. After the bar stands a format:

    nothing   the digits that the interval pays for, three at most; and of a time whose interval
              spans more than a factor of 2, that interval: `18 µs (8 to 32)`
    speed     of a ratio of times, in one direction: `5.9× slower`, `2.1× faster`, `3% slower`;
              `as fast` where the verdict is `same` alone; where it is undecided what the interval
              leaves open, `about as fast (within 4%)`
    factor    the same without percent, `1.11× slower`: how a table says all of a column's speeds
              where `speed` would say some of them in percent and some as factors
    speed over VARIANT   the speed, the `factor` or the ratio, `x`, over another row of its
              operation and quantity, block by block
    range     the value with its interval, for tables and folds
    expect    what a reader's own should lie between: `41 µs to 63 µs`
    .2f, us   a Python format spec, or a unit

Where one of a paragraph is another machine's, for want of this one's, all are: `of_one_machine`.
Whatever is shown, the exact value, its interval, noise floor, verdict and machine are one hover,
tap or tab key away. A selector with a dot in it is quoted. Code spans, fences and comments are
left alone; `\\[[` is an ordinary bracket. Paragraphs bound to a verdict, `[[when ...]]`, are chosen
first.
"""

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

from anatomy.figures.text import facts, fences, paragraphs, spans, values
from anatomy.judge import rows
from anatomy.record.bounded import bounded, in_words
from anatomy.record.showing import Found, Showing, using
from anatomy.record.signatures import NAME, experiments
from anatomy.table import columns
from anatomy.table.errors import BadParameter, UnknownName

# What is not prose, and what is a reference in it (group `body`).
SKIPPED_OR_REFERENCE = re.compile(
    r"""(?P<comment><!--.*?-->)
    |(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)
    |(?P<escaped>\\\[\[)
    |\[\[(?P<body>(?:[^\[\]]|\[[^\[\]]*\])+?)\]\]
    |(?P<open>\[\[)
    |(?<![\\!])\[(?P<single>\w+(?::|\.\w+[.(])[^\[\]]+)\](?![\[(:])""",
    re.DOTALL | re.VERBOSE,
)
_SPEED = re.compile(r">\d[\d.]*([%×]) (?:faster|slower)\b")  # in the markup of a reference
_EMPTY_LINE = re.compile(r"^[ \t]*$", re.MULTILINE)
_BOX = re.compile(r"^!!! .*\n(?:[ \t]+.*\n|\n)*", re.MULTILINE)
_TOKEN = re.compile(r"""(?:(\w+)=)?(?:"([^"]*)"|'([^']*)'|([^."']+))""")
_LINK = re.compile(r"\[(?P<text>[^\[\]]+)\]\((?P<target>[^()\s]+)\)")

MOST_SAID = 200  # characters of a reference in what is said of it
# A format, and the name of another row than the control.
_OVER = re.compile(rf"({values.SPEED}|{values.FACTOR}|x) over (.+)")
Selector = tuple[str | None, str]  # a column, or None for any that tells rows apart; a value


def replace(showing: Showing, text: str, offset: int = 0) -> tuple[str, list[str]]:
    """A page's Markdown with its references replaced, and a sentence for each that failed."""
    text, wrong = paragraphs.choose(showing, text, offset)
    parts = []
    for chunk, first, prose in _chunks(text):

        def rendered(found: re.Match, *, factor=False, chunk=chunk, first=first) -> str | None:
            showing.line = offset + first + chunk.count("\n", 0, found.start())
            try:
                with using(showing), bounded():
                    return _rendered(showing, found, factor=factor)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if showing.borrowing:  # the machine shown may do without it
                    raise
                said = _flat(found[0])[:MOST_SAID]
                wrong.append(f"{showing.place}: {said}: {in_words(error, 'the reference')}")
                return ""

        if prose:
            references = list(SKIPPED_OR_REFERENCE.finditer(chunk))
            html = {}
            for several in _by_paragraph(chunk, references):
                html |= showing.of_one_machine(
                    lambda several=several: {each.start(): rendered(each) for each in several}
                )
            for each in _in_two_units(chunk, references, html):
                html[each.start()] = rendered(each, factor=True)

            shown = {at: spans.inert(each) for at, each in html.items() if each is not None}
            chunk = _replaced(chunk, references, lambda each, shown=shown: shown.get(each.start()))
        parts.append(chunk)
    return "".join(parts), wrong


def _replaced(
    chunk: str, references: Iterable[re.Match], text: Callable[[re.Match], str | None]
) -> str:
    """A chunk with the `text` of each reference in its place, where it has one."""
    parts, at = [], 0
    for each in references:
        there = text(each)
        parts += [chunk[at : each.start()], each[0] if there is None else there]
        at = each.end()
    return "".join([*parts, chunk[at:]])


def _by_paragraph(chunk: str, references: Iterable[re.Match]) -> Iterator[list[re.Match]]:
    """References that are read together: those of a paragraph, a list or a table, which an empty
    line ends; and those of a box, a question and its answer."""
    ends = [each.start() for each in _EMPTY_LINE.finditer(chunk)]
    boxes = [box.span() for box in _BOX.finditer(chunk)]

    def unit(found: re.Match) -> int:
        at = found.start()
        return bisect(ends, next((start for start, end in boxes if start <= at < end), at))

    for _, several in groupby(references, unit):
        yield list(several)


def _in_two_units(
    chunk: str, references: Sequence[re.Match], html: Mapping[int, str | None]
) -> Iterator[re.Match]:
    """The references in columns of tables that say some ratios as factors and some in percent."""
    plain = _replaced(chunk, references, lambda each: re.sub(r"[^\n]", " ", each[0]))
    said: dict[tuple[int, int], list[tuple[re.Match, str]]] = {}  # by table and column
    for each in references:
        line = plain.rfind("\n", 0, each.start()) + 1
        unit = _SPEED.search(html[each.start()] or "")
        if unit and plain[line:].lstrip(" \t").startswith("|"):
            table = len(_EMPTY_LINE.findall(plain[:line]))  # there are some between two tables
            column = plain.count("|", line, each.start())
            said.setdefault((table, column), []).append((each, unit[1]))
    for column in said.values():
        if len({unit for _, unit in column}) > 1:
            yield from (each for each, _ in column)


def render_text(showing: Showing, text: str) -> str:
    """A caption as HTML: references, `code` and links to pages rendered, the rest escaped."""

    def link(found: re.Match) -> str:
        target = found["target"]
        address = showing.page_link(target) if target.partition("#")[0].endswith(".md") else target
        return f'<a href="{escape(address)}">{found["text"]}</a>'

    def linked(plain: str) -> str:
        return _LINK.sub(link, escape(plain, quote=False))

    parts, at = [], 0
    for found in SKIPPED_OR_REFERENCE.finditer(text):
        parts.append(linked(text[at : found.start()]))
        if (html := _rendered(showing, found)) is not None:
            parts.append(html)
        elif found["ticks"]:
            parts.append(f"<code>{escape(found[0].strip('`').strip(), quote=False)}</code>")
        at = found.end()
    return "".join(parts) + linked(text[at:])


def _rendered(showing: Showing, found: re.Match, *, factor: bool = False) -> str | None:
    """What stands in a reference's place, None for other text; BadParameter where one is meant."""
    if found["open"]:
        raise BadParameter("no ]] closes it. Write \\[[ for two plain brackets.")
    if single := found["single"]:
        name = NAME.match(single)
        known = experiments() if name else facts.references()
        if (name[0] if name else single.partition(":")[0]) in known:
            raise BadParameter(f"a reference stands in two brackets: [[{_flat(single)}]].")
    if not found["body"]:
        return None
    return showing.rowwise(lambda: render(showing, found["body"], factor=factor))


def render(showing: Showing, body: str, *, factor: bool = False) -> str:
    """What stands in the place of `[[body]]`, as HTML that Markdown leaves alone; with a `factor`
    in place of percent, where it says how fast something is, if that is asked for."""
    before, bar, after = _flat(body).rpartition(" | ")
    target, spec = (before, after) if bar else (after, "")
    kind, colon, rest = target.partition(":")
    if kind not in facts.NEEDED and re.search(r"\d{3}", spec):
        raise BadParameter(f"a format has numbers of two digits at most; got {spec[:40]!r}.")
    if colon and kind in facts.references():
        return facts.references()[kind](showing, rest.strip(), spec.strip())
    if target == "end" or re.match(r"when\b", target):
        raise BadParameter(f"this stands on a line of its own: {paragraphs.HOW}")
    if colon and re.fullmatch(r"\w+", kind):
        raise UnknownName("kind of reference", kind, facts.references())
    name, params, selectors, column = parse(target)
    found = showing.find(name, **params)
    ceilings = showing.ceilings_of(found)
    if showing.collecting:
        return ""
    if found.recording is None:
        return spans.gap(found)
    try:
        row, spec = pick(found, selectors, ceilings), spec.strip()
        if over := _OVER.fullmatch(spec):
            row, spec = _over(found, row, column, over[2]), over[1]
        return values.shown(found, row, column, spec, factor=factor)
    except (UnknownName, BadParameter):
        if found.freshness.current:
            raise
        return spans.gap_because("not in the recording, which is out of date", found.command)


def parse(text: str) -> tuple[str, dict[str, str], list[Selector], str]:
    """Read `experiment(param=value, ...).selector.selector.column`, or raise BadParameter."""
    if not NAME.match(text):
        raise BadParameter(
            "a reference begins with an experiment, as in [[contiguity.bench(dtype=fp16).matmul."
            f"gpu_warm.contiguous.median_s]], or with one of {', '.join(facts.references())} and a "
            "colon. Write \\[[ for two plain brackets."
        )
    name, params, rest = _call(text)
    selectors = []
    while rest:
        token = _TOKEN.match(rest, 1) if rest.startswith(".") else None
        if token is None:
            raise BadParameter(f"{rest!r} can't be read; selectors are separated by dots.")
        selectors.append((token[1], token[token.lastindex].strip()))
        rest = rest[token.end() :]
    if not selectors or selectors[-1][0]:
        raise BadParameter("a reference ends with the column wanted, such as .median_s or .ratio.")
    return name, params, selectors[:-1], selectors[-1][1]


def called(text: str) -> tuple[str, dict[str, str]]:
    """Read `experiment(param=value, ...)`, parameters as texts, or raise BadParameter."""
    name, params, rest = _call(text) if NAME.match(text) else ("", {}, text)
    if rest:
        such = "such as compilation.map(task=inference)"
        raise BadParameter(f"{text!r} is no call of an experiment, {such}.")
    return name, params


def _call(text: str) -> tuple[str, dict[str, str], str]:
    """The experiment that a text begins with, its parameters, and what follows."""
    name = NAME.match(text)
    rest, params = text[name.end() :], {}
    if rest.startswith("("):
        inside, closed, rest = rest[1:].partition(")")
        if not closed:
            raise BadParameter("the parameters are never closed by a parenthesis.")
        for part in filter(None, (part.strip() for part in inside.split(","))):
            key, equals, value = part.partition("=")
            if not equals:
                raise BadParameter(f"the parameter {part!r} has no value; write {part}=VALUE.")
            params[key.strip()] = value.strip().strip("\"'")
    return name[0], params, rest


def pick(found: Found, selectors: Sequence[Selector], ceilings: Any) -> rows.Row:
    """The one row that all selectors meet, with what follows from it."""
    left = found.recording.rows
    for column, value in selectors:
        if column is not None and not any(column in row for row in left):
            raise UnknownName("column", column, {name for row in left for name in row})
        kept = [row for row in left if _meets(row, column, value)]
        if not kept:
            known = _columns_of(left) if column is None else [column]
            values = {text for c in known for text in rows.names(left, c)}
            raise UnknownName(column or "value to select a row by", value, values)
        left = kept
    if len(left) > 1:
        apart = rows.telling_apart(left)
        hint = f"Add one of {apart}" if apart else "The rows differ in no column to select them by"
        raise BadParameter(f"it meets {len(left)} rows, and must meet one. {hint}.")
    if not left:
        raise BadParameter(f"the recording of {found.name} has no rows.")
    return rows.derived(left[0], ceilings)


def _over(found: Found, row: rows.Row, column: str, control: str) -> rows.Row:
    """A row with its ratio over another one of its operation and quantity."""
    if column not in ("ratio", "speedup"):
        raise BadParameter(f"over another row there is a ratio or a speedup, and no {column}.")
    place = {name: row.get(name) for name in ("op", "quantity")}
    base = rows.select(found.recording.rows, **place, variants=[control])
    return rows.derived(rows.against([*base, row], control)[-1], None)


def _meets(row: rows.Row, column: str | None, value: str) -> bool:
    if column is not None:
        return column in row and _same(row[column], value)
    return any(text == value and columns.identifies(name) for name, text in row.items())


def _same(there: Any, wanted: str) -> bool:
    if isinstance(there, bool):
        return wanted.lower() in (("true", "yes") if there else ("false", "no"))
    if there is None or isinstance(there, str):
        return str(there).lower() == wanted.lower()
    try:
        return float(there) == float(wanted)
    except (TypeError, ValueError):
        return str(there) == wanted


def _columns_of(table: Sequence[rows.Row]) -> list[str]:
    """Columns of text that tell rows apart."""
    named = [n for row in table for n, value in row.items() if isinstance(value, str)]
    return [name for name in dict.fromkeys(named) if columns.identifies(name)]


def _chunks(text: str) -> Iterator[tuple[str, int, bool]]:
    """Pieces of a page with the line each begins on, and whether it is prose; joined, the page."""
    lines, at = re.split(r"(?<=\n)", text), 0
    for fence in fences.find(text):
        if fence.end > fence.line:
            yield "".join(lines[at : fence.line - 1]), at + 1, True
            yield "".join(lines[fence.line - 1 : fence.end]), fence.line, False
            at = fence.end
    yield "".join(lines[at:]), at + 1, True


def _flat(body: str) -> str:
    return " ".join(body.split())
