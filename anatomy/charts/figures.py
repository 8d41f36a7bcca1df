"""Figures of a page: chart, table, caption, notices and run strip in one frame."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from anatomy import ledger, rows, tables, units
from anatomy.charts import strips, svg
from anatomy.claims import NOT_RECORDED, Result
from anatomy.claims.seeds import Figure
from anatomy.errors import AnatomyError
from anatomy.limits import Ceilings
from anatomy.rows import Row
from anatomy.showing import Found, Showing

# Chart -> the function of `plain` that draws it, and its arguments after the rows.
CHARTS = {
    "times": ("times", ()),
    "ratios": ("ratios", ()),
    "rates": ("rates", ()),
    "sweep": ("sweep", ("median_s",)),
    "sweep-rates": ("sweep", ("rate",)),
    "sweep-ratios": ("sweep", ("ratio",)),
}
# Parameters that say how it was measured, not what.
HOW = ("device", "iters")


def framed(
    showing: Showing, found: Sequence[Found], body: str, caption: str | None, *, kind: str = ""
) -> str:
    """A figure: what is missing or stale, the body, the caption, and the run strip.

    Args:
        showing: The page.
        found: The recordings it is made of.
        body: Charts and tables.
        caption: What to see, as HTML; None for the experiment and its parameters alone.
        kind: Further class of the frame.
    """
    calls = list(dict.fromkeys(_call(each) for each in found))
    code = f"<code>{escape(calls[0])}</code>" if len(calls) == 1 else ""
    parts = [f'<span class="says">{caption}</span>' if caption else "", code]
    text = " ".join(part for part in parts if part)
    told = f"<figcaption>{text}</figcaption>" if text else ""
    classes = " ".join(filter(None, ("shown", kind)))
    missing = strips.notices(showing, found)
    return (
        f'<figure class="{classes}" data-search-exclude>{missing}{body}{told}'
        f"{strips.strip(showing, found)}</figure>\n"
    )


def or_badge(
    showing: Showing, found: Sequence[Found], caption: str | None, draw: Callable[[], str]
) -> str:
    """`draw()`, or the badge alone where a recording that is not current lacks what it asks for.

    Raises:
        AnatomyError: All recordings are current, so that what is asked for is wrong.
    """
    try:
        return draw()
    except AnatomyError:
        if all(each.freshness.state in ("current", "missing") for each in found):
            raise
        return framed(showing, found, "", caption)


def rows_of(
    found: Found,
    ceilings: Ceilings | None,
    op: str | None,
    quantity: str | None,
    variants: Sequence[str] | None,
    where: Mapping[str, Any] | None = None,
) -> list[Row]:
    """The rows of a recording that are wanted, with what follows from them."""
    there = rows.meeting(found.recording.data["rows"], where)
    chosen = rows.select(there, op=op, quantity=quantity, variants=variants)
    return [rows.derived(row, ceilings) for row in chosen]


def shown(
    showing: Showing,
    found: Found,
    table: Sequence[Row],
    columns: Sequence[str] | None,
    chart: str | None,
    caption: str | None,
    *,
    unfold: bool,
) -> str:
    """Rows as a table, or as a chart with the table under it."""
    timed = any(row.get("median_s") for row in table)
    body = tables.times(table, columns) if timed else tables.plain(table, columns)
    if chart is not None:
        body = _chart(showing, table, chart) + twin(body, unfold=unfold)
    return framed(showing, [found], body, caption)


def twin(table: str, *, unfold: bool) -> str:
    """A chart's table, which opens without a script."""
    opened = " open" if unfold else ""
    return f'<details class="twin"{opened}><summary>Table</summary>{table}</details>'


def claims(showing: Showing, results: Sequence[Result], caption: str | None) -> str:
    """Statements with their sources, what was seen, and the verdicts."""
    lines = []
    for result in results:
        claim = result.claim
        source = f'<span class="source">{escape(claim.place)}</span>' if claim.place else ""
        row = f'<span class="source">ledger row {claim.row}</span>' if claim.row else ""
        address = ledger.link(showing, result) if row else ""
        if address:
            link = f'<a href="{escape(address)}">ledger row {claim.row}</a>'
            row = f'<span class="source">{link}</span>'
        how = f' title="{escape(claim.test)}"' if claim.test else ""
        seen = escape(result.evidence)
        if claim.number:
            seen = f'<span class="cited">{escape(claim.number)}</span> was claimed. {seen}'
        if result.word == NOT_RECORDED:
            commands = dict.fromkeys(f.command for f in result.found if not f.freshness.current)
            first = escape(next(iter(commands)))
            more = f" and {len(commands) - 1} more" if len(commands) > 1 else ""
            seen = f'<span class="gap-inline">{seen} <code>{first}</code>{more}</span>'
        name = (
            f'<span id="{showing.unique("claim-" + claim.name)}">{escape(claim.statement)}</span>'
        )
        lines.append(
            [
                f"{name} {source} {row}",
                f"<span{how}>{seen}</span>",
                tables.chip(result.word),
            ]
        )
    head = ("the seed says", "here", "verdict")
    found = list({id(each): each for result in results for each in result.found}.values())
    table = tables.listed(head, lines, "Claims", "claims")
    return framed(showing, found, table, caption)


