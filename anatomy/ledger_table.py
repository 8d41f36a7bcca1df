"""The ledger on a page: its counts, its table, and claimed against measured as a chart."""

import posixpath
from collections.abc import Sequence
from html import escape

from anatomy import claims, inline, spans, svg, tables, units
from anatomy import ledger as ledger_rows
from anatomy.claims import Result
from anatomy.claims.findings import UNITS
from anatomy.errors import UnknownName
from anatomy.showing import Showing, current

PARTS = ("table", "counts", "chart", "downloads")
HEADS = ("#row", "verdict", "claim", "#claimed", "#measured", "#deviation", "topic", "machine")
# Characters of a condition under a verdict; a longer one is told with the evidence.
MOST_SAID = 60
# Recordings that a row links to one by one; more are counted.
MOST_LINKED = 12
# An interval that reaches 0 has no end on a logarithmic axis: there it ends at this part of it.
BEYOND = 10


def ledger(part: str = "table", *, caption: str | None = None) -> str:
    """The ledger of claims, or one part of it, on every machine with recordings.

        ledger("chart", caption="On the diagonal the seed was right.")

    Args:
        part: `table`, `counts` (of verdicts), `chart` (claimed against measured) or `downloads`.
        caption: What to see.

    Raises:
        UnknownName: There is no such part.
    """
    showing = current()
    if part not in PARTS:
        raise UnknownName("part of the ledger", part, PARTS)
    found = ledger_rows.results(showing)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    if part == "downloads":
        return _downloads(showing)
    body = {"table": _table, "counts": _counts, "chart": _chart}[part](showing, found)
    said = f"<figcaption>{told}</figcaption>" if told else ""
    # No run strip: behind it stand the recordings of all claims, which each row links to.
    return f'<figure class="shown ledger" data-search-exclude>{body}{said}</figure>\n'


def _downloads(showing: Showing) -> str:
    links = (
        f'<a href="{escape(posixpath.relpath(name, showing.url or "."))}" download>'
        f"{name.rpartition('.')[2].upper()}</a>"
        for name in ledger_rows.DOWNLOADS
    )
    return f'<p class="downloads">All of it as {" and as ".join(links)}.</p>\n'


def _counts(showing: Showing, found: Sequence[Result]) -> str:
    machines = list(dict.fromkeys(result.machine for result in found))
    lines = []
    for machine in machines:
        here = [result for result in found if result.machine == machine]
        counted = ledger_rows.counts(here)
        lines.append([f"<code>{escape(machine)}</code>", *map(str, counted.values())])
    heads = ("machine", *(f"#{word}" for word in claims.ALL_WORDS))
    return tables.listed(heads, lines, "Verdicts by machine", "counts")


def _table(showing: Showing, found: Sequence[Result]) -> str:
    heads = "".join(
        f'<th scope="col"{" class=n" if head.startswith("#") else ""}>{head.lstrip("#")}</th>'
        for head in HEADS
    )
    body = "".join(_row(showing, result) for result in found)
    markup = f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody>"
    return tables.wrapped(markup, "The ledger of claims", "claims-ledger")


def _row(showing: Showing, result: Result) -> str:
    """A claim on one machine; `data-` attributes are what a script filters and sorts by."""
    claim = result.claim
    source = claim.place.partition(":")[0] if claim.row else "papers" if claim.place else "ours"
    marks = {"topic": claim.topic, "verdict": result.word, "machine": result.machine}
    data = " ".join(f'data-{n}="{escape(v)}"' for n, v in (marks | {"source": source}).items())
    number = f'<span class="cited">{escape(claim.number)}</span>' if claim.number else tables.NONE
    seen = tables.NONE
    if result.measured:
        number, bracket, interval = escape(result.measured.text).partition(" [")
        seen = f'{number} <span class="ci">[{interval}</span>' if bracket else number
    where = (
        f'<span class="remarks">{escape(ledger_rows.brief(result.condition, MOST_SAID))}</span>'
        if result.condition and claim.settled is None
        else ""
    )
    chip = tables.chip(result.word) + spans.stale(*result.found) + where
    cells = [
        ("n", claim.row, "" if claim.row is None else str(claim.row)),
        ("", claims.ALL_WORDS.index(result.word), chip),
        ("", claim.row, _statement(showing, result)),
        ("n", claim.claimed and claim.claimed[0], number),
        ("n", result.measured and result.measured.value, seen),
        ("n", result.distance if result.deviation else None, _deviation(result)),
        ("", None, escape(claim.topic)),
        ("", None, f"<code>{escape(result.machine)}</code>"),
    ]
    markup = "".join(
        _cell(kind, key, text, head=n == 2) for n, (kind, key, text) in enumerate(cells)
    )
    return f'<tr id="{ledger_rows.anchor(result)}" {data}>{markup}</tr>'


