"""Charts with logarithmic axes: bandwidth, the roofline, the ledger, and costs over a size."""

import json
from collections.abc import Sequence
from math import ceil, floor, log2, log10
from typing import Any

import altair as alt

from anatomy.figures.charts import grammar, labels, tradeoffs
from anatomy.figures.charts.grammar import CHARACTER, DESK, MUTED, Data, Spec, Titles
from anatomy.figures.charts.tradeoffs import Plane, Scale

# Verdict on a claim -> colour and shape of its mark.
VERDICTS = {
    "holds": (grammar.BETTER, "circle"),
    "holds in part": ("var(--mixed)", "diamond"),
    "fails": (grammar.WORSE, "triangle-down"),
    "inconclusive": (MUTED, "square"),
    "not measurable here": (MUTED, "cross"),
}
CLAIM = 19  # pixels of a claim's row
HEIGHT = 260  # pixels of a plot of ratios
TOGETHER = (9, 4)  # pixels across and down from mark to mark: nearer ones share a label
EDGE = 15  # pixels from the name of an edge to that of the next
FREE = 8  # times: where no other edge is nearer on its right, a name stands there
RIGHT = {"align": "right", "dx": -4}
COUNTED = 10  # so many whole numbers in a row are a count, and lie evenly along an axis
# Vega names a size in bytes as a power of two.
BYTES = (
    "datum.value < 1048576 ? format(datum.value / 1024, 'd') + ' KiB' : "
    "datum.value < 1073741824 ? format(datum.value / 1048576, 'd') + ' MiB' : "
    "format(datum.value / 1073741824, 'd') + ' GiB'"
)
Ticks = Sequence[tuple[Any, str]]  # each coordinate and its name


def bandwidth(points: Data, rules: Data, edges: Data, *, width: int) -> Spec:
    """Bandwidth in TB/s of each operation over the `bytes` of its working set, with intervals. The
    rules are bandwidths that hold for every size; the edges are sizes, the size that the cache is
    said to have first."""
    least, most = (choose(grammar.ends_of(points, "bytes")) for choose in (min, max))
    powers = range(int(log2(least)), int(log2(most)) + 1)
    ticks = [2**power for power in powers if (power - 10) % (2 if width > DESK else 4) == 0]
    scale = grammar.log_scale(least / 1.3, most * 1.3, base=2)
    axis = alt.Axis(values=ticks, labelExpr=BYTES, grid=False)
    x = alt.X("bytes:Q", scale=scale, title="working set", axis=axis)
    top = max(grammar.ends_of(points, "high") + grammar.ends_of(rules, "value"))
    y = alt.Y("value:Q", title="TB/s (95% interval)", scale=alt.Scale(domain=[0, top * 1.2]))
    names = grammar.members(points)
    colour, shape = grammar.series(names, grammar.legend(names, width))
    layers = []
    for rule in rules:
        layers.append(grammar.dashed([rule], y="value:Q"))
        # On the right there are the curves; on the left they begin low, so the words stand there.
        name = grammar.on([rule], x=alt.value(0), y="value:Q", text="name:N")
        layers.append(name.mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=MUTED))
    for number, each in enumerate(edges):
        edge = grammar.on([each], x="bytes:Q")
        # Each name ends at its line, over all curves, and each line begins under the name before.
        row = 15 * number
        how = {"align": "right", "baseline": "top", "dx": -5, "dy": 3}
        name = edge.mark_text(**how, color=MUTED).encode(y=alt.value(row), text="name:N")
        rule = edge.mark_rule(color=MUTED, strokeWidth=1.2, strokeDash=[4, 3] if number else [1, 0])
        rule = rule.encode(y=alt.value(row), y2=alt.value("height"))
        layers.insert(0, rule)
        layers.append(name)
    base = grammar.on(points, x=x, description="hover:N")
    layers += [
        grammar.through(points, 1.6, x=x, y=y, color=colour),
        grammar.intervals(base, thick=1.4, color=colour),
        grammar.dots(base, 42, y=y, color=colour, shape=shape),
    ]
    return grammar.framed(layers, width, 280)


