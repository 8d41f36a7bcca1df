"""How a cost grows with a size, on a page: lines on logarithmic axes, and fitted exponents."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.text import spans
from anatomy.figures.tradeoffs.breakeven import Wanted, axis, is_number, need_columns, too_many
from anatomy.figures.tradeoffs.payoffs import label
from anatomy.judge import rows
from anatomy.judge.exponents import LEAST_POINTS, PowerFit, power_fit
from anatomy.judge.rows import Row
from anatomy.record.showing import Found, current, selectors
from anatomy.table import units
from anatomy.table.errors import BadParameter, UnknownName

FITS = ("power",)
BEYOND = 10  # an interval that reaches 0 is drawn to this part of its value: the axis has no 0
STRAIGHT = 1e-9  # counts no farther from the fitted line than this lie on it
Fits = Mapping[str, PowerFit | None]  # by series


def curve(
    experiment: str,
    *,
    x: str,
    y: str,
    series: str = "variant",
    where: Mapping[str, Any] | None = None,
    quantity: str | None = None,
    op: str | None = None,
    fit: str | None = None,
    beyond: float | None = None,
    caption: str | None = None,
    **params: Any,
) -> str:
    """A column over a size on logarithmic axes, a line for each series, with fitted exponents.

        curve("attention.growth", x="tokens", y="median_s", quantity="gpu_warm", fit="power",
              where={"pass": "forward"})
        curve("attention.growth", x="tokens", y="peak_bytes", series="kernel", fit="power",
              beyond=2048)

    Args:
        x: Column of the size, positive numbers.
        y: Column of the cost: `median_s` with its interval, `peak_bytes` or another column; `rate`.
        series: Column whose values have a line each.
        fit: `power` fits an exponent to each line (`anatomy.judge.exponents`), shown in a table.
        beyond: Sizes below it are drawn and not fitted.

    Raises:
        BadParameter: Several rows of a series have one size, or none can be drawn.
    """
    params = selectors(experiment, params, op, quantity)
    if fit is not None and fit not in FITS:
        raise UnknownName("fit", fit, FITS)
    wanted = Wanted(x, y, series, op=op, quantity=quantity, where=where, fit=fit, beyond=beyond)
    found = current().find(experiment, **params)
    return framing.exhibit(found, caption, lambda: _shown(found, wanted), kind="growth")


def lines(table: Sequence[Row], wanted: Wanted) -> dict[str, list[Row]]:
    """Rows of each series by rising size; those without a value are among them. UnknownName of a
    column or a value that is in no row; BadParameter of two rows of one size."""
    need_columns(table, wanted.x, wanted.y, wanted.series)
    kept = rows.select(rows.meeting(table, wanted.where), op=wanted.op, quantity=wanted.quantity)
    found: dict[str, dict[float, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in kept:
        size, name = row.get(wanted.x), row.get(wanted.series)
        has_place = is_number(size) and not units.missing(size) and not units.missing(name)
        if has_place and row.get("role") != "again":
            found[units.format_value(name)][size].append(row)
    for name, by_size in found.items():
        for size, several in by_size.items():
            if len(several) > 1:
                raise too_many(several, f"{wanted.series} {name!r} have {wanted.x}={size}")
    return {name: [by_size[size][0] for size in sorted(by_size)] for name, by_size in found.items()}


def fitted(line: Sequence[Row], x: str, y: str, beyond: float | None = None) -> PowerFit | None:
    """The exponent of a column over another in rows of one series; None of fewer than two sizes."""
    line = [row for row in line if _drawable(row, x, y) and row[x] >= (beyond or 0)]
    if len(line) < 2:
        return None
    ends = rows.INTERVALS.get(y)
    known = ends and all(not units.missing(row.get(end)) for row in line for end in ends)
    intervals = [[row[end] for row in line] for end in ends] if known else []
    return power_fit([row[x] for row in line], [row[y] for row in line], *intervals)


def _drawable(row: Row, x: str, y: str) -> bool:
    known = is_number(row.get(y)) and not units.missing(row[y])
    return known and row.get("verdict") != "impossible" and row[x] > 0 and row[y] > 0


def _shown(found: Found, wanted: Wanted) -> str:
    table = [rows.derived(row, None) for row in found.recording.rows]
    x, y, by_series = wanted.x, wanted.y, lines(table, wanted)
    drawn = {name: [r for r in line if _drawable(r, x, y)] for name, line in by_series.items()}
    if not any(drawn.values()):
        if notes := [row["note"] for row in table if row.get("note")]:
            return spans.gap_because(notes[0])
        raise BadParameter(f"no row has a positive {x} and {y} to draw.")
    asked = drawn.items() if wanted.fit else ()
    fits = {name: fitted(line, x, y, wanted.beyond) for name, line in asked}
    exponents = _exponents(fits, wanted) if fits else ""
    return _chart(drawn, fits, wanted) + exponents + figures.twin(_table(by_series, wanted))


def _chart(drawn: Mapping[str, Sequence[Row]], fits: Fits, wanted: Wanted) -> str:
    every = [row for line in drawn.values() for row in line]
    size, unit = _unit_of_axis([row[wanted.y] for row in every], wanted.y)
    unit += every[0]["rate_unit"] if wanted.y == "rate" else ""
    across, up = rows.heading(wanted.x), rows.heading(wanted.y)
    points = []
    for name, line in drawn.items():
        for row in line:
            x, y = row[wanted.x], row[wanted.y]
            ends = (row.get(end) for end in rows.INTERVALS.get(wanted.y, ("", "")))
            low, high = (y if units.missing(end) else end for end in ends)
            text = f"{name}, {across} {label(wanted.x, x)}: {rows.printed(row, wanted.y)}"
            point = {"series": name, "x": x, "value": y / size, "hover": text}
            points.append(point | {"low": max(low, y / BEYOND) / size, "high": high / size})
    ends = []
    for name, fit in fits.items():
        sizes = [row[wanted.x] for row in drawn[name] if row[wanted.x] >= (wanted.beyond or 0)]
        for x in {min(sizes), max(sizes)} if fit and fit.exact else ():
            ends.append({"series": name, "x": x, "value": fit.factor * x**fit.median / size})
    ticks = [(step, label(wanted.x, step)) for step in axis(row[wanted.x] for row in every)]
    note = f" ({rows.interval_name(every)})" if wanted.y in rows.INTERVALS else ""
    titles = (across, f"{up}{f', {unit}' if unit else ''}{note}")
    drawing = svg.Drawing("loglog.growth", (points, ends, ticks, titles))
    named = f"{up} over {across}, both logarithmic, of {', '.join(drawn)}."
    return svg.chart([("", drawing)], f"{named} The table under it has the figures.")


def _unit_of_axis(values: Sequence[float], column: str) -> tuple[float, str]:
    if column.endswith("_s"):
        return tables.time_unit(values)
    if column == "rate" or column.endswith("bytes"):
        prefixes = units.PREFIXES if column == "rate" else units.BINARY
        steps = [step for step in prefixes if max(values) >= step[0]]
        return steps[-1] if steps else prefixes[0]
    return 1.0, ""


def _exponents(fits: Fits, wanted: Wanted) -> str:
    """The exponent of each series, or why there is none."""
    counted = wanted.y not in rows.INTERVALS
    body = []
    for name, fit in fits.items():
        if fit is None:
            body.append([tables.code(name), tables.NONE, "", "", "fewer than two sizes"])
            continue
        straight = counted and fit.strays < STRAIGHT
        ends = (fit.low, fit.high) if fit.exact and not straight else ()
        note = "exact: a straight line" if straight else ""
        note = note if fit.exact else f"no interval: it takes {LEAST_POINTS} sizes"
        stray, exponent = units.percent(fit.strays, 2), tables.figure(fit.median, *ends)
        body.append([tables.code(name), exponent, str(fit.points), stray, note])
    heads = [wanted.series, "#exponent", "#sizes", "#farthest from the line", "note"]
    name = f"{rows.heading(wanted.y)} ∝ {rows.heading(wanted.x)} to this power"
    what = "The interval holds the noise and whatever is no power law."
    if counted:
        what = "Counts have no noise: the interval is how far they stray from a power law."
    some = f", sizes from {label(wanted.x, wanted.beyond)}" if wanted.beyond else ""
    key = f'<p class="key">{escape(name)}; 95% interval{escape(some)}; dashed: the fit. {what}</p>'
    return key + _listed(heads, body, "Fitted exponents", "exponents")


def _table(by_series: Mapping[str, Sequence[Row]], wanted: Wanted) -> str:
    """One row for each point, and what could not be measured with its reason."""
    lines, x, y = [], wanted.x, wanted.y
    for name, row in ((name, row) for name, line in by_series.items() for row in line):
        cost = tables.time(row) if y == "median_s" else tables.cell(row, y)
        why = tables.why(row.get("note") or ("not positive" if row.get(y) == 0 else ""))
        why = "" if _drawable(row, x, y) else why
        lines.append([tables.code(name), label(x, row[x]), cost, why])
    across, up = rows.heading(x), rows.heading(y)
    heads = [wanted.series, f"#{across}", f"#{up}", "why"]
    return _listed(heads, lines, f"{up} by {across}")


def _listed(heads: list[str], lines: list[list[str]], label: str, kind: str = "") -> str:
    """A table without its last column, of remarks, where no line has one."""
    if not any(line[-1] for line in lines):
        heads, *lines = (line[:-1] for line in (heads, *lines))
    return tables.listed(heads, lines, label, kind)
