"""One value of many recordings: how a finding changes with two parameters, as table and chart."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import Any

from anatomy.figures import tables
from anatomy.figures.charts import figures, svg
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.record import signatures
from anatomy.record.showing import Found
from anatomy.table import units
from anatomy.table.errors import BadParameter, UnknownName


@dataclass(frozen=True)
class Call:
    """One recording of the grid: where it stands down the rows and along the columns."""

    down: Any
    along: Any
    params: dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """What of the recordings is shown; see `anatomy.page.matrix`."""

    value: str
    rows: str
    by: str
    ops: Sequence[str] | None
    quantity: str | None
    variants: Sequence[str] | None


Found2D = Sequence[tuple[Call, Found]]


def calls(
    experiment: str, by: str | Sequence[str], down: str, params: dict[str, Any]
) -> list[Call]:
    """The calls of the grid: every value of `down` with every value of `by`.

    Args:
        experiment: Its name.
        by: The parameter, or parameters that change together, along the columns.
        down: The parameter down the rows.
        params: Lists for these two, single values for others.

    Raises:
        UnknownName: One of them is no parameter of the experiment.
        BadParameter: A list is missing, or lists that change together differ in length.
    """
    along = [by] if isinstance(by, str) else list(by)
    known = signatures.signature(experiment).defaults
    for name in (*along, down):
        if name not in known:
            raise UnknownName(f"parameter of {experiment} called", name, known)
    given = {name: params[name] for name in along if name in params}
    if not given or down not in params:
        raise BadParameter(f"matrix() needs lists of values for {down} and for {along[0]}.")
    first = list(next(iter(given.values())))
    together = {name: list(given.get(name, first)) for name in along}
    if len({len(values) for values in together.values()}) > 1:
        raise BadParameter(f"the values of {', '.join(along)} change together; give equally many.")
    fixed = {name: value for name, value in params.items() if name not in (*along, down)}
    steps = [
        dict(zip(together, values, strict=True)) for values in zip(*together.values(), strict=True)
    ]
    return [
        Call(value, step[along[0]], fixed | {down: value} | step)
        for value, step in product(params[down], steps)
    ]


def title(by: str | Sequence[str]) -> str:
    """What the columns are called: `M = N = K` for sizes that change together."""
    return by if isinstance(by, str) else " = ".join(name.upper() for name in by)


def shown(found: Found2D, ceilings: Any, wanted: Wanted, *, chart: bool, table: bool) -> str:
    """Chart and table.

    Raises:
        UnknownName: There is no such op, quantity, variant or column.
        BadParameter: The rows have several quantities and none was chosen.
    """
    cells = _cells(found, ceilings, wanted)
    if not cells:
        return ""
    drawn = _chart(cells, wanted) if chart and wanted.value == "ratio" else ""
    grid = _grid(found, cells, wanted)
    return drawn + figures.twin(grid, unfold=table) if drawn else grid


Key = tuple[str, str, Any, Any]  # op, variant, down, along


def _cells(found: Found2D, ceilings: Any, wanted: Wanted) -> dict[Key, Row]:
    cells: dict[Key, Row] = {}
    for call, each in found:
        if each.recording is None:
            continue
        for op in wanted.ops or [None]:
            table = rows.select(each.recording.rows, op=op, quantity=wanted.quantity)
            quantities = rows.names(table, "quantity")
            if len(quantities) > 1:
                raise BadParameter(
                    f"matrix() shows one quantity; choose of {', '.join(quantities)}."
                )
            for row in _chosen(table, wanted):
                row = rows.derived(row, ceilings)
                if wanted.value not in row:
                    raise UnknownName("column", wanted.value, row)
                cells[row.get("op") or "", row["variant"], call.down, call.along] = row
    return cells


def _chosen(table: Sequence[Row], wanted: Wanted) -> list[Row]:
    """The variants named, or else all that are findings."""
    if wanted.variants is not None:
        return rows.select(table, variants=wanted.variants)
    kept = rows.findings(table) if wanted.value == "ratio" else table
    return [row for row in kept if row.get("role") != "again"]


def _grid(found: Found2D, cells: dict[Key, Row], wanted: Wanted) -> str:
    downs, alongs = _members(call.down for call, _ in found), _members(c.along for c, _ in found)
    label, size = rows.heading(wanted.value), 1.0
    if wanted.value.endswith("_s"):
        known = [row[wanted.value] for row in cells.values() if row[wanted.value]]
        size, unit = tables.time_unit(known)
        label += f", {unit}"
    heads = "".join(f'<th scope="col" class="n">{escape(str(along))}</th>' for along in alongs)
    top = (
        f'<thead><tr><th rowspan="2" scope="col">{escape(label)}<br><span class="ci">95% interval'
        f'</span></th><th colspan="{len(alongs)}" scope="colgroup">{escape(wanted.by)}</th></tr>'
        f"<tr>{heads}</tr></thead>"
    )
    bodies = []
    for op in _members(key[0] for key in cells):
        variants = _members(key[1] for key in cells if key[0] == op)
        width = len(alongs) + 1
        lines = [tables.across("op", escape(op), width)] if op else []
        for variant in variants:
            lines.append(tables.across("group", tables.code(variant), width))
            for down in downs:
                row = [_cell(cells.get((op, variant, down, a)), wanted.value, size) for a in alongs]
                lines.append(f'<tr><th scope="row">{escape(str(down))}</th>{"".join(row)}</tr>')
        bodies.append(f"<tbody>{''.join(lines)}</tbody>")
    named = f"{label} by {wanted.rows} and {wanted.by}"
    return tables.wrapped(top + "".join(bodies), named, "matrix")


def _cell(row: Row | None, value: str, size: float) -> str:
    if row is None or units.missing(row.get(value)):
        reason = escape((row or {}).get("note") or "not recorded")
        return f'<td class="n none" title="{reason}">—</td>'
    if value not in rows.INTERVALS or value == "rate":
        return f'<td class="n">{escape(rows.printed(row, value))}</td>'
    text, word = tables.interval(row, value, size), escape(row.get("verdict") or "")
    if value != "ratio" or not word:
        return f'<td class="n">{text}</td>'
    mark, kind = tables.CHIPS[word]
    seen = f'<span class="mark" aria-hidden="true">{mark}</span>'
    return f'<td class="n {kind}" title="{word}">{seen}{text}<span class="said">{word}</span></td>'


def _chart(cells: dict[Key, Row], wanted: Wanted) -> str:
    panels = []
    for op in _members(key[0] for key in cells):
        mine = {key: row for key, row in cells.items() if key[0] == op}
        floor = max(row.get("noise_floor") or 0.0 for row in mine.values())
        if marks := [_mark(key, row) for key, row in mine.items() if row.get("ratio")]:
            panels.append((op, svg.Drawing("matrix", (marks, wanted.by, wanted.rows, floor))))
    if not panels:
        return ""
    label = f"Time over the control's time by {wanted.rows} and {wanted.by}."
    return svg.chart(panels, f"{label} The table has the figures.")


def _mark(key: Key, row: Row) -> dict[str, Any]:
    _, variant, down, along = key
    value, *ends = (row.get(name) for name in ("ratio", "ratio_low", "ratio_high"))
    low, high = (value if units.missing(end) else end for end in ends)
    text = f"{variant}, {down}, {along}: {units.ratio_range(value, *ends)}, {row.get('verdict')}"
    mark = {"variant": variant, "series": str(down), "by": along, "hover": text}
    return mark | {"value": value, "low": low, "high": high}


def _members(values: Any) -> list:
    return list(dict.fromkeys(values))