def roofline(
    roofs: Data, limits: dict[str, Any], points: Data = (), trails: Data = (), *, width: int
) -> Spec:
    """The most that a call can reach over its operations per byte, a roof for each format: with its
    `peak` (FLOP/s) and the `rate` that says it, its `ridge` (FLOP per byte) and the `text` of that.
    `limits` has the `bandwidth` (B/s) of the slope and the `name` over it, and may have a `steeper`
    one of the same kind; both end at the highest roof. `points` are calls, `at` their FLOP per
    byte: on a desk each has its `name` beside it, on a phone its `number`. A mark has the colour of
    the roof that is its `series`, where it has one."""
    ridges, slope = grammar.ends_of(roofs, "ridge"), limits["bandwidth"]
    left = 10 ** int(log10(min(ridges)) - 1)  # a power of ten well left of the first corner
    left = min([left, *(point["at"] / 4 for point in points)])
    # The words over a roof stand between its corner and this end.
    right = 10 ** (int(log10(max(ridges))) + (1.95 if width > DESK else 2))
    right = max([right, *(12 * point["at"] for point in points)])
    lines = [
        roof | {"at": at, "value": min(roof["peak"], at * slope)}
        for roof in roofs
        for at in (roof["ridge"], right)
    ]
    corners = [roof | {"at": roof["ridge"], "value": roof["peak"]} for roof in roofs]
    bottom, top = slope * left, 2 * max(grammar.ends_of(roofs, "peak"))
    bottom = min([bottom, *(point["low"] / 2 for point in points)])
    inner, height = width - tradeoffs.LEFT - tradeoffs.RIGHT, 440 if points else 320
    plane = Plane(Scale(left, right, True, inner), Scale(bottom, top, True, height))
    # On a phone the long ones would touch.
    values = powers_of_ten(left, right)[:: 1 if width > DESK else 2]
    axis = alt.Axis(values=values, format="~g")
    x = alt.X("at:Q", scale=plane.across.drawn(), title="operations per byte, FLOP/B", axis=axis)
    extent = {"minExtent": tradeoffs.EXTENT, "maxExtent": tradeoffs.EXTENT}
    axis = alt.Axis(values=powers_of_ten(bottom, top), format="~s", **extent)
    title = "operations a second, FLOP/s" if points else "measured ceiling, FLOP/s"
    y = alt.Y("value:Q", scale=plane.up.drawn(), title=title, axis=axis)
    names = grammar.members(roofs)
    colour, shape = grammar.series(names, grammar.legend(names, width))
    ring = {"fill": grammar.PAPER, "size": 40, "strokeWidth": 1.6} if points else {"filled": True}
    if points:  # calls are the marks: corners are rings, and the legend has colours alone
        shape = alt.value("circle")
    roof_lines = grammar.on(lines, x=x, y=y, description="hover:N")
    marks = grammar.on(corners, x=x, y=y, description="hover:N")
    turns = marks.mark_point(**{"size": 70, "opacity": 1} | ring)
    slopes = [each for each in (limits, limits.get("steeper")) if each]
    highest = max(grammar.ends_of(roofs, "peak"))
    along, words = _slopes(slopes, (left, highest), plane, (x, y))
    # At the right end of a roof nothing else is in the way of its words.
    said = tradeoffs.roof_labels(roofs, plane, points, short=width <= DESK)
    above = {"align": "right", "baseline": "bottom", "dx": -2}
    known = f"indexof({json.dumps(names)}, datum.series) >= 0"
    shade = alt.condition(known, colour, alt.value(grammar.TEXT))
    roofed = [
        grammar.words(
            grammar.on([each], x=alt.value("width"), y=y, color=shade),
            how=above | {"dy": -each["lift"]},
        )
        for each in said
    ]
    calls = []
    if points:
        for each in said:
            level, wide = plane.pixels(right, each["value"])[1], 1.1 * labels.width(each["text"])
            words.append(labels.Box(inner - wide, level - 14 - each["lift"], inner, level))
        ends = [(line["ridge"], line["peak"], right, line["peak"]) for line in roofs]
        for each in slopes:
            corner = (highest / each["bandwidth"], highest)
            ends.append((left, left * each["bandwidth"], *corner))
        segments = [(*plane.pixels(*end[:2]), *plane.pixels(*end[2:])) for end in ends]
        calls += _calls(points, (words, segments), plane, (x, y), shade, names=width > DESK)
    layers = [
        *along,
        roof_lines.mark_line(strokeWidth=1.8).encode(color=colour),
        turns.encode(color=colour, shape=shape),
        *roofed,
        *_trails(trails, (x, y), names=width > DESK),
        *calls,
    ]
    return grammar.layered(layers, inner, height)


