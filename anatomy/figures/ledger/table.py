"""The ledger on a page: its counts, its table, and its charts."""

import posixpath
import re
from collections.abc import Callable, Sequence
from html import escape
from textwrap import shorten

from anatomy import claims
from anatomy.claims import Result
from anatomy.claims import ledger as ledger_rows
from anatomy.figures import tables
from anatomy.figures.charts import strips, svg
from anatomy.figures.diagrams.topics import topics
from anatomy.figures.ledger import chart
from anatomy.figures.text import inline, spans
from anatomy.record import signatures
from anatomy.record.showing import Showing, current
from anatomy.table import units
from anatomy.table.errors import lookup

HEADS = ("#row", "verdict", "claim", "#claimed", "#measured", "#deviation", "topic", "machine")
# Over the claims that are about the documents: days counted, versions named, fences of code.
APART = (
    f'<tr class="apart"><th colspan="{len(HEADS)}" scope="rowgroup">About the inherited documents '
    "themselves</th></tr>"
)
DECIDED = (claims.HOLDS, claims.IN_PART, claims.FAILS)  # one way or the other
FARTHEST, MOST_NAMED = 5, 10  # claims farthest off: in the list, and in the first chart
# Recordings that a row links to one by one; more are counted.
MOST_LINKED = 12
LABEL = 44  # letters of a statement beside its mark in a chart
# An interval that reaches 0 has no end on a logarithmic axis: there it ends at this part of it.
BEYOND = 10


def ledger(part: str = "table", *, caption: str | None = None) -> str:
    """The ledger of claims, or one part of it, on every machine with recordings.

        ledger("chart", caption="On the diagonal a claim was right.")

    Args:
        part: `table`, `answer` (in sentences), `open` (how many are not decided), `farthest`
            (numbers that are off by the largest factors), `topics` (verdicts by topic), `counts`
            (of verdicts), `accuracy` (how far off the inherited numbers are, in sentences), `chart`
            (claimed against measured), `names` (measured over claimed, a row for each of the
            claims farthest off), `all names` or `downloads`.
    """
    showing, draw = current(), lookup("part of the ledger", part, PARTS)
    found = ledger_rows.results(showing)
    text = inline.render_text(showing, caption) if caption else ""
    if showing.collecting:
        return ""
    body = draw(showing, found)
    if part not in FIGURES:
        return body
    says = f"<figcaption>{text}</figcaption>" if text else ""
    # No run strip: behind it stand the recordings of all claims, which each row links to.
    return f'<figure class="shown ledger" data-search-exclude>{body}{says}</figure>\n'


def _downloads(showing: Showing, found: Sequence[Result]) -> str:
    links = []
    for name in ledger_rows.DOWNLOADS:
        address = escape(posixpath.relpath(name, showing.url or "."))
        links.append(f'<a href="{address}" download>{name.rpartition(".")[2].upper()}</a>')
    return f'<p class="downloads">All of it as {" and as ".join(links)}.</p>\n'


def _answer(showing: Showing, found: Sequence[Result]) -> str:
    """What to do with a claim, and how many hold on the machine shown, or the one in its place."""
    machine = ledger_rows.counted(showing, found)
    here = [result for result in found if result.machine == machine]
    counted = ledger_rows.counts(here)
    decided = sum(counted[word] for word in DECIDED)
    if decided:
        answer = (
            "Look up performance advice for PyTorch here before you follow it: of "
            f"{decided} claims that were decided on the {chart.called(found, machine)}, "
            f"{counted[claims.HOLDS]} hold and {counted[claims.FAILS]} fail; the rest hold only "
            "under a condition. Measure a number before you plan with it."
        )
    else:
        answer = f"None of {len(here)} claims has a verdict yet."
    if machine != showing.machine:
        answer += f" The recordings of the {chart.called(found, showing.machine)} decide none yet."
    return f'<p class="lead">{answer}</p>\n'


def _open(showing: Showing, found: Sequence[Result]) -> str:
    """How many claims have no answer on the machine shown, or the one in its place, and why."""
    machine = ledger_rows.counted(showing, found)
    here = [result for result in found if result.machine == machine]
    counted = ledger_rows.counts(here)
    return (
        f"<p>The list has {len(here)}. Not decided are {counted[claims.INCONCLUSIVE]} that are "
        f"inconclusive, {counted[claims.NOT_RECORDED]} that wait for a recording, and "
        f"{counted[claims.NOT_MEASURABLE]} that can't be measured here.</p>\n"
    )


