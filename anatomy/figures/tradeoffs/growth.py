"""How a cost or a rate goes with a size, on a page: lines on logarithmic axes, with fitted
exponents or levels."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log, sqrt
from statistics import median
from typing import Any

from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.curriculum.calculations import value_behind
from anatomy.figures.text import spans
from anatomy.figures.tradeoffs.breakeven import Wanted, axis, is_number, need_columns, too_many
from anatomy.figures.tradeoffs.payoffs import label
from anatomy.judge import rows
from anatomy.judge.exponents import LEAST_POINTS, PowerFit, power_fit
from anatomy.judge.limits import datasheet
from anatomy.judge.rows import Row
from anatomy.record.showing import Found, current, selectors
from anatomy.table import columns, units
from anatomy.table.errors import BadParameter, UnknownName
from anatomy.table.plateaus import plateaus

FITS = ("power", "levels")
LINK = "NVLink"  # a ceiling that no one GPU can measure
BEYOND = 10  # an interval that reaches 0 is drawn to this part of its value: the axis has no 0
STRAIGHT = 1e-9  # counts no farther from the fitted line than this lie on it
FAR = 256  # sizes in bytes that span so many times are named by powers of four
NEAR = 1.1  # an end of the axis no farther than this from a power needs no mark of its own
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
    labels: Mapping[str, str] | None = None,
    edges: Mapping[str, str] | None = None,
    ceiling: str | None = None,
    even: bool = False,
    caption: str | None = None,
    **params: Any,
) -> str:
    """A column over a size on logarithmic axes, a line for each series, with fitted exponents.

        curve("attention.growth", x="tokens", y="median_s", quantity="gpu_warm", fit="power",
              where={"pass": "forward"})
        curve("attention.growth", x="tokens", y="peak_bytes", series="kernel", fit="power",
              beyond=2048)
        curve("memory_ladder.bandwidth", x="working_set_bytes", y="rate", series="op", fit="levels")

    Args:
        x: Column of the size, positive numbers.
        y: Column of the cost: `median_s` with its interval, `peak_bytes` or another column; or
            `rate`.
        series: Column whose values have a line each.
        fit: `power` fits an exponent to each line (`anatomy.judge.exponents`), shown in a table;
            `levels` finds the steps by which it goes (`anatomy.table.plateaus`); a column with
            predictions of `y` is drawn dashed.
        beyond: Sizes below it are drawn and not fitted.
        labels: What the values of `series` are called, as in `show`.
        edges: Sizes that have an upright line: what each is called -> where it comes from, as the
            arguments of `anatomy.figures.curriculum.calculations.calculation`.
        ceiling: A limit of the machine that has a level line, such as `read`, where `y` is `rate`;
            `NVLink` is what a GPU's links carry in one direction, by its datasheet.
        even: Of one series without a fit: both axes from 0, so that equal steps look equal.

    Raises:
        BadParameter: Several rows of a series have one size, or none can be drawn.
    """
    params = selectors(experiment, params, op, quantity)
    chosen = {"op": op, "quantity": quantity, "where": where}
    wanted = Wanted(x, y, series, **chosen, fit=fit, beyond=beyond, labels=labels, even=even)
    showing = current()
    found = showing.find(experiment, **params)
    told = {name: value_behind(showing, where) for name, where in (edges or {}).items()}
    if ceiling and ceiling != LINK:
        told[ceiling] = value_behind(showing, f"limit:{ceiling}")
    every = list({id(each): each for each in (found, *(it for it, _ in told.values()))}.values())

    def draw() -> str:
        rules = [
            {"value": size, "text": f"{name}, {units.rate(size, 'B/s')}"}
            if name == ceiling
            else {"x": size, "text": f"{name}, {label(x, size)}"}
            for name, (_, size) in told.items()
            if size is not None
        ]
        sheet = datasheet(found.recording.data["machine"]["gpu"]) if ceiling == LINK else None
        if sheet and (most := sheet.link_bytes_per_s):
            text = f"{LINK} one way, {units.rate(most, 'B/s')}"
            rules.append({"value": most, "text": text})
        return _shown(found, wanted, rules)

    return framing.exhibit(every if told else found, caption, draw, kind="growth")


def lines(table: Sequence[Row], wanted: Wanted) -> dict[str, list[Row]]:
    """Rows of each series by rising size; those without a value are among them. UnknownName of a
    column or a value that is in no row; BadParameter of two rows of one size."""
    if wanted.y in rows.DERIVED:
        table = [rows.derived(row, None) for row in table]
    need_columns(table, wanted.x, wanted.y, wanted.series)
    kept = rows.select(rows.meeting(table, wanted.where), op=wanted.op, quantity=wanted.quantity)
    found: dict[str, dict[float, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in kept:
        size, name = row.get(wanted.x), row.get(wanted.series)
        has_place = is_number(size) and not units.missing(size) and not units.missing(name)
        if has_place and row.get("role") != "again":
            value = units.format_value(name)
            found[(wanted.labels or {}).get(value, value)][size].append(row)
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


def _shown(found: Found, wanted: Wanted, rules: list[dict[str, Any]]) -> str:
    x, y, by_series = wanted.x, wanted.y, lines(found.recording.rows, wanted)
    drawn = {name: [r for r in line if _drawable(r, x, y)] for name, line in by_series.items()}
    if not any(drawn.values()):
        if notes := [row["note"] for row in found.recording.rows if row.get("note")]:
            return spans.gap_because(notes[0])
        raise BadParameter(f"no row has a positive {x} and {y} to draw.")
    ends, under = [], ""
    if wanted.fit == "power":
        fits = {name: fitted(line, x, y, wanted.beyond) for name, line in drawn.items()}
        ends, under = _ends_of_fits(fits, drawn, wanted), _exponents(fits, wanted)
    elif wanted.fit == "levels":
        levels = {
            name: [line[first : last + 1] for first, last in plateaus([row[y] for row in line])]
            for name, line in drawn.items()
        }
        ends, under = _steps(levels, wanted), _levels(levels, wanted)
        if len(levels) == 1:  # of several lines the words would meet
            rules = rules + _words(next(iter(levels.values())), wanted)
    elif wanted.fit:
        if not any(wanted.fit in row for line in drawn.values() for row in line):
            raise UnknownName("fit", wanted.fit, FITS)
        ends = [
            {"series": name, "x": row[x], "value": row[wanted.fit]}
            for name, line in drawn.items()
            for row in line
        ]
    return _chart(drawn, ends, wanted, rules) + under + figures.twin(_table(by_series, wanted))


def _ends_of_fits(
    fits: Fits, drawn: Mapping[str, Sequence[Row]], wanted: Wanted
) -> list[dict[str, Any]]:
    """The ends of the line of each exponent."""
    ends = []
    for name, fit in fits.items():
        sizes = [row[wanted.x] for row in drawn[name] if row[wanted.x] >= (wanted.beyond or 0)]
        for x in {min(sizes), max(sizes)} if fit and fit.exact else ():
            value = fit.factor * x**fit.median
            ends.append({"series": name, "x": x, "value": value, "power": True})
    return ends


def _steps(levels: Mapping[str, Sequence[Sequence[Row]]], wanted: Wanted) -> list[dict[str, Any]]:
    """Both ends of each level of each line; nothing joins two levels."""
    return [
        {"series": name, "level": at, "x": row[wanted.x]}
        | {"value": median(each[wanted.y] for each in level)}
        for name, several in levels.items()
        for at, level in enumerate(several)
        for row in (level[0], level[-1])
    ]


def _words(levels: Sequence[Sequence[Row]], wanted: Wanted) -> list[dict[str, Any]]:
    """How high each level is, over its middle."""
    x, y = wanted.x, wanted.y
    return [
        {"x": sqrt(level[0][x] * level[-1][x]), "value": middle[y], "text": rows.printed(middle, y)}
        for level in levels
        for middle in [sorted(level, key=lambda row: row[y])[len(level) // 2]]
    ]


def _levels(levels: Mapping[str, Sequence[Sequence[Row]]], wanted: Wanted) -> str:
    """The levels of each series: from where to where, and how high."""
    x, y, body = wanted.x, wanted.y, []
    for name, several in levels.items():
        for place, level in enumerate(several, 1):
            middle = sorted(level, key=lambda row: row[y])[len(level) // 2]
            ends = [label(x, level[at][x]) for at in (0, -1)]
            body.append([tables.code(name), str(place), *ends, rows.ranged(middle, y)])
    up = rows.heading(y)
    heads = [rows.heading(wanted.series), "#level", "#from", "#up to", f"#{up}"]
    key = "dashed: the levels, each of three sizes or more. Between two of them the line falls."
    said = f'<p class="key">{key} The interval is of the middle one.</p>'
    return figures.twin(said + tables.listed(heads, body, f"Levels of the {up}"), name="Levels")


def _chart(
    drawn: Mapping[str, Sequence[Row]],
    ends: list[dict[str, Any]],
    wanted: Wanted,
    rules: Sequence[dict[str, Any]],
) -> str:
    every = [row for line in drawn.values() for row in line]
    in_names = _needs_names([row[wanted.y] for row in every], wanted.y)
    size, unit = (1.0, "") if in_names else _unit_of_axis(every, wanted.y)
    across, up = rows.heading(wanted.x), rows.heading(wanted.y)
    points = []
    for name, line in drawn.items():
        for row in line:
            x, y = row[wanted.x], row[wanted.y]
            bounds = (row.get(end) for end in rows.INTERVALS.get(wanted.y, ("", "")))
            low, high = (y if units.missing(end) else end for end in bounds)
            text = f"{name}, {across} {label(wanted.x, x)}: {rows.printed(row, wanted.y)}"
            point = {"series": name, "x": x, "value": y / size, "hover": text}
            points.append(point | {"low": max(low, y / BEYOND) / size, "high": high / size})
    ends, rules = (
        [each | ({"value": each["value"] / size} if "value" in each else {}) for each in several]
        for several in (ends, rules)
    )
    ticks = _ticks(wanted.x, axis(row[wanted.x] for row in every))
    titles = (across, f"{up}{f', {unit}' if unit else ''}{_spread(wanted.y, every)}")
    if wanted.even:
        drawing = svg.Drawing("steps.staircase", (points, (), rules, titles))
        named = f"{up} over {across}, of {', '.join(drawn)}."
    else:
        drawing = svg.Drawing("loglog.growth", (points, ends, ticks, titles, in_names, rules))
        named = f"{up}, on a logarithmic axis, over {across}, of {', '.join(drawn)}."
    return svg.chart([("", drawing)], f"{named} The table under it has the figures.")


def _spread(column: str, table: Sequence[Row]) -> str:
    """What the bars at a column's points reach over; empty where it has none."""
    if column not in rows.INTERVALS:
        return ""
    return f" ({columns.column(column).spread or rows.interval_name(table)})"