def _slopes(slopes, ends, plane: Plane, axes) -> tuple[list[alt.Chart], list[labels.Box]]:
    """Slopes from the left end of the axis to the highest roof, all but the first one dashed; over
    the steepest, the last, their names, and boxes that cover these."""
    (x, y), (left, highest), steep = axes, ends, slopes[-1]["bandwidth"]
    spot = plane.pixels(left, left * steep), plane.pixels(highest / steep, highest)
    middle = {"at": (left * highest / steep) ** 0.5, "value": (left * highest * steep) ** 0.5}
    drawn, boxes = [], []
    for number, each in enumerate(slopes):
        corner = {"at": highest / each["bandwidth"], "value": highest}
        line = grammar.on([{"at": left, "value": left * each["bandwidth"]}, corner], x=x, y=y)
        how = {"strokeDash": [4, 3]} if number else {"strokeWidth": 1.8}
        turned, taken = labels.along(
            *spot, each["name"], 5 + tradeoffs.LINE * (len(slopes) - 1 - number)
        )
        name = grammar.on([middle | {"text": each["name"]}], x=x, y=y)
        drawn += [
            line.mark_line(color=MUTED, **how),
            grammar.words(name, how=turned | {"color": MUTED}),
        ]
        boxes += taken
    return drawn, boxes


def _trails(trails: Data, axes, *, names: bool) -> list[alt.Chart]:
    """Hollow marks where calls lie by the bytes that they move, each with a line from its own."""
    (x, y), layers = axes, []
    for each in trails:
        mark = grammar.on([each], x=x, y=y, description="hover:N")
        line = mark.mark_rule(color=MUTED, strokeDash=[3, 3]).encode(x2="from:Q")
        hollow = mark.mark_point(filled=False, size=55, color=grammar.TEXT, strokeWidth=1.6)
        layers += [line, hollow]
        if names:
            name = grammar.on([each | {"text": "by bytes moved"}], x=x, y=y)
            beside = {"color": MUTED, "align": "left", "dx": 8, "dy": -7}
            layers.append(grammar.words(name, how=beside))
    return layers


def _calls(points, drawn, plane: Plane, axes, shade, *, names: bool) -> list[alt.Chart]:
    """The marks of calls with their names, or numbers, none on another nor on the words and, where
    there is room, the lines that are `drawn`."""
    (x, y), (words, lines) = axes, drawn
    where: list[tuple[float, float, str]] = []
    called = "name" if names else "number"
    for point in points:
        (right, down), name = plane.pixels(point["at"], point["value"]), point[called]
        others = enumerate(where) if name.isdigit() else ()
        for place, (across, level, told) in others:
            if told and abs(right - across) < TOGETHER[0] and abs(down - level) < TOGETHER[1]:
                where[place], name = (across, level, f"{told}, {name}"), ""
                break
        where.append((right, down, name))
    boxes = words + [labels.around(*here) for *here, name in where if not name]
    found = labels.placed([each for each in where if each[2]], boxes, lines, plane.size)
    layer = grammar.on(points, x=x, y=y, description="hover:N")
    calls = [grammar.dots(layer, 55, color=shade, shape=alt.value("circle"))]
    if led := plane.leaders(found, ("at", "value", "to_x", "to_y")):
        leaders = grammar.on(led, x=x, y=y, x2="to_x:Q", y2="to_y:Q")
        calls.insert(0, leaders.mark_rule(color=MUTED, strokeWidth=1))
    same = alt.X("x:Q", **{key: x[key] for key in ("scale", "title", "axis")})
    halo = {"stroke": grammar.PAPER, "strokeWidth": 3}  # roofs pass behind the names
    return [*calls, *plane.names(found, same, y, **halo)]


def claimed(points: Data, *, width: int) -> Spec:
    """Measured numbers over claimed ones, a row for each claim: 1 where the claim was right. `many`
    is whether low to high spans several cases; `value`, `low`, `high`, `claimed_low` and
    `claimed_high` are over the middle of what was claimed, all positive."""
    data = sorted(points, key=lambda point: -point["value"])
    ends = grammar.ends_of(data, "claimed_low", "claimed_high", "low", "high")
    low, high = min(ends) / 1.2, max(ends) * 1.2
    there = [word for word in VERDICTS if any(point["verdict"] == word for point in data)]
    where = grammar.legend(there, width - grammar.label_width(data, width))
    colours, shapes = zip(*(VERDICTS[word] for word in there), strict=True)
    colour, shape = grammar.series(there, where, "verdict", colours, shapes)
    times = "format(datum.value, '~g') + '×'"
    values = [step for step in steps_of_ten(low, high) if low <= step <= high]
    axis = alt.Axis(values=values, labelExpr=times, orient="top")
    x = alt.X("value:Q", scale=grammar.log_scale(low, high), title="measured / claimed", axis=axis)
    y, names, height = grammar.row_names(data, width, code=False)
    base = grammar.on(data, y=y, description="hover:N")
    dash = alt.condition("datum.many", alt.value([2, 3]), alt.value([1, 0]))
    ranges = [point for point in data if point["claimed_low"] < point["claimed_high"]]
    spans = grammar.on(ranges, y=y, x="claimed_low:Q", x2="claimed_high:Q")
    layers = [spans.mark_bar(color=MUTED, opacity=0.3, height=9)] if ranges else []
    layers += [
        grammar.dashed([{"value": 1.0}], (6, 4), x=x),
        grammar.intervals(base, "x", color=colour, strokeDash=dash),
        grammar.dots(base, x=x, color=colour, shape=shape),
        *names,
    ]
    return grammar.framed(layers, width, height if width <= DESK else CLAIM * len(data))