def _cell(kind: str, key: float | None, text: str, *, head: bool) -> str:
    classes = f' class="{kind}"' if kind else ""
    order = "" if key is None else f' data-key="{key:.6g}"'
    return f'<th scope="row"{order}>{text}</th>' if head else f"<td{classes}{order}>{text}</td>"


def _statement(showing: Showing, result: Result) -> str:
    """What was claimed and where; folded under it what was seen, and the recordings."""
    claim = result.claim
    place = f'<span class="source">{escape(claim.place or "ours")}</span>'
    if result.word == claims.NOT_YET:
        later = f'<span class="remarks">{escape(result.evidence)}</span>'
        return f"{escape(claim.statement)} {place}{later}"
    told = [escape(result.evidence)]
    if claim.test:
        told.append(f'<span class="how">Test: {escape(claim.test)}</span>')
    commands = dict.fromkeys(each.command for each in result.found if not each.freshness.current)
    if commands:
        first, more = next(iter(commands)), len(commands) - 1
        also = f" and {more} more" if more else ""
        old = "missing" if result.word == claims.NOT_RECORDED else "out of date"
        told.append(f'<span class="gap-inline">{old}: <code>{escape(first)}</code>{also}</span>')
    if links := _recordings(showing, result):
        told.append(f"Recordings: {links}")
    inside = "".join(f"<p>{each}</p>" for each in told)
    return (
        f'<details class="twin seen"><summary>{escape(claim.statement)} {place}</summary>'
        f"{inside}</details>"
    )


def _recordings(showing: Showing, result: Result) -> str:
    there = [each for each in result.found if each.recording is not None]
    links = [
        f'<a class="raw" href="{escape(showing.raw_link(each.recording))}" '
        f'title="{escape(each.name)}, {escape(each.recording.path.stem)}">{number}</a>'
        for number, each in enumerate(there[:MOST_LINKED], start=1)
    ]
    more = f" and {len(there) - MOST_LINKED} more" if len(there) > MOST_LINKED else ""
    return ", ".join(links) + more


def _deviation(result: Result) -> str:
    """`within`, or how many times the nearest end of the claimed number was measured."""
    if result.deviation is None:
        return tables.NONE
    low, high = result.claim.claimed
    if low <= result.measured.high and result.measured.low <= high and result.measured.cases == 1:
        return '<span title="The interval and the claimed number meet.">meets it</span>'
    if result.deviation == 1:
        return "within"
    of = "the median of its cases" if result.measured.cases > 1 else "what was measured"
    title = f"{of}, over the nearest end of what was claimed"
    return f'<span title="{title}">{units.ratio(result.deviation)}</span>'


def _chart(showing: Showing, found: Sequence[Result]) -> str:
    panels = []
    for unit, what in UNITS.items():
        points = [_point(each) for each in found if each.deviation and each.claim.unit == unit]
        if points:
            title = f"{what}, {unit}" if unit.endswith("s") else what
            panels.append((what.capitalize(), svg.Drawing("loglog.claimed", (points, title))))
    if not panels:
        return '<p class="notice gap">No claimed number has a measured one beside it yet.</p>'
    label = "Claimed numbers against measured ones; the table has the figures."
    return svg.chart(showing, panels, label)


def _point(result: Result) -> dict:
    low, high = result.claim.claimed
    seen = result.measured
    number = str(result.claim.row or "")
    return {
        "claimed": (low * high) ** 0.5,
        "claimed_low": low,
        "claimed_high": high,
        "value": seen.value,
        "low": seen.low if seen.low > 0 else seen.value / BEYOND,
        "high": seen.high,
        "many": seen.cases > 1,
        "verdict": result.word,
        "number": number,
        "told": f"{number} {result.claim.name} ({result.machine}): claimed {result.claim.number}, "
        f"measured {seen.text}, {result.word}",
    }
