"""One value of many recordings: how a finding changes with two parameters, as table and chart."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import product
from typing import Any

from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.judge import rows
from anatomy.judge.rows import Row, derived
from anatomy.record import signatures
from anatomy.record.showing import Found, current
from anatomy.table import units
from anatomy.table.errors import BadParameter, UnknownName

Key = tuple[str, str, Any, Any]  # op, variant, and the values down the rows and along the columns
Spot = tuple[Any, Any, Found]  # these two values, and the recording there
Names = Sequence[str] | None  # None where all are shown


def matrix(
    experiment: str,
    value: str = "ratio",
    *,
    by: str | Sequence[str],
    rows: str = "dtype",
    op: str | Sequence[str] | None = None,
    quantity: str | None = None,
    variants: Sequence[str] | None = None,
    chart: bool = True,
    table: bool = True,
    caption: str | None = None,
    labels: Mapping[str, str] | None = None,
    **params: Any,
) -> str:
    """One value of many recordings: a table with a row for each variant and `rows`, by `by`.

        matrix("contiguity.bench", "ratio", rows="dtype", by=("m", "n", "k"), quantity="gpu_warm",
               dtype=["fp16", "bf16", "tf32", "fp32"], m=[2048, 4096, 8192])

    Args:
        value: `ratio`, `median_s`, `rate`, `share` or another column.
        by: The parameter along the columns; several change together, and the ones without a list
            of their own take the values of the first.
        rows: The parameter down the rows, under each variant.
        op: The only operation, or operations, shown; by default all, a part of the figure each.
        quantity: There must be one: give it where there are several.
        variants: Variants shown, in this order; by default all but the control and its duplicate
            (of ratios) or but the duplicate (of anything else).
        chart: Whether ratios are drawn as well, a panel for each variant.
        table: Whether the table is shown unfolded; with a chart it can be folded under it.
        labels: What the variants shown are called, as in `anatomy.page.show`.
        params: Lists for `by` and `rows`; single values for the other parameters.

    Raises:
        BadParameter: There is no list for `by` or `rows`, or several quantities are left.
    """
    showing = current()
    calls = list(_calls(experiment, by, rows, params))
    together = showing.find_together((experiment, call) for *_, call in calls)
    found = [(down, along, each) for (down, along, _), each in zip(calls, together, strict=True)]
    ceilings = showing.ceilings_of(together[0]) if together else None
    across = by if isinstance(by, str) else " = ".join(name.upper() for name in by)

    def draw() -> str:
        ops = [op] if isinstance(op, str) else op
        cells: dict[Key, Row] = {}
        for down, along, each in found:
            if each.recording is not None:
                for row in figures.called([*_rows(each, value, ops, quantity, variants)], labels):
                    row = derived(row, ceilings)
                    if value not in row:
                        raise UnknownName("column", value, row)
                    cells[row.get("op") or "", row["variant"], down, along] = row
        if not cells:
            return ""
        drawn = _chart(cells, rows, across) if chart and value == "ratio" else ""
        grid = _grid(found, cells, value, rows, across)
        return drawn + figures.twin(grid, unfold=table) if drawn else grid

    return framing.exhibit(together, caption, draw)


def _calls(
    experiment: str, by: str | Sequence[str], down: str, params: dict[str, Any]
) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """Every value of `down` with every value of `by`, and the parameters of the recording there."""
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
    for value, step in product(params[down], zip(*together.values(), strict=True)):
        varied = dict(zip(together, step, strict=True))
        yield value, varied[along[0]], fixed | {down: value} | varied


def _rows(found: Found, value: str, ops: Names, quantity, variants: Names) -> Iterator[Row]:
    """The rows of one recording, of the variants named or else of all that are findings."""
    for op in ops or [None]:
        table = rows.select(found.recording.rows, op=op, quantity=quantity)
        quantities = rows.names(table, "quantity")
        if len(quantities) > 1:
            raise BadParameter(f"matrix() shows one quantity; choose of {', '.join(quantities)}.")
        if variants is not None:
            yield from rows.select(table, variants=variants)
        else:
            kept = rows.findings(table) if value == "ratio" else table
            yield from (row for row in kept if row.get("role") != "again")


def _grid(found: list[Spot], cells: dict[Key, Row], value: str, down: str, along: str) -> str:
    downs, alongs = _members(each[0] for each in found), _members(each[1] for each in found)
    label, size = rows.heading(value), 1.0
    if value.endswith("_s"):
        size, unit = tables.time_unit([row[value] for row in cells.values() if row[value]])
        label += f", {unit}"
    heads = "".join(f'<th scope="col" class="n">{escape(str(each))}</th>' for each in alongs)
    name = escape(label)
    if _with_interval(value):
        name += f'<br><span class="ci">{rows.interval_name(cells.values())}</span>'
    top = f'<th rowspan="2" scope="col">{name}</th>'
    top += f'<th colspan="{len(alongs)}" scope="colgroup">{escape(along)}</th>'
    top = f"<thead><tr>{top}</tr><tr>{heads}</tr></thead>"
    bodies, one = [], len(_members(key[:2] for key in cells)) == 1  # which the caption names
    for op in _members(key[0] for key in cells):
        variants = _members(key[1] for key in cells if key[0] == op)
        width = len(alongs) + 1
        lines = [tables.across("op", escape(op), width)] if op and not one else []
        for variant in variants:
            lines += [] if one else [tables.across("group", tables.code(variant), width)]
            for at in downs:
                row = [_cell(cells.get((op, variant, at, each)), value, size) for each in alongs]
                lines.append(f'<tr><th scope="row">{escape(str(at))}</th>{"".join(row)}</tr>')
        bodies.append(f"<tbody>{''.join(lines)}</tbody>")
    columns = [str(down), *(f"{along} = {each}" for each in alongs)]
    named = f"{label} by {down} and {along}"
    return tables.wrapped(top + "".join(bodies), named, columns, "matrix")


def _cell(row: Row | None, value: str, size: float) -> str:
    if row is None or units.missing(row.get(value)):
        reason = escape((row or {}).get("note") or "not recorded")
        return tables.cell_of("—", "n none", f' title="{reason}"')
    if not _with_interval(value):
        return tables.cell_of(escape(rows.printed(row, value)), "n")
    text, word = tables.interval(row, value, size), escape(row.get("verdict") or "")
    if value != "ratio" or not word:
        return tables.cell_of(text, "n")
    mark, kind = tables.CHIPS[word]
    rule = escape(f"{word}: {tables.RULES[word]}")
    seen = f'<span class="mark" aria-hidden="true" title="{rule}">{mark}</span>'
    return tables.cell_of(f'{seen}{text}<span class="said">{word}</span>', f"n {kind}")


def _with_interval(value: str) -> bool:
    """Whether a value stands in the table with its interval."""
    return value in rows.INTERVALS and value != "rate"


def _chart(cells: dict[Key, Row], down: str, along: str) -> str:
    panels, said = [], rows.interval_name(cells.values())
    for op in _members(key[0] for key in cells):
        mine = {key: row for key, row in cells.items() if key[0] == op}
        floor = rows.noise_floor(mine.values())
        if marks := [_mark(key, row) for key, row in mine.items() if row.get("ratio")]:
            panels.append((op, svg.Drawing("matrix", (marks, along, down, floor, said))))
    if not panels:
        return ""
    label = f"Time over the control's time by {down} and {along}."
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