def beside(
    showing: Showing,
    found: Found,
    ceilings: Ceilings | None,
    cited: Sequence[Figure],
    op: str,
    quantity: str,
    caption: str | None,
    *,
    chart: bool,
) -> str:
    """The seed's figures of one run beside ours."""
    names = [figure.variant for figure in cited]
    ours: dict[str, Row] = {}
    if found.recording is not None:
        table = rows_of(found, ceilings, op, quantity, names)
        ours = {row["variant"]: row for row in rows.against(table, "contiguous")}
    timed = [row["median_s"] for row in ours.values() if row.get("median_s")]
    size, unit = tables.time_unit(timed)
    lines = []
    for figure in cited:
        row = ours.get(figure.variant, {})
        ratio = units.ratio(figure.ratio) if figure.variant != "contiguous" else ""
        here = (row.get(name) for name in ("median_s", "low_s", "high_s"))
        times = (row.get(name) for name in ("ratio", "ratio_low", "ratio_high"))
        control = row.get("role") == "control"
        lines.append(
            [
                f"<code>{escape(figure.variant)}</code>",
                f'<span class="cited" title="{figure.place}">{escape(figure.text)}</span>',
                f'<span class="cited">{ratio}</span>',
                tables.figure(*here, size=size),
                "" if control else tables.figure(*times),
                tables.chip(row["verdict"]) if row.get("verdict") else "",
            ]
        )
    gpu = found.recording.data["machine"].get("gpu") if found.recording else showing.machine
    head = ("variant", f"#{cited[0].gpu} (cited)", "#/ contiguous", f"#{gpu}, {unit}",
            "#/ contiguous", "verdict")  # fmt: skip
    body = tables.listed(head, lines, "The seed's figures beside ours", "beside")
    if chart and ours:
        body = _beside_chart(showing, list(ours.values()), cited) + twin(body, unfold=True)
    source = (
        f'<p class="cite">{escape(cited[0].gpu)}: cited from {escape(cited[0].place)} and on, one '
        "run without intervals; not measured by us.</p>"
    )
    return framed(showing, [found], body + source, caption)


def kernels(showing: Showing, found: Found, table: Sequence[Row], caption: str | None) -> str:
    """The kernels that one call of each variant launches."""
    lines, seen = [], set()
    several = len(rows.names(table, "op")) > 1
    for row in table:
        key = (row.get("op"), row.get("variant"))
        if row.get("role") == "again" or key in seen or row.get("kernels") is None:
            continue
        seen.add(key)
        names = [_kernel(name, count) for name, count in _runs(row["kernels"])]
        text = f"<code>{escape(str(row.get('variant')))}</code>"
        cells = [text, str(len(row["kernels"])), "<br>".join(names)]
        lines.append([text, escape(str(row["op"])), *cells[1:]] if several else cells)
    head = (
        ("variant", "operation", "#kernels", "names")
        if several
        else ("variant", "#kernels", "names")
    )
    body = tables.listed(head, lines, "Kernels by variant", "kernels") if lines else ""
    return framed(showing, [found], body, caption)


def _call(found: Found) -> str:
    """The call as it would be written, with the parameters that say what was measured."""
    pairs = [f"{name}={value}" for name, value in found.params.items() if name not in HOW]
    return f"{found.name}({', '.join(pairs)})"


def _chart(showing: Showing, table: Sequence[Row], chart: str) -> str:
    if chart == "ratios":
        table = rows.findings(table)
    function, arguments = CHARTS[chart]
    groups = rows.groups_of(table)
    panels = [
        (
            rows.group_name(*group) if len(groups) > 1 else "",
            svg.Drawing(function, (members, *arguments)),
        )
        for group, members in groups
    ]
    which = ", ".join(rows.group_name(*group) for group, _ in groups)
    label = f"Chart of {chart} by variant: {which}. The table under it has the figures."
    return svg.chart(showing, panels, label)


def _beside_chart(showing: Showing, ours: Sequence[Row], cited: Sequence[Figure]) -> str:
    theirs = [
        {
            "variant": figure.variant,
            "ratio": figure.ratio,
            "hover": f"{figure.gpu}, cited: {figure.variant} {units.ratio(figure.ratio)}",
        }
        for figure in cited
        if figure.variant != "contiguous"
    ]
    title = f"Filled: here. Hollow: {cited[0].gpu}, cited."
    label = f"Ratios here, filled, beside those cited of the {cited[0].gpu}, hollow."
    return svg.chart(showing, [(title, svg.Drawing("ratios", (ours, theirs)))], label)


def _kernel(name: str, count: int) -> str:
    times = f' <span class="ci">× {count}</span>' if count > 1 else ""
    return tables.kernel(name) + times


def _runs(names: Sequence[str]) -> list[tuple[str, int]]:
    """Kernels in order, repetitions in a row counted."""
    counted: list[tuple[str, int]] = []
    for name in names:
        if counted and counted[-1][0] == name:
            counted[-1] = (name, counted[-1][1] + 1)
        else:
            counted.append((name, 1))
    return counted
