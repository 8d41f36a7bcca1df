"""What several pages show: rows as table and chart, claims, kernels, and the seed's figures."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby
from typing import Any

from anatomy.claims import NOT_RECORDED, Result, ledger
from anatomy.claims.seeds import Figure
from anatomy.figures import tables
from anatomy.figures.charts import strips, svg
from anatomy.judge import rows
from anatomy.judge.limits import Ceilings
from anatomy.judge.rows import Row
from anatomy.record.showing import Found, current
from anatomy.table import units
from anatomy.table.columns import PERCENT, declared
from anatomy.table.errors import UnknownName

# Chart -> the function of `plain` that draws it, and its arguments after the rows. Of a column that
# is a share, bars are a chart as well.
CHARTS = {
    "times": ("bars", ("median_s",)),
    "rates": ("bars", ("rate",)),
    "ratios": ("ratios", ()),
    "sweep": ("sweep", ("median_s",)),
    "sweep-rates": ("sweep", ("rate",)),
    "sweep-ratios": ("sweep", ("ratio",)),
}
CHARTS |= {each.name: ("bars", (each.name,)) for each in declared() if each.shown == PERCENT}
FEW = 140  # characters of a claim's evidence; more stand in a fold
AGAIN = " (again)"  # what ends the name of a control's duplicate


def rows_of(
    found: Found, ceilings: Ceilings | None, where: Mapping[str, Any] | None = None, **wanted: Any
) -> list[Row]:
    """The rows of a recording with the wanted op, quantity and variants, and what follows."""
    chosen = rows.select(rows.meeting(found.recording.rows, where), **wanted)
    return [rows.derived(row, ceilings) for row in chosen]


def placed(table: Sequence[Row], column: str, most: int) -> list[Row]:
    """The rows at the first places of a column, by them; UnknownName for a column not there."""
    columns = {name for row in table for name in row}
    if column not in columns:
        raise UnknownName("column", column, columns)
    own = [row for row in table if not units.missing(row.get(column)) and row[column] <= most]
    return sorted(own, key=lambda row: row[column])


def called(table: Sequence[Row], labels: Mapping[str, str] | None) -> list[Row]:
    """Rows whose variants, controls, cases and remedies are called by their labels, if any."""
    names = dict(labels or {})
    known = [name for column in ("variant", "case", "remedy") for name in rows.names(table, column)]
    for name in names:
        if name not in known:
            raise UnknownName("variant", name, known)
    names |= {name + AGAIN: label + AGAIN for name, label in names.items()}
    told = ("variant", "control", "case", "remedy")
    return [row | {c: names.get(row[c], row[c]) for c in told if row.get(c)} for row in table]


def shown(
    table: Sequence[Row], columns: Sequence[str] | None, chart: str | None, *, unfold: bool
) -> str:
    """Rows as a table, or as a chart with the table under it. Beside the times of a chart stand
    rates, unless `columns` are chosen with no rate and no share of a limit among them."""
    timed = any(row.get("median_s") for row in table)
    drawn = timed or any(not units.missing(row.get(chart)) for row in table)
    if chart and not drawn and (why := refused(table)):
        return why
    body = (tables.times if timed else tables.plain)(table, columns)
    if chart is None:
        return body
    if columns is not None and not {"rate", "share"} & set(columns):
        table = [row | {"rate": None} for row in table]
    return _chart(table, chart) + twin(body, unfold=unfold)


def twin(table: str, *, unfold: bool = False, name: str = "Table") -> str:
    """A chart's table, which opens without a script."""
    opened = " open" if unfold else ""
    return f'<details class="twin"{opened}><summary>{escape(name)}</summary>{table}</details>'


def refused(table: Sequence[Row]) -> str:
    """What rows without a time say of themselves, each reason once, as a gap; or nothing."""
    why: dict[str, list[str]] = defaultdict(list)
    for row in table:
        if row.get("note") and units.missing(row.get("median_s")):
            why[row["note"]].append(row["variant"])
    said = (f"{', '.join(dict.fromkeys(names))}: {note}" for note, names in why.items())
    return "".join(f'<p class="gap">{escape(each)}</p>' for each in said)


def claims(results: Sequence[Result], labels: Mapping[str, str] | None = None) -> str:
    """Statements with their sources, what was seen, and the verdicts; `labels` name variants."""
    showing = current()
    lines = []
    for result in (_called(each, labels or {}) for each in results):
        claim = result.claim
        name = showing.unique(f"claim-{claim.name}")
        text = f'<span id="{escape(name)}">{escape(claim.statement)}</span>'
        source = f'<span class="source">{escape(claim.place)}</span>' if claim.place else ""
        row = f"ledger row {claim.row}" if claim.row else ""
        if row and (address := ledger.link(showing, result)):
            row = f'<a href="{escape(address)}">{row}</a>'
        row = row and f'<span class="source">{row}</span>'
        how = f' title="{escape(claim.test)}"' if claim.test else ""
        seen = _evidence(result)
        if claim.number:
            seen = f'<span class="cited">{escape(claim.number)}</span> was claimed. {seen}'
        if result.word == NOT_RECORDED:
            first, more = strips.commands(result.found)
            seen = f'<span class="gap-inline">{seen} <code>{first}</code>{more}</span>'
        said = f"{text} {source} {row}"
        chip = tables.chip(result.word) + tables.remark(ledger.where(result), result.condition)
        lines.append([said, f"<span{how}>{seen}</span>", chip])
    inherited = any(result.claim.row is not None for result in results)
    head = ("the inherited advice" if inherited else "the claim", "here", "verdict")
    return tables.listed(head, lines, "Claims", "claims")