def payoff(
    points: Data, ranges: Data, ticks: Ticks, floor: float, titles: Titles, *, width: int
) -> Spec:
    """A ratio over a coordinate, a line for each variant, with the ranges of break-even. The marks
    of points not `shown` to differ from 1 are hollow. A range has the `low` and `high` ends of a
    break-even `at` a coordinate, a dotted line; it is shaded where no other lies on top of it. The
    largest noise floor is a band around 1."""
    ends = [1 - floor, 1 + floor, *grammar.ends_of(points)]
    how = grammar.ratio_axis(ends, 0.06, 0.1, 6, titles[1])
    x, y = _over_x(ticks, titles[0], width), alt.Y("value:Q", **how)
    colour, shape = _series(points, width)
    found = grammar.on(ranges, color=colour)
    shaded = found.mark_rect(opacity=0.13).encode(x="low:Q", x2="high:Q")
    layers = [shaded] if len(ranges) == 1 else []
    layers += [grammar.noise(floor, "y"), grammar.one("y"), *grammar.abreast(points, x, colour)]
    if _numeric(ticks):  # between texts there is nothing for a line to pass
        layers.append(grammar.through(points, 1.8, x=x, y=y, color=colour))
    for shown in (True, False):
        if some := [point for point in points if point["shown"] == shown]:
            marks = grammar.on(some, x=x, y=y, color=colour, description="hover:N")
            mark = marks.mark_point(filled=shown, size=62, opacity=1, strokeWidth=1.8)
            layers.append(mark.encode(shape=shape))
    if ranges:
        layers.append(found.mark_rule(strokeWidth=1.4, strokeDash=[2, 2]).encode(x="at:Q"))
    return grammar.framed(layers, width, HEIGHT)


def growth(
    points: Data,
    fits: Data,
    ticks: Ticks,
    titles: Titles,
    named: bool = False,
    rules: Data = (),
    *,
    width: int,
) -> Spec:
    """A cost over a size, both logarithmic, a line for each series; `fits` are the ends of fits, in
    the colour of their series or, of a `power`, in that of text. A cost in bytes may be `named`:
    `64 KiB`, `2 MiB`. `rules` are lines with a `text`: upright at an `x`, level at a `value`, or
    words alone over a place that has both."""
    edges = [rule for rule in rules if "value" not in rule]
    level = [rule for rule in rules if "x" not in rule]
    drawn = [grammar.ends_of(points, "low", "high"), grammar.ends_of([*fits, *level], "value")]
    low, high = min(map(min, filter(None, drawn))) / 1.25, max(map(max, filter(None, drawn))) * 1.25
    if edges:
        low *= (low / high) ** (EDGE * len(edges) / 300)  # room for their names
    if named:
        apart = ceil(log2(high / low) / 8)  # powers of two from one name to the next
        powers = range(ceil(log2(low)), floor(log2(high)) + 1)
        values = [2.0**power for power in powers if power % apart == 0]
        axis = alt.Axis(values=values, labelExpr=BYTES)
    else:
        steps = steps_of_ten(low, high, fine=high / low < 10)
        values = [step for step in steps if low <= step <= high]
        axis = alt.Axis(
            values=values if len(values) <= 9 else powers_of_ten(low, high), format="~g"
        )
    y = alt.Y("value:Q", title=titles[1], scale=grammar.log_scale(low, high), axis=axis)
    colour, shape = _series(points, width)
    x = _over_x(ticks, titles[0], width)
    base = grammar.on(points, x=x, description="hover:N")
    dashed = {"strokeWidth": 1.2, "strokeDash": [5, 4]}
    powers = [fit for fit in fits if fit.get("power")]
    others = [fit for fit in fits if not fit.get("power")]
    under = grammar.on(others, x="x:Q", y="value:Q", color=colour, detail="level:N")
    over = grammar.on(powers, x="x:Q", y="value:Q", detail="series:N")
    layers = [
        *([under.mark_line(opacity=0.8, **dashed)] if others else []),
        grammar.through(points, 1.8, x=x, y=y, color=colour),
        # On top, and of another colour: a line that keeps to its power would hide it.
        *([over.mark_line(color=grammar.TEXT, **dashed)] if powers else []),
        *grammar.abreast(points, x, colour),
        grammar.dots(base, 62, y=y, color=colour, shape=shape),
        *_named([rule for rule in rules if "x" in rule and "value" in rule], dy=-13),
        *_named(level, align="left", dx=4, dy=-9),
    ]
    last = max(grammar.ends_of(points, "x"))
    for number, edge in enumerate(edges):
        layers.insert(0, grammar.dashed([edge], x="x:Q"))
        name = grammar.on([edge], x="x:Q", y=alt.value(292 - EDGE * (len(edges) - 1 - number)))
        room = min((other["x"] for other in edges if other["x"] > edge["x"]), default=last)
        side = {"align": "left", "dx": 4} if room > FREE * edge["x"] else RIGHT
        layers.append(grammar.words(name, how=side | {"color": MUTED}))
    return grammar.framed(layers, width, 300)


