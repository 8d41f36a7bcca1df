"""What memory costs in time, on a page: every variant by both, and the frontier of those worth it.

Which of them are on it is `anatomy.exhibits.dominance`'s to say.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from anatomy import rows, tables, units
from anatomy.charts import figures, svg
from anatomy.errors import BadParameter
from anatomy.exhibits import payoffs
from anatomy.exhibits.dominance import NO, OPEN, YES, Point, Wanted, line, points
from anatomy.pages import inline
from anatomy.showing import Found, Showing, current, selectors

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
    caption: str | None = None,
    **params: Any,
) -> str:
    """Time against a count, both over the control's, and the frontier of what nothing beats.

        frontier("checkpointing.frontier", op="train C=2048 L=8 T=8x1024")
        frontier("checkpointing.frontier", x="total_peak_bytes", series="depth",
                 where={"width": 2048, "tokens": 8192})

    Args:
        experiment: Its name.
        x: Column of the count along the axis, such as `peak_bytes` or `total_peak_bytes`.
        where: Column -> its value, or a list of them; a text with `*` is a pattern.
        series: Column whose values are comparisons of their own, with a frontier each. Without it
            there must be one comparison.
        variants: Variants shown beside the control, in this order; by default all.
        quantity: The only quantity shown. There must be one: give it where there are several.
        op: The only operation shown; also the experiment's parameter of that name, if it has one.
        caption: What to see.
        params: Parameters of the experiment, where not the default.

    Raises:
        UnknownName: There is no such experiment, parameter, column, variant or value of a column.
        BadParameter: There are several comparisons, or several rows of a variant in one of them.
    """
    showing = current()
    params, op, quantity = selectors(experiment, params, op, quantity)
    if x in rows.INTERVALS:
        raise BadParameter(f"{x} has an interval; frontier() has a count along its axis.")
    wanted = Wanted(x, where, series, variants, quantity, op)
    found = showing.find(experiment, **params)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    if found.recording is None:
        return figures.framed(showing, [found], "", told)
    return figures.or_badge(showing, [found], told, lambda: _shown(showing, found, wanted, told))


def _shown(showing: Showing, found: Found, wanted: Wanted, caption: str | None) -> str:
    by_series = points(found.recording.data["rows"], wanted)
    body = figures.twin(_table(by_series, wanted), unfold=False)
    if any(point.placed for several in by_series.values() for point in several):
        body = _chart(showing, by_series, wanted) + body
    else:
        body = _table(by_series, wanted)
    return figures.framed(showing, [found], body, caption, kind="frontier")


def _name(wanted: Wanted, place: Any) -> str:
    """A series as its legend has it; the only comparison needs no name."""
    if wanted.series is None:
        return ""
    return f"{rows.heading(wanted.series)} {payoffs.label(wanted.series, place)}"


def _chart(showing: Showing, by_series: Mapping[Any, Sequence[Point]], wanted: Wanted) -> str:
    """The picture, what its marks mean, and what is on the frontier in words."""
    several = len(by_series) > 1
    drawn = [point for mine in by_series.values() for point in mine if point.placed]
    numbers = {name: str(number) for number, name in enumerate(_names(drawn), 1)}
    marks, steps = [], []
    for place, mine in by_series.items():
        series = _name(wanted, place)
        for point in mine:
            if not point.placed or (point.time.word == "control" and _repeated(marks)):
                continue
            control = point.time.word == "control"
            marks.append(
                {
                    "series": series,
                    "x": point.count.value,
                    "value": point.time.value,
                    "low": point.time.low,
                    "high": point.time.high,
                    "name": f"{point.variant}, the control" if control else point.variant,
                    "number": "" if control else numbers[point.variant],
                    "control": control,
                    "beaten": point.standing == NO,
                    "hover": _told(point, wanted, series),
                }
            )
        steps += [{"series": series, "x": p.count.value, "value": p.time.value} for p in line(mine)]
    floor = max((p.row.get("noise_floor") or 0.0 for p in drawn), default=0.0)
    table = [point.row for point in drawn]
    titles = (payoffs.title(wanted.x), payoffs.title("ratio", table))
    series = [_name(wanted, place) for place in by_series]
    names = len(marks) <= MOST_NAMED
    drawing = svg.Drawing("tradeoffs.frontier", (marks, steps, floor, titles, series, names))
    named = (
        f"{titles[1]} against {titles[0]} of {', '.join(_names(drawn, control=True))}"
        f"{f' by {rows.heading(wanted.series)}' if several else ''}, with the frontier of those "
        "that none beats in both. The table under it has the figures."
    )
    return (
        svg.chart(showing, [("", drawing)], named)
        + _numbers(numbers, drawn, always=not names)
        + _key(drawn, wanted, several=several)
        + _worth(by_series, wanted)
    )


def _repeated(marks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the control, which is at 1 by 1 in every series, is drawn already."""
    return any(mark["control"] for mark in marks)


