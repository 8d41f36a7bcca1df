"""How a cost grows with a size, on a page: lines on logarithmic axes, and fitted exponents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from anatomy import rows, tables, units
from anatomy.charts import figures, svg
from anatomy.errors import BadParameter, UnknownName
from anatomy.exhibits import payoffs
from anatomy.exhibits.breakeven import axis, is_number
from anatomy.exponents import LEAST_POINTS, PowerFit, power_fit
from anatomy.pages import inline
from anatomy.rows import Row
from anatomy.showing import Found, Showing, current, selectors

FITS = ("power",)
BEYOND = 10  # an interval that reaches 0 is drawn to this part of its value: the axis has no 0
STRAIGHT = 1e-9  # counts no farther from the fitted line than this lie on it


@dataclass(frozen=True)
class Wanted:
    """What of a recording is shown; see `anatomy.page.curve`."""

    x: str
    y: str
    series: str
    op: str | None
    quantity: str | None
    where: Mapping[str, Any] | None
    fit: str | None
    beyond: float | None


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
        experiment: Its name.
        x: Column of the size, positive numbers.
        y: Column of the cost: `median_s` with its interval, `peak_bytes` or another column.
        series: Column whose values have a line each.
        where: Column -> its value, or a list of them; a text with `*` is a pattern.
        quantity: The only quantity shown.
        op: The only operation shown; also the experiment's parameter of that name, if it has one.
        fit: `power` fits an exponent to each line (`anatomy.exponents`), shown in a table.
        beyond: Sizes below it are drawn and not fitted.
        caption: What to see.
        params: Parameters of the experiment, where not the default.

    Raises:
        UnknownName: There is no such experiment, parameter, column, fit or value of a column.
        BadParameter: Several rows of a series have one size, or none can be drawn.
    """
    showing = current()
    params, op, quantity = selectors(experiment, params, op, quantity)
    if fit is not None and fit not in FITS:
        raise UnknownName("fit", fit, FITS)
    wanted = Wanted(x, y, series, op, quantity, where, fit, beyond)
    found = showing.find(experiment, **params)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    if found.recording is None:
        return figures.framed(showing, [found], "", told)
    return figures.or_badge(showing, [found], told, lambda: _shown(showing, found, wanted, told))


def lines(table: Sequence[Row], wanted: Wanted) -> dict[str, list[Row]]:
    """Rows of each series by rising size; those without a value are among them.

    Raises:
        UnknownName: A column, or a value of one, is in no row.
        BadParameter: A series has two rows of one size.
    """
    columns = {name for row in table for name in row}
    for name in (wanted.x, wanted.y, wanted.series):
        if name not in columns:
            raise UnknownName("column", name, columns)
    kept = rows.select(rows.meeting(table, wanted.where), op=wanted.op, quantity=wanted.quantity)
    found: dict[str, dict[float, list[Row]]] = {}
    for row in kept:
        size = row.get(wanted.x)
        if row.get("role") == "again" or units.missing(row.get(wanted.series)):
            continue
        if is_number(size) and not units.missing(size):
            name = units.format_value(row[wanted.series])
            found.setdefault(name, {}).setdefault(size, []).append(row)
    for name, by_size in found.items():
        for size, several in by_size.items():
            if len(several) > 1:
                told = rows.telling_apart(several)
                raise BadParameter(
                    f"{len(several)} rows of {wanted.series} {name!r} have {wanted.x}={size}, and "
                    "there must be one: "
                    + (
                        f"choose by op=, quantity= or where={{...}} of {told}."
                        if told
                        else "they differ in no column to choose them by."
                    )
                )
    return {name: [by_size[size][0] for size in sorted(by_size)] for name, by_size in found.items()}


def fitted(line: Sequence[Row], x: str, y: str, beyond: float | None = None) -> PowerFit | None:
    """The exponent of a column over another in rows of one series; None of fewer than two sizes."""
    line = [row for row in line if _drawable(row, x, y) and (beyond is None or row[x] >= beyond)]
    if len(line) < 2:
        return None
    ends = rows.INTERVALS.get(y)
    known = ends and all(not units.missing(row.get(end)) for row in line for end in ends)
    intervals = [[row[end] for row in line] for end in ends] if known else []
    return power_fit([row[x] for row in line], [row[y] for row in line], *intervals)


def _drawable(row: Row, x: str, y: str) -> bool:
    if not is_number(row.get(y)) or units.missing(row[y]) or row.get("verdict") == "impossible":
        return False
    return row[x] > 0 and row[y] > 0


def _shown(showing: Showing, found: Found, wanted: Wanted, caption: str | None) -> str:
    by_series = lines(found.recording.data["rows"], wanted)
    drawn = {
        name: [row for row in line if _drawable(row, wanted.x, wanted.y)]
        for name, line in by_series.items()
    }
    if not any(drawn.values()):
        raise BadParameter(f"no row has a positive {wanted.x} and {wanted.y} to draw.")
    fits = {
        name: fitted(line, wanted.x, wanted.y, wanted.beyond)
        for name, line in by_series.items()
        if wanted.fit
    }
    body = _chart(showing, drawn, fits, wanted) + (_fits(fits, wanted) if wanted.fit else "")
    body += figures.twin(_table(by_series, wanted), unfold=False)
    return figures.framed(showing, [found], body, caption, kind="growth")


