"""What memory costs in time, on a page: every variant by both, and those that nothing beats."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.tradeoffs import payoffs
from anatomy.figures.tradeoffs.breakeven import Wanted
from anatomy.figures.tradeoffs.dominance import NO, OPEN, Point, line, points
from anatomy.judge import rows
from anatomy.record.showing import Found, current, selectors
from anatomy.table import units
from anatomy.table.errors import BadParameter

MOST_NAMED = 14  # marks that have room for their names on a desk; more have numbers


def frontier(
    experiment: str,
    *,
    x: str = "peak_bytes",
    where: Mapping[str, Any] | None = None,
    series: str | None = None,
    variants: Sequence[str] | None = None,
    quantity: str | None = None,
    op: str | None = None,
    expected: str | None = None,
    caption: str | None = None,
    **params: Any,
) -> str:
    """Time against a count, both over the control's, and the frontier of what nothing beats.

        frontier("checkpointing.frontier", op="train C=2048 L=8 T=8x1024")
        frontier("checkpointing.frontier", x="total_peak_bytes", series="depth",
                 where={"width": 2048, "tokens": 8192})

    Args:
        x: Column of the count along the axis, such as `peak_bytes` or `total_peak_bytes`.
        series: Column whose values are comparisons of their own, with a frontier each. Without it
            there must be one comparison.
        variants: Variants shown beside the control, in this order; by default all.
        expected: Column with the time over the control's that a count predicts; a bar at each mark.
        quantity: There must be one: give it where there are several.

    Raises:
        BadParameter: There are several comparisons, or several rows of a variant in one of them.
    """
    params = selectors(experiment, params, op, quantity)
    if x in rows.INTERVALS:
        raise BadParameter(f"{x} has an interval; frontier() has a count along its axis.")
    wanted = Wanted(x, series=series, variants=variants, op=op, quantity=quantity, where=where)
    found = current().find(experiment, **params)
    return framing.exhibit(found, caption, lambda: _shown(found, wanted, expected), kind="frontier")


def _shown(found: Found, wanted: Wanted, expected: str | None) -> str:
    by_series = points(found.recording.rows, wanted)
    table = _table(by_series, wanted)
    if not any(point.placed for several in by_series.values() for point in several):
        return table
    return _chart(by_series, wanted, expected) + figures.twin(table)


def _chart(by_series: Mapping[Any, Sequence[Point]], wanted: Wanted, expected: str | None) -> str:
    """The picture, what its marks mean, and what is on the frontier in words."""
    several = len(by_series) > 1
    drawn = [point for mine in by_series.values() for point in mine if point.placed]
    shown = rows.names([point.row for point in drawn], "variant")
    control = next((point.variant for point in drawn if point.is_control), None)
    others = (name for name in shown if name != control)
    numbers = {name: str(number) for number, name in enumerate(others, 1)}
    marks, steps, series = [], [], dict.fromkeys(by_series, "")
    if wanted.series:  # the only comparison needs no name in a legend
        head = rows.heading(wanted.series)
        series = {place: f"{head} {payoffs.label(wanted.series, place)}" for place in by_series}
    for place, mine in by_series.items():
        # The control, which is at 1 by 1 in every series, is drawn once.
        repeated = any(mark["control"] for mark in marks)
        new = [p for p in mine if p.placed and not (p.is_control and repeated)]
        marks += [_mark(point, numbers, wanted, series[place], expected) for point in new]
        steps += [{"series": series[place], **_at(point)} for point in line(mine)]
    floor = rows.noise_floor(point.row for point in drawn)
    titles = (payoffs.title(wanted.x), payoffs.title("ratio", [point.row for point in drawn]))
    names = len(marks) <= MOST_NAMED
    arguments = (marks, steps, floor, titles, list(series.values()), names)
    drawing = svg.Drawing("tradeoffs.frontier", arguments)
    by = f" by {rows.heading(wanted.series)}" if several else ""
    named = f"{titles[1]} against {titles[0]} of {', '.join(shown)}{by}, with the frontier of "
    named += "those that none beats in both. The table under it has the figures."
    picture = svg.chart([("", drawing)], named) + _numbers(numbers, control, always=not names)
    return picture + _how_to_read(drawn, wanted, several=several) + _worth(by_series, wanted)


def _mark(
    point: Point, numbers: Mapping[str, str], wanted: Wanted, series: str, expected: str | None
) -> dict[str, Any]:
    """A point as `tradeoffs.frontier` draws it."""
    control, low, high = point.is_control, point.time.low, point.time.high
    name = f"{point.variant}, the control" if control else point.variant
    mark = {"series": series, **_at(point), "low": low, "high": high, "control": control}
    mark |= {"name": name, "number": "" if control else numbers[point.variant]}
    if expected and not control and not units.missing(point.row.get(expected)):
        mark["expected"] = point.row[expected]
    return mark | {"beaten": point.standing == NO, "hover": _hover_text(point, wanted, series)}


def _at(point: Point) -> dict[str, float]:
    return {"x": point.count.value, "value": point.time.value}


def _hover_text(point: Point, wanted: Wanted, series: str) -> str:
    if point.is_control:
        return f"{point.variant}: the control"
    where = f", {series}" if series else ""
    time = units.ratio_range(point.time.value, point.time.low, point.time.high)
    beaten = f"; beaten by {', '.join(point.beaten_by)}" if point.standing == NO else ""
    count = f"{rows.heading(wanted.x)} {units.ratio(point.count.value)}"
    return f"{point.variant}{where}: {count}, time {time}, {point.time.word}{beaten}"


def _numbers(numbers: Mapping[str, str], control: str | None, *, always: bool) -> str:
    """Which number is which variant, where the picture has no room for their names."""
    kind = "key numbered" if always else "key numbered narrow"
    named = "<span><b>{}</b> {}</span> ".format
    parts = [named(number, tables.code(name)) for name, number in numbers.items()]
    if control:
        parts.append(named("●", f"{tables.code(control)}, the control").rstrip())
    return f'<p class="{kind}">{"".join(parts)}</p>'


def _how_to_read(drawn: Sequence[Point], wanted: Wanted, *, several: bool) -> str:
    kind = "edge" if several else "edge first"
    parts = [f"left: less {escape(rows.heading(wanted.x))}; down: faster"]
    parts.append(f'<span class="{kind}"></span> the frontier: nothing is shown to beat these')
    if any(point.standing == NO for point in drawn):
        parts.append("hollow: another is better, as the table says")
    if any(point.standing == OPEN for point in drawn):
        parts.append("filled but above the line: too close to tell")
    return f'<p class="key">{"".join(f"<span>{part}</span> " for part in parts)}</p>'


def _worth(by_series: Mapping[Any, Sequence[Point]], wanted: Wanted) -> str:
    """What is on each frontier, from the least count to the most."""
    alike: dict[str, list[str]] = {}
    for place, several in by_series.items():
        if on := ", ".join(tables.code(point.variant) for point in line(several)):
            alike.setdefault(on, []).append(payoffs.label(wanted.series or "op", place))
    lines = []
    for on, places in alike.items():
        where = f"{rows.heading(wanted.series)} {', '.join(places)}: on" if wanted.series else "on"
        said = f"{where[0].upper()}{where[1:]} the frontier, from left to right"
        lines.append(f"<li>{escape(said)}: {on}.</li>")
    return f'<ul class="breaks">{"".join(lines)}</ul>'


def _table(by_series: Mapping[Any, Sequence[Point]], wanted: Wanted) -> str:
    """One row for each point: both ratios, the verdict, and whether it is on the frontier."""
    heading, series = rows.heading(wanted.x), wanted.series

    def time(point: Point) -> str:
        ends = () if point.is_control else (point.time.low, point.time.high)
        return tables.figure(point.time.value, *ends)

    def standing(point: Point) -> str:
        beaters = ", ".join(map(tables.code, point.beaten_by[:2]))
        more = len(point.beaten_by) - 2
        beaters += f" and {more} more" if more > 0 else ""
        if point.standing == OPEN:
            return f"undecided: {beaters} beats it by the median alone"
        if beaters:
            return f"no: beaten by {beaters}"
        return point.standing or tables.why(point.time.why or point.count.why)

    columns = [
        ("variant", lambda point: tables.code(point.variant)),
        (f"#{heading}", lambda point: tables.cell(point.row, wanted.x)),
        ("#/ control", lambda point: tables.figure(point.count.value)),
        ("#time / control", time),
        ("verdict", lambda p: tables.chip(p.time.word) if p.time.word else tables.NONE),
        ("on the frontier", standing),
    ]
    if series:
        place = f"#{rows.heading(series)}", lambda p: escape(payoffs.label(series, p.time.x))
        columns.insert(0, place)
    every = [point for several in by_series.values() for point in several]
    return tables.by_columns(columns, every, f"Time against {heading}", "payoffs")
