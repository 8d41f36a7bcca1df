"""What each technique of the axioms gives at its best and at its worst, in one table.

Which techniques there are, the front matter of their pages says (`frontmatter.Technique`).
Cells of fewer blocks than an interval of 95 % takes are left out, and so is what has no ratio.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from html import escape

from anatomy.claims import Result, evaluate
from anatomy.figures import framing, tables
from anatomy.figures.text import frontmatter, inline, spans
from anatomy.figures.text.frontmatter import Technique
from anatomy.judge import replication, rows
from anatomy.judge.rows import Row
from anatomy.record.showing import Found, Showing, current
from anatomy.table import units
from anatomy.table.errors import AnatomyError, BadParameter, UnknownName

# Column of bytes -> what it tells of a technique's memory.
MEMORY = {
    "total_peak_bytes": "peak, with weights",
    "peak_bytes": "peak of the call",
    "reserved_bytes": "held of the card",
}


def techniques(*, caption: str | None = None) -> str:
    """The techniques of the axioms: best and worst cell, memory, cost paid once, verdict."""
    showing = current()
    asked = [
        (page, each, *looked_up(showing, page, each))
        for page, front in frontmatter.of_site(showing).items()
        for each in front.techniques
    ]
    heads = ("technique", "speed-up at its best", "at its worst", "memory", "once", "promised")

    def draw() -> str:
        lines = []
        for page, each, result, found in asked:
            ends = (_cell(each, found, best=True), _cell(each, found, best=False))
            needs = (_memory(each, found), _once(each, found))
            name = _link(showing, page, each) + spans.elsewhere(*found)
            lines.append([name, *ends, *needs, _promised(result)])
        return tables.listed(heads, lines, "Techniques", "techniques")

    recordings = {id(one): one for *_, several in asked for one in several}
    return framing.exhibit(list(recordings.values()), caption, draw)


def looked_up(showing: Showing, page: str, each: Technique) -> tuple[Result | None, list[Found]]:
    """The verdict on what a technique promises, and its recordings."""
    try:
        if each.memory not in MEMORY:
            raise UnknownName("column of memory", each.memory, MEMORY)
        result = evaluate(showing, each.claim) if each.claim else None
        return result, showing.find_together(map(inline.called, each.reads))
    except AnatomyError as error:
        problem = f"{page}: the front matter's technique {each.name!r}: {error}"
        raise BadParameter(problem) from None


def _link(showing: Showing, page: str, each: Technique) -> str:
    return f'<a href="{escape(showing.link_to(page))}">{escape(each.name)}</a>'


def _promised(result: Result | None) -> str:
    if result is None:
        return tables.NONE
    return f'<span class="cited">{escape(result.claim.number)}</span> {tables.chip(result.word)}'


def _groups(found: Iterable[Found]) -> Iterator[list[Row]]:
    """The rows of each comparison of steps on the wall."""
    for each in found:
        if each.recording is not None:
            for (_, quantity), members in rows.groups_of(each.recording.rows):
                if quantity == "step_wall":
                    yield members


def cases(each: Technique, found: Iterable[Found]) -> Iterator[tuple[Row, Row]]:
    """The rows of a technique that have a ratio with an interval, each with the row of the ordinary
    way."""
    for members in _groups(found):
        base = _ordinary(each, members)
        for row in rows.against(members, each.control) if each.control else members:
            if row.get("variant") not in each.variants or units.missing(row.get("ratio")):
                continue
            if row.get("runs") or len(row.get("blocks_s") or ()) >= replication.EXACT_FROM:
                yield row, base


def _ordinary(each: Technique, members: Iterable[Row]) -> Row:
    key, name = ("variant", each.control) if each.control else ("role", "control")
    return next((row for row in members if row.get(key) == name), {})


def _cell(each: Technique, found: Iterable[Found], *, best: bool) -> str:
    """The best or the worst speed-up with its interval, its verdict, and where it was seen; a tag
    where the ordinary way was host-paced."""
    seen = sorted(cases(each, found), key=lambda pair: pair[0]["ratio"])
    if not seen:
        return tables.NONE
    row, base = seen[0 if best else -1]
    text = tables.lighter(units.ratio_range(*rows.speedup(row)))
    name = f"{row['variant']}, {row['op']}" if len(each.variants) > 1 else row["op"]
    paced = tables.remarks({"paced_by": base.get("paced_by")})
    spot = f'<span class="spot">{escape(name)} {paced}</span>'
    return f"{text} {tables.chip(row['verdict'])} {spot}"


def _memory(each: Technique, found: Iterable[Found]) -> str:
    """The least and the most that the technique needs over what the ordinary way needs."""
    column, shares = each.memory, []
    for members in _groups(found):
        base = _ordinary(each, members)
        for row in members:
            counted = not units.missing(row.get(column)) and base.get(column)
            if row.get("variant") in each.variants and counted:
                shares.append(row[column] / base[column])
    if not shares:
        return tables.NONE
    span = _from_to(shares, partial(units.ratio, most=2))
    return f'{span} <span class="spot">{MEMORY[column]}</span>'


def _once(each: Technique, found: Iterable[Found]) -> str:
    """The shortest and the longest of the first calls, as rows of their own or in `setup_s`."""
    took = []
    for row in (row for members in _groups(found) for row in members if each.once):
        if row["op"].startswith("first call") and row["variant"] == each.once:
            took.append(row["median_s"])
        elif row["variant"] in each.variants and not units.missing(row.get("setup_s")):
            took.append(row["setup_s"])
    return _from_to(took, units.seconds) if took else tables.NONE


def _from_to(values: Sequence[float], printed) -> str:
    # A number stays on one line with its unit, however narrow the column.
    low, high = (printed(end(values)).replace(" ", "\N{NO-BREAK SPACE}") for end in (min, max))
    return low if low == high else f"{low} to {high}"