def _farthest(showing: Showing, found: Sequence[Result]) -> str:
    """Of the inherited numbers that do not hold, the one of each topic that is farthest off: the
    farthest of those, with the pages that say why."""
    off = chart.comparable(chart.inherited(showing, found))
    off = [each for each in off if each.word in (claims.FAILS, claims.IN_PART)]
    by_topic: dict[str, Result] = {}
    for each in sorted(off, key=chart.factor, reverse=True):
        by_topic.setdefault(each.claim.topic, each)
    lines = []
    for each in [*by_topic.values()][:FARTHEST]:
        page = signatures.signature(each.found[0].name).page
        link = f'<a href="{escape(showing.link_to(page))}">why</a>' if page else ""
        number, seen = escape(each.claim.number), _seen(each)
        lines.append([escape(each.claim.statement), number, seen, tables.chip(each.word), link])
    if not lines:
        return chart.NONE_YET
    heads = ("what was claimed", "#claimed", "#measured", "verdict", "page")
    return tables.listed(heads, lines, "The inherited numbers that are farthest off")


def _topics(showing: Showing, found: Sequence[Result]) -> str:
    """The verdicts of each topic on the machine shown, or the one in its place."""
    machine = ledger_rows.counted(showing, found)
    return topics([result for result in found if result.machine == machine])


def _counts(showing: Showing, found: Sequence[Result]) -> str:
    lines = []
    for machine in dict.fromkeys(result.machine for result in found):
        here = [result for result in found if result.machine == machine]
        read = sum(result.claim.settled is not None for result in here)
        counted = map(str, (*ledger_rows.counts(here).values(), read))
        lines.append([chart.called(found, machine), *counted])
    heads = (
        "machine",
        *(f"#{word}" for word in claims.ALL_WORDS),
        f"#of all, {ledger_rows.BY_READING}",
    )
    return tables.listed(heads, lines, "Verdicts by machine", "counts")


def _table(showing: Showing, found: Sequence[Result]) -> str:
    here = escape(ledger_rows.counted(showing, found))
    machines = {each.machine for each in found}
    names = {machine: chart.called(found, machine) for machine in machines}
    heads = "".join(
        f'<th scope="col"{" class=n" if head.startswith("#") else ""}>{head.lstrip("#")}</th>'
        for head in HEADS
    )
    bodies = ""
    for trivia in (False, True):
        mine = [each for each in found if each.claim.trivia == trivia]
        if lines := [_row(showing, each, names[each.machine]) for each in mine]:
            apart = APART if trivia else ""
            bodies += f'<tbody data-here="{here}">{apart}{"".join(lines)}</tbody>'
    markup = f"<thead><tr>{heads}</tr></thead>{bodies}"
    columns = [head.removeprefix("#") for head in HEADS]
    return tables.wrapped(markup, "The ledger of claims", columns, "claims-ledger")


def _row(showing: Showing, result: Result, machine: str) -> str:
    """A claim on one machine, which is called `machine`; `data-` attributes are what a script
    filters and sorts by."""
    claim = result.claim
    source = claim.place.partition(", on ")[0] if claim.row else "papers" if claim.place else "ours"
    marks = {"topic": claim.topic, "verdict": result.word, "machine": result.machine}
    data = " ".join(f'data-{n}="{escape(v)}"' for n, v in (marks | {"source": source}).items())
    number = f'<span class="cited">{escape(claim.number)}</span>' if claim.number else tables.NONE
    marked = tables.chip(result.word) + spans.marks(*result.found)
    chip = marked + tables.remark(ledger_rows.where(result), result.condition)
    cells = [
        (claim.row, "" if claim.row is None else str(claim.row)),
        (claims.ALL_WORDS.index(result.word), chip),
        (claim.row, _statement(showing, result)),
        (claim.claimed and claim.claimed[0], number),
        (result.measured and result.measured.value, _seen(result)),
        _deviation(result),
        (None, escape(claim.topic)),
        (None, machine),
    ]
    markup = "".join(_cell(head, *cell) for head, cell in zip(HEADS, cells, strict=True))
    return f'<tr id="{escape(ledger_rows.anchor(result))}" {data}>{markup}</tr>'


def _cell(head: str, key: float | None, text: str) -> str:
    """A cell, with what a script sorts it by."""
    kinds = ("n" if head.startswith("#") else "", "none" if text == tables.NONE else "")
    classes = " ".join(filter(None, kinds))
    sorted_by = "" if key is None else f' data-key="{key:.6g}"'
    if head.removeprefix("#") == "claim":
        return f'<th scope="row"{sorted_by}>{text}</th>'
    return tables.cell_of(text, classes, sorted_by)


def _seen(result: Result) -> str:
    """The measured number, and what it is."""
    number = tables.measured(result.measured)
    return number if number == tables.NONE else number + tables.remark(result.claim.measures)