def _ticks(column: str, sizes: Sequence[float]) -> list[tuple[float, str]]:
    """The measured sizes with their names. Of bytes over a wide range these are the powers of four,
    because many odd sizes are read worse than few even ones; the ends stay, without a name."""
    low, high = min(sizes), max(sizes)
    if not column.endswith("bytes") or high / low < FAR:
        return [(size, label(column, size)) for size in sizes]
    reach = range(ceil(log(low / NEAR, 4)), floor(log(high * NEAR, 4)) + 1)
    even = {4.0**power: re.sub(r"\.0+ ", " ", units.byte_count(4**power)) for power in reach}
    ends = [end for end in (low, high) if all(max(end, p) / min(end, p) > NEAR for p in even)]
    return sorted([*even.items(), *((end, "") for end in ends)])


def _needs_names(values: Sequence[float], column: str) -> bool:
    """Whether these are bytes from KiB to MiB or more, too far apart for one unit."""
    return column.endswith("bytes") and min(values) >= 1024 and max(values) >= 1024 * min(values)


def _unit_of_axis(table: Sequence[Row], column: str) -> tuple[float, str]:
    values = [row[column] for row in table]
    if column == "rate":
        size, prefix = next(step for step in reversed(units.PREFIXES) if max(values) >= step[0])
        return size, f"{prefix}{table[0]['rate_unit']}"
    if column.endswith("_s"):
        return tables.time_unit(values)
    if columns.column(column).shown == "%":
        return 0.01, "%"
    if column.endswith("bytes"):
        steps = [step for step in units.BINARY if max(values) >= step[0]]
        return steps[-1] if steps else units.BINARY[0]
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
    heads = [rows.heading(wanted.series), "#exponent", "#sizes", "#farthest from the line", "note"]
    name = f"{rows.heading(wanted.y)} ∝ {rows.heading(wanted.x)} to this power"
    what = "The interval holds the noise and whatever is no power law."
    if counted:
        what = "The interval is how far the points stray from a power law."
    some = f", sizes from {label(wanted.x, wanted.beyond)}" if wanted.beyond else ""
    key = f'<p class="key">{escape(name)}; 95% interval{escape(some)}; dashed: the fit. {what}</p>'
    return key + _listed(heads, body, "Fitted exponents", "exponents")