def _called(result: Result, labels: Mapping[str, str]) -> Result:
    """The result with variants called what the page calls them."""
    for name, called in labels.items():
        texts = (result.evidence, result.condition, *result.short)
        evidence, condition, *short = (text.replace(name, called) for text in texts)
        result = replace(result, evidence=evidence, condition=condition, short=tuple(short))
    return result


def _evidence(result: Result) -> str:
    """What was seen: in words if they are few, else the number, and the words in a fold; of what
    has no one number its first sentence."""
    text = escape(result.evidence)
    if len(result.evidence) <= FEW or result.word == NOT_RECORDED:
        return text
    if result.measured is None:
        first, stop, rest = text.partition(". ")
        more = f'<details class="twin seen"><summary>Evidence</summary><p>{rest}</p></details>'
        return first + stop + more if rest else text
    number = tables.measured(result.measured)
    if result.claim.measures:
        number += f' <span class="ci">({escape(result.claim.measures)})</span>'
    return f'{number}<details class="twin seen"><summary>Evidence</summary><p>{text}</p></details>'


def beside(
    found: Found, ceilings: Ceilings | None, cited: Sequence[Figure], op, quantity, *, chart: bool
) -> str:
    """The seed's figures of one run beside ours."""
    control, ours = "contiguous", {}
    if found.recording is not None:
        names = [figure.variant for figure in cited]
        table = rows_of(found, ceilings, op=op, quantity=quantity, variants=names)
        ours = {row["variant"]: row for row in rows.against(table, control)}
    size, unit = tables.time_unit([r["median_s"] for r in ours.values() if r.get("median_s")])
    here = found.recording.data["machine"].get("gpu") if found.recording else current().machine
    source, there = cited[0].place, cited[0].gpu

    def cite(text: str, title: str = "") -> str:
        return f'<span class="cited"{title}>{text}</span>'

    lines = []
    for figure in cited:
        row = ours.get(figure.variant, {})
        their_time = cite(escape(figure.text), f' title="{escape(figure.place)}"')
        their_ratio = cite("" if figure.variant == control else units.ratio(figure.ratio))
        ratio = "" if row.get("role") == "control" else tables.interval(row, "ratio")
        verdict = tables.chip(row["verdict"]) if row.get("verdict") else ""
        measured = tables.interval(row, "median_s", size), ratio, verdict
        lines.append([tables.code(figure.variant), their_time, their_ratio, *measured])
    over = f"#/ {control}"
    head = ("variant", f"#{there} (cited)", over, f"#{here}, {unit}", over, "verdict")
    body = tables.listed(head, lines, "The original suite's figures beside ours", "beside")
    if chart and ours:
        body = _beside_chart(list(ours.values()), cited) + twin(body, unfold=True)
    note = f"cited from {escape(source)} and on, one run without intervals; not measured by us."
    return f'{body}<p class="cite">{escape(there)}: {note}</p>'


def kernels(table: Sequence[Row]) -> str:
    """The kernels of one call of each variant, in a line for all that launch the same."""
    first: dict[tuple, Row] = {}  # of each operation and variant
    for row in table:
        if row.get("role") != "again" and row.get("kernels") is not None:
            first.setdefault((row.get("op"), row.get("variant")), row)
    alike: dict[tuple, list[Row]] = {}
    for row in first.values():
        alike.setdefault((row.get("op"), tuple(row["kernels"])), []).append(row)
    several = len(rows.names(table, "op")) > 1
    columns = [
        ("variant", lambda same: ", ".join(tables.code(row.get("variant")) for row in same)),
        *([("operation", lambda same: escape(str(same[0]["op"])))] if several else []),
        ("#kernels", lambda same: str(sum(map(_is_kernel, same[0]["kernels"])))),
        ("names", lambda same: _runs(same[0]["kernels"])),
    ]
    label = "Kernels by variant"
    return tables.by_columns(columns, alike.values(), label, "kernels", sparse=True)


def _chart(table: Sequence[Row], chart: str) -> str:
    if chart == "ratios":
        table = rows.findings(table)
    function, arguments = CHARTS[chart]
    groups = [(rows.group_name(*group), members) for group, members in rows.groups_of(table)]
    named = len(groups) > 1
    panels = [(n if named else "", svg.Drawing(function, (m, *arguments))) for n, m in groups]
    label = f"Chart of {chart} by variant: {', '.join(name for name, _ in groups)}."
    return svg.chart(panels, f"{label} The table under it has the figures.")


def _beside_chart(ours: Sequence[Row], cited: Sequence[Figure]) -> str:
    theirs = []
    for figure in cited:
        if figure.variant != "contiguous":
            hover = f"{figure.gpu}, cited: {figure.variant} {units.ratio(figure.ratio)}"
            theirs.append({"variant": figure.variant, "ratio": figure.ratio, "hover": hover})
    title = f"Filled: here. Hollow: {cited[0].gpu}, cited."
    label = f"Ratios here, filled, beside those cited of the {cited[0].gpu}, hollow."
    return svg.chart([(title, svg.Drawing("ratios", (ours, theirs)))], label)


def _is_kernel(name: str) -> bool:
    """Whether an entry of a list of kernels is one, and no copy or memset of the driver's."""
    return not name.startswith(("Memset", "Memcpy"))


def _runs(names: Sequence[str]) -> str:
    """Kernels in order, repetitions in a row counted."""
    counted = ((name, len(list(each))) for name, each in groupby(names))
    times = ' <span class="ci">× {}</span>'.format
    return "<br>".join(tables.kernel(name) + (times(n) if n > 1 else "") for name, n in counted)