def _chart(
    showing: Showing,
    drawn: Mapping[str, Sequence[Row]],
    fits: Mapping[str, PowerFit | None],
    wanted: Wanted,
) -> str:
    every = [row for line in drawn.values() for row in line]
    size, unit = _unit([row[wanted.y] for row in every], wanted.y)
    low, high = rows.INTERVALS.get(wanted.y, (None, None))
    points = []
    for name, line in drawn.items():
        for row in line:
            ends = [row.get(end) if end else None for end in (low, high)]
            ends = [row[wanted.y] if units.missing(end) else end for end in ends]
            at = f"{rows.heading(wanted.x)} {payoffs.label(wanted.x, row[wanted.x])}"
            points.append(
                {
                    "series": name,
                    "x": row[wanted.x],
                    "value": row[wanted.y] / size,
                    "low": max(ends[0], row[wanted.y] / BEYOND) / size,
                    "high": ends[1] / size,
                    "hover": f"{name}, {at}: {rows.printed(row, wanted.y)}",
                }
            )
    ends = []
    for name, fit in fits.items():
        sizes = [row[wanted.x] for row in drawn[name]]
        sizes = [each for each in sizes if wanted.beyond is None or each >= wanted.beyond]
        for each in {min(sizes), max(sizes)} if fit and fit.exact else ():
            value = fit.factor * each**fit.median / size
            ends.append({"series": name, "x": each, "value": value})
    steps = axis(row[wanted.x] for row in every)
    ticks = [(step, payoffs.label(wanted.x, step)) for step in sorted(steps)]
    note = f" ({rows.interval_name(every)})" if low else ""
    titles = (
        rows.heading(wanted.x),
        f"{rows.heading(wanted.y)}{f', {unit}' if unit else ''}{note}",
    )
    drawing = svg.Drawing("loglog.growth", (points, ends, ticks, titles))
    named = (
        f"{rows.heading(wanted.y)} over {rows.heading(wanted.x)}, both logarithmic, of "
        f"{', '.join(drawn)}. The table under it has the figures."
    )
    return svg.chart(showing, [("", drawing)], named)


def _unit(values: Sequence[float], column: str) -> tuple[float, str]:
    """Size and name of the unit of a column's axis."""
    if column.endswith("_s"):
        return tables.time_unit(values)
    if column.endswith("bytes"):
        steps = [step for step in units.BINARY if max(values) >= step[0]]
        return steps[-1] if steps else units.BINARY[0]
    return 1.0, ""


def _fits(fits: Mapping[str, PowerFit | None], wanted: Wanted) -> str:
    """The exponent of each series, or why there is none."""
    counted = wanted.y not in rows.INTERVALS
    body = []
    for name, fit in fits.items():
        line = [f"<code>{escape(name)}</code>"]
        if fit is None:
            body.append([*line, tables.NONE, "", "", "fewer than two sizes"])
            continue
        straight = counted and fit.strays < STRAIGHT
        ends = (fit.low, fit.high) if fit.exact and not straight else (None, None)
        note = "exact: a straight line" if straight else ""
        note = note if fit.exact else f"no interval: it takes {LEAST_POINTS} sizes"
        stray = units.percent(fit.strays, 2)
        body.append([*line, tables.figure(fit.median, *ends), str(fit.points), stray, note])
    if not any(line[4] for line in body):
        body = [line[:4] for line in body]
    heads = [wanted.series, "#exponent", "#sizes", "#farthest from the line", "note"]
    name = f"{rows.heading(wanted.y)} ∝ {rows.heading(wanted.x)} to this power"
    what = (
        "Counts have no noise: the interval is how far they stray from a power law."
        if counted
        else "The interval holds the noise and whatever is no power law."
    )
    some = f", sizes from {payoffs.label(wanted.x, wanted.beyond)}" if wanted.beyond else ""
    said = f'<p class="key">{escape(name)}; 95% interval{escape(some)}; dashed: the fit. {what}</p>'
    return said + tables.listed(heads[: len(body[0])], body, "Fitted exponents", "exponents")


def _table(by_series: Mapping[str, Sequence[Row]], wanted: Wanted) -> str:
    """One row for each point, and what could not be measured with its reason."""
    stated = any(
        not _drawable(row, wanted.x, wanted.y) for line in by_series.values() for row in line
    )
    body = []
    for name, line in by_series.items():
        for row in line:
            cells = [f"<code>{escape(name)}</code>", payoffs.label(wanted.x, row[wanted.x])]
            cells.append(
                payoffs.timed(row) if wanted.y == "median_s" else payoffs.printed(row, wanted.y)
            )
            if stated:
                shown = _drawable(row, wanted.x, wanted.y)
                why = row.get("note") or ("not positive" if row.get(wanted.y) == 0 else "")
                cells.append("" if shown else f'<span class="why">{escape(why)}</span>')
            body.append(cells)
    heads = [wanted.series, f"#{rows.heading(wanted.x)}", f"#{rows.heading(wanted.y)}"]
    heads += ["why"] if stated else []
    return tables.listed(heads, body, f"{rows.heading(wanted.y)} by {rows.heading(wanted.x)}")