def _named(rules: Data, **how: Any) -> list[alt.Chart]:
    """The words of rules, and the line of those that are level."""
    layers = []
    for rule in rules:
        across = "x:Q" if "x" in rule else alt.value(0)
        if "x" not in rule:
            layers.append(grammar.dashed([rule], y="value:Q"))
        words = grammar.on([rule], x=across, y="value:Q")
        layers.append(grammar.words(words, how={"color": MUTED, **how}))
    return layers


def steps_of_ten(low: float, high: float, *, fine: bool = False) -> list[float]:
    """1, 2 and 5 times the powers of ten between two numbers; the powers alone if they are far;
    1, 1.5, 2, 3, 5 and 7 times if the steps are to be `fine`."""
    bases = (1, 2, 5) if high / low < 1e3 else (1,)
    bases = (1, 1.5, 2, 3, 5, 7) if fine else bases
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    return [base * 10.0**power for power in powers for base in bases]


def powers_of_ten(low: float, high: float) -> list[float]:
    """From `low` to `high`."""
    first, last = ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1)]


def _numeric(ticks: Ticks) -> bool:
    return not isinstance(ticks[0][0], str)


def _counted(sizes: Sequence[float]) -> bool:
    """Whether these go one by one, such as calls in order, and not from size to size."""
    return len(sizes) >= COUNTED and list(sizes) == [sizes[0] + at for at in range(len(sizes))]


def _over_x(ticks: Ticks, title: str, width: int) -> alt.X:
    """A coordinate along the axis, logarithmic of sizes: its measured values are the ticks."""
    names = dict(ticks)
    if not _numeric(ticks):
        slanted = sum(map(len, names)) * CHARACTER > width - 6 * grammar.GAP
        plain = alt.Axis(labelAngle=-40 if slanted else 0, grid=False)
        return alt.X("x:O", sort=list(names), title=title, axis=plain)
    sizes = sorted(names)
    if _counted(sizes):
        even = alt.Axis(values=sizes, format="d", grid=False, labelOverlap="greedy")
        ends = alt.Scale(domain=[sizes[0] - 0.5, sizes[-1] + 0.5], nice=False, zero=False)
        return alt.X("x:Q", title=title, scale=ends, axis=even)
    room = 1.12 if len(sizes) > 1 else 2
    pairs = "".join(f"datum.value == {size} ? {json.dumps(names[size])} : " for size in sizes)
    how = {"labelExpr": f"{pairs}''", "labelOverlap": "greedy", "labelSeparation": 4}
    axis = alt.Axis(values=sizes, tickCount=len(sizes), grid=False, **how)
    scale = grammar.log_scale(sizes[0] / room, sizes[-1] * room)
    return alt.X("x:Q", title=title, scale=scale, axis=axis)


def _series(points: Data, width: int) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape of each series; a legend where there are several."""
    names = grammar.members(points)
    several = grammar.legend(names, width, symbolOpacity=1)
    return grammar.series(names, several if len(names) > 1 else None)