def _names(drawn: Sequence[Point], *, control: bool = False) -> list[str]:
    return list(dict.fromkeys(p.variant for p in drawn if control or p.time.word != "control"))


def _told(point: Point, wanted: Wanted, series: str) -> str:
    """A point in words, for whoever points at it."""
    if point.time.word == "control":
        return f"{point.variant}: the control"
    where = f", {series}" if series else ""
    time = units.ratio_range(point.time.value, point.time.low, point.time.high)
    beaten = f"; beaten by {', '.join(point.beaten_by)}" if point.standing == NO else ""
    return (
        f"{point.variant}{where}: {rows.heading(wanted.x)} {units.ratio(point.count.value)}, "
        f"time {time}, {point.time.word}{beaten}"
    )


def _numbers(numbers: Mapping[str, str], drawn: Sequence[Point], *, always: bool) -> str:
    """Which number is which variant, where the picture has no room for their names."""
    kind = "key numbered" if always else "key numbered narrow"
    control = next((p.variant for p in drawn if p.time.word == "control"), "")
    parts = [
        f"<span><b>{number}</b> <code>{escape(name)}</code></span> "
        for name, number in numbers.items()
    ]
    parts += (
        [f"<span><b>●</b> <code>{escape(control)}</code>, the control</span>"] if control else []
    )
    return f'<p class="{kind}">{"".join(parts)}</p>'


def _key(drawn: Sequence[Point], wanted: Wanted, *, several: bool) -> str:
    """How to read it."""
    kind = "edge" if several else "edge first"
    what = escape(rows.heading(wanted.x))
    parts = [f"left: less {what}; down: faster"]
    parts.append(f'<span class="{kind}"></span> the frontier: nothing is shown to beat these')
    if any(point.standing == NO for point in drawn):
        parts.append("hollow: beaten; the table says by what")
    if any(point.standing == OPEN for point in drawn):
        parts.append("filled, above the line: not shown to be beaten, but the medians say so")
    return f'<p class="key">{"".join(f"<span>{part}</span> " for part in parts)}</p>'


def _worth(by_series: Mapping[Any, Sequence[Point]], wanted: Wanted) -> str:
    """What is on each frontier, from the least count to the most."""
    alike: dict[str, list[str]] = {}
    for place, several in by_series.items():
        on = ", ".join(f"<code>{escape(point.variant)}</code>" for point in line(several))
        alike.setdefault(on, []).append(payoffs.label(wanted.series or "op", place))
    lines = []
    for on, places in alike.items():
        where = f"{rows.heading(wanted.series)} {', '.join(places)}: on" if wanted.series else "on"
        said = f"{where[0].upper()}{where[1:]} the frontier, from left to right"
        if on:
            lines.append(f"<li>{escape(said)}: {on}.</li>")
    return f'<ul class="breaks">{"".join(lines)}</ul>'


def _table(by_series: Mapping[Any, Sequence[Point]], wanted: Wanted) -> str:
    """One row for each point: both ratios, the verdict, and whether it is on the frontier."""
    heading = rows.heading(wanted.x)
    heads = [f"#{rows.heading(wanted.series)}"] if wanted.series else []
    heads += ["variant", f"#{heading}", "#/ control", "#time / control"]
    heads += ["verdict", "on the frontier"]
    say: dict[str, Callable[[Point], str]] = {
        YES: lambda point: YES,
        OPEN: lambda point: f"undecided: {_named(point)} beats it by the median alone",
        NO: lambda point: f"no: beaten by {_named(point)}",
        "": lambda point: f'<span class="why">{escape(point.why)}</span>',
    }
    body = []
    for place, several in by_series.items():
        for point in several:
            cells = [escape(payoffs.label(wanted.series, place))] if wanted.series else []
            control = point.time.word == "control"
            ends = (None, None) if control else (point.time.low, point.time.high)
            cells += [
                f"<code>{escape(point.variant)}</code>",
                payoffs.printed(point.row, wanted.x),
                tables.figure(point.count.value, None, None),
                tables.figure(point.time.value, *ends),
                tables.chip(point.time.word) if point.time.word else tables.NONE,
                say[point.standing](point),
            ]
            body.append(cells)
    return tables.listed(heads, body, f"Time against {heading}", "payoffs")


def _named(point: Point) -> str:
    """The variants that beat a point, at most two of them."""
    shown = ", ".join(f"<code>{escape(name)}</code>" for name in point.beaten_by[:2])
    more = len(point.beaten_by) - 2
    return f"{shown} and {more} more" if more > 0 else shown