def _statement(showing: Showing, result: Result) -> str:
    """What was claimed and where; folded under it what was seen, and the recordings."""
    claim = result.claim
    place = f'<span class="source">{escape(claim.place or "ours")}</span>'
    parts = [escape(result.evidence)]
    if claim.test:
        test = re.sub(r"`+([^`]+)`+", r"<code>\1</code>", escape(claim.test))
        parts.append(f'<span class="how">Test: {test}</span>')
    command, more = strips.commands(result.found)
    if command:
        old = "missing" if result.word == claims.NOT_RECORDED else "out of date"
        parts.append(f'<span class="gap-inline">{old}: <code>{command}</code>{more}</span>')
    if links := _recordings(showing, result):
        parts.append(f"Recordings: {links}")
    inside = "".join(f"<p>{each}</p>" for each in parts)
    summary = f"<summary>{escape(claim.statement)} {place}</summary>"
    return f'<details class="twin seen">{summary}{inside}</details>'


def _recordings(showing: Showing, result: Result) -> str:
    there = [each for each in result.found if each.recording is not None]
    links = [
        f'<a class="raw" href="{escape(showing.raw_link(each.recording))}" '
        f'title="{escape(each.name)}, {escape(each.recording.path.stem)}">{number}</a>'
        for number, each in enumerate(there[:MOST_LINKED], start=1)
    ]
    more = f" and {len(there) - MOST_LINKED} more" if len(there) > MOST_LINKED else ""
    return ", ".join(links) + more


def _deviation(result: Result) -> tuple[float | None, str]:
    """How far off it is, whichever way; and by how many times the nearest end of the claimed one. A
    single number whose interval meets what was claimed is not off at all."""
    if result.deviation is None:
        return None, tables.NONE
    low, high = result.claim.claimed
    seen = result.measured
    if seen.cases == 1 and low <= seen.high and seen.low <= high:
        return 0.0, '<span title="The interval and the claimed number meet.">meets it</span>'
    of = "the median of its cases" if seen.cases > 1 else "what was measured"
    if result.deviation == 1:
        return result.distance, f'<span title="{of} lies within what was claimed">within</span>'
    above = result.deviation > 1
    times = units.ratio(result.deviation if above else 1 / result.deviation)
    told = f"{times} {'above' if above else 'below'}"
    title = f"{of}, against the nearest end of what was claimed"
    return result.distance, f'<span title="{title}">{told}</span>'


def _names(showing: Showing, found: Sequence[Result]) -> str:
    """The inherited numbers that are farthest off where they can be held against a measured one. A
    claim that holds is about something else than its number, which may be a test's own choice."""
    off = chart.comparable(chart.inherited(showing, found))
    off = [each for each in off if each.word != claims.HOLDS]
    return _drawn(sorted(off, key=chart.factor, reverse=True)[:MOST_NAMED])


def _all_names(showing: Showing, found: Sequence[Result]) -> str:
    machine = ledger_rows.counted(showing, found)
    there = (each for each in found if each.deviation and each.measured.recorded)
    return _drawn([each for each in there if each.machine == machine])


def _drawn(off: Sequence[Result]) -> str:
    if not off:
        return chart.NONE_YET
    label = "Measured numbers over claimed ones; the table has the figures."
    points = [_point(each) for each in off]
    return svg.chart([("", svg.Drawing("loglog.claimed", (points,)))], label)


def _point(result: Result) -> dict:
    """A claimed number's mark: all as shares of the claimed one, of a range its middle."""
    claim, seen = result.claim, result.measured
    low, high = claim.claimed
    middle = (low * high) ** 0.5
    least = seen.low if seen.low > 0 else seen.value / BEYOND
    number = str(claim.row or "")
    numbers = {"claimed_low": low, "claimed_high": high, "value": seen.value, "low": least}
    shares = {name: each / middle for name, each in (numbers | {"high": seen.high}).items()}
    told = f"claimed {claim.number}, measured {seen.text}, {result.word}"
    hover = f"{number} {claim.name} ({result.machine}): {told}"
    mark = {"many": seen.cases > 1, "verdict": result.word, "hover": hover}
    short = shorten(claim.statement, LABEL, placeholder=" …")  # a whole one is too long for a phone
    return shares | mark | {"label": f"{short} (row {number})" if number else short}


PARTS: dict[str, Callable[[Showing, Sequence[Result]], str]] = {
    "table": _table,
    "answer": _answer,
    "open": _open,
    "farthest": _farthest,
    "topics": _topics,
    "counts": _counts,
    "accuracy": chart.accuracy,
    "chart": chart.chart,
    "names": _names,
    "all names": _all_names,
    "downloads": _downloads,
}
FIGURES = ("table", "farthest", "topics", "counts", "chart", "names", "all names")