def _table(by_series: Mapping[str, Sequence[Row]], wanted: Wanted) -> str:
    """One row for each point, and what could not be measured with its reason."""
    lines, x, y = [], wanted.x, wanted.y
    for name, row in ((name, row) for name, line in by_series.items() for row in line):
        cost = tables.time(row) if y == "median_s" else tables.cell(row, y)
        why = tables.why(row.get("note") or ("not positive" if row.get(y) == 0 else ""))
        if _drawable(row, x, y):
            why = tables.remarks({"launch_inclusive": row.get("launch_inclusive")})
        predicted = [tables.cell(row, wanted.fit)] if wanted.fit and wanted.fit not in FITS else []
        lines.append([tables.code(name), label(x, row[x]), cost, *predicted, why])
    across, up = rows.heading(x), rows.heading(y)
    more = [f"#{rows.heading(wanted.fit)}"] if wanted.fit and wanted.fit not in FITS else []
    heads = [rows.heading(wanted.series), f"#{across}", f"#{up}", *more, "note"]
    return _listed(heads, lines, f"{up} by {across}")


def _listed(heads: list[str], lines: list[list[str]], label: str, kind: str = "") -> str:
    """A table without its last column, of remarks, where no line has one."""
    if not any(line[-1] for line in lines):
        heads, *lines = (line[:-1] for line in (heads, *lines))
    return tables.listed(heads, lines, label, kind)
