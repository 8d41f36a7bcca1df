"""What was claimed against what was measured, both logarithmic: on the diagonal they agree."""

from collections.abc import Iterator, Sequence
from math import atan2, cos, degrees, hypot, log10, sin
from typing import Any

import altair as alt

from anatomy.figures.charts import grammar, labels
from anatomy.figures.charts.grammar import BAND, DESK, MUTED, TEXT, Data, Spec
from anatomy.figures.charts.loglog import VERDICTS, powers_of_ten, steps_of_ten
from anatomy.figures.charts.tradeoffs import RIGHT, Plane, Scale, whiskers

RIGHT_WORDS, MORE, LESS = "the claim was right", "more than claimed", "less than claimed"
# Pixels left of the plot: the labels of numbers without a unit and with one, and the title.
BARE, NAMED, TITLE = 30, 46, 24
# Pixels of height: over the whole width and beside others, on a desk and on a phone.
TALL, PHONE, BESIDE, BESIDE_PHONE = 560, 430, 270, 260
ROOM = 0.05  # free room beyond the outermost number, as a share of the axis
NUDGE = {True: 9, False: 6}  # pixels that a mark may stand beside its number, desk and phone
SLIM = 2.5  # half of the room that a vertical bar wants, in pixels
FEW = 4.0  # from this many decades on an axis has the powers of ten alone
# Unit -> how an axis names its numbers.
SPACED = "replace(format(datum.value, '~s'), regexp('(\\\\D?)$'), ' $1{}')"
NAMES = {"s": SPACED.format("s"), "B/s": SPACED.format("B/s"), "share": "format(datum.value, '~%')"}
NUMBER = "format(datum.value, '~g')"


def against(
    points: Data, words: Sequence[str], unit: str, bands: Sequence[float], *, width: int
) -> Spec:
    """Measured over claimed, a mark for each claim, with the diagonal on which they are equal.

    A mark stands over the claimed number, of a range over the number in it that is nearest to what
    was measured. So how far it is above or below the diagonal is how far off the claim was.

    Of a point, `low` is None where it reaches 0, `many` is whether low to high spans several cases,
    and `name` and `number` are empty where the claim is not to be named. The words are the verdicts
    of the legend, none where another chart beside it has one. Bands are factors that are shaded.
    """
    wide, whole = width > DESK, bool(words)
    height = (TALL if wide else PHONE) if whole else (BESIDE if width < 330 else BESIDE_PHONE)
    beside = NAMED if unit in NAMES else BARE
    inner = width - beside - TITLE - RIGHT
    low, high = _reach(points)
    across, up = Scale(low, high, True, inner), Scale(low, high, True, height)
    plane = Plane(across, up)
    data = [p | {"low": max(p["low"] or low, low), "high": min(p["high"], high)} for p in points]
    _set_apart(data, plane, NUDGE[wide])
    x = alt.X("x:Q", title="claimed", scale=across.drawn(), axis=_axis(across, unit))
    extent = {"minExtent": beside, "maxExtent": beside}
    y = alt.Y("value:Q", title="measured", scale=up.drawn(), axis=_axis(up, unit, **extent))
    colours, shapes = zip(*VERDICTS.values(), strict=True)
    how = {"symbolOpacity": 1, "columnPadding": 24, "columns": 5 if wide else 2}
    where = grammar.legend(**how, values=words) if words else None
    colour, shape = grammar.series(list(VERDICTS), where, "verdict", colours, shapes)
    layers = []
    for factor in sorted(bands, reverse=True):  # the narrow band lies on the wide one
        ends = [{"x": e, "value": e / factor, "upper": e * factor} for e in (low, high)]
        seen = 1 if factor == min(bands) else 0.45
        area = grammar.on(ends, x=x, y=y, y2="upper:Q")
        layers.append(area.mark_area(color=BAND, opacity=seen, clip=True))
    diagonal = grammar.on([{"x": end, "value": end} for end in (low, high)], x=x, y=y)
    layers.append(diagonal.mark_line(color=TEXT, strokeWidth=1.2))
    if ranges := [point for point in data if point["claimed_low"] < point["claimed_high"]]:
        ends = {"x": "claimed_low:Q", "x2": "claimed_high:Q", "y": y}
        bars = grammar.on(ranges, **ends, description="hover:N")
        layers.append(bars.mark_rule(color=MUTED, opacity=0.4, strokeWidth=4))
    # Intervals are strong and have ends; what runs over several cases is thin.
    for many, stroke, seen in ((True, 1.2, 0.65), (False, 2.2, 1)):
        some = [point for point in data if point["many"] == many]
        bar, *caps = whiskers(grammar.on(some, x=x, color=colour), stroke, 1.2, opacity=seen)
        layers += [bar.encode(description="hover:N"), *caps]
    for point, wanted in zip(data, points, strict=True):
        for end, at, kind in (("low", low, "triangle-down"), ("high", high, "triangle-up")):
            if point[end] != wanted[end]:  # the bar goes on beyond the axis
                tip = [{"x": point["x"], "at": at} | {n: point[n] for n in ("verdict", "hover")}]
                arrow = grammar.on(tip, x=x, y="at:Q", color=colour, description="hover:N")
                layers.append(arrow.mark_point(filled=True, size=26, opacity=1, shape=kind))
    marks = grammar.on(data, x=x, y=y, description="hover:N")
    layers.append(grammar.dots(marks, 62, color=colour, shape=shape))
    layers += _words(data, plane, x, y, names=wide or not whole)
    return grammar.layered(layers, inner, height)


def _reach(points: Data) -> tuple[float, float]:
    """Both ends of both axes: all numbers and their intervals are within. Ranges over cases may not
    be: one that goes on for decades would press all that is of interest together."""
    held = grammar.ends_of(points, "claimed_low", "claimed_high", "value")
    held += filter(None, grammar.ends_of([point for point in points if not point["many"]]))
    room = (max(held) / min(held)) ** ROOM if max(held) > min(held) else 2.0
    return min(held) / room, max(held) * room


def _axis(scale: Scale, unit: str, **how: Any) -> alt.Axis:
    steps = steps_of_ten(scale.low, scale.high)
    if log10(scale.high / scale.low) > FEW or len(steps) * 30 > scale.pixels:
        steps = powers_of_ten(scale.low, scale.high)
    shown = [step for step in steps if scale.low <= step <= scale.high]
    named = NAMES.get(unit, NUMBER)
    return alt.Axis(values=shown, labelExpr=named, labelOverlap="greedy", **how)


def _set_apart(data: Data, plane: Plane, most: int) -> None:
    """Gives each point its `x`: over its claimed number, or where vertical bars would lie on one
    another in the nearest free place a few pixels beside it."""
    taken: list[labels.Box] = []
    # Long bars first: a short one finds a place beside them.
    for point in sorted(data, key=lambda each: each["low"] / each["high"]):
        number = min(max(point["value"], point["claimed_low"]), point["claimed_high"])
        home = plane.across.at(number)
        places = [home + (step + 1) // 2 * (1 if step % 2 else -1) for step in range(2 * most + 1)]
        boxes = {at: _room(point, at, plane) for at in places}
        covered = {at: sum(b.covers(t) for b in boxes[at] for t in taken) for at in places}
        best = min(places, key=lambda at: abs(at - home) + covered[at])
        point["x"] = plane.across.value(best)
        taken += boxes[best]


def _room(point: dict[str, Any], at: float, plane: Plane) -> list[labels.Box]:
    """What a mark and its vertical bar take, so many pixels from the left."""
    top, level, bottom = (plane.pixels(1.0, point[end])[1] for end in ("high", "value", "low"))
    return [labels.around(at, level), labels.Box(at - SLIM, top, at + SLIM, bottom)]


def _words(data, plane: Plane, x: alt.X, y: alt.Y, *, names: bool) -> Iterator[alt.Chart]:
    """The words on the diagonal and on both sides of it, and the claims' names that find room."""
    taken = [box for point in data for box in _room(point, plane.across.at(point["x"]), plane)]
    (right, bottom), high = plane.size, labels.HEIGHT / 2
    angle, spot, along = _on_diagonal(taken, plane.size)
    italic = {"fontStyle": "italic"}
    middle = grammar.on([plane.point(*spot) | {"text": RIGHT_WORDS}], x=x, y=y)
    yield grammar.words(middle, how=italic | {"angle": angle, "dy": -8})
    corners = (MORE, 6.0, "left", 10.0), (LESS, right - 6, "right", bottom - 10)
    for text, at, align, level in corners:
        left = at if align == "left" else at - labels.width(text)
        ends = left - labels.MARK, left + labels.width(text) + labels.MARK
        box = labels.Box(ends[0], level - high, ends[1], level + high)
        if any(box.covers(each) for each in taken + along):
            continue  # a mark is worth more, and the largest of the charts has the words
        side = grammar.on([plane.point(at, level) | {"text": text}], x=x, y=y)
        how = italic | {"color": MUTED, "align": align, "baseline": "middle"}
        yield grammar.words(side, how=how)
        taken.append(box)
    named = _named(data, taken + along, plane, names=names)
    if lines := plane.leaders(named, ("x", "value", "to_x", "to_value")):
        # Dotted, so that one that goes straight up or down is not taken for an interval.
        leaders = grammar.on(lines, x=x, x2="to_x:Q", y=y, y2="to_value:Q")
        yield leaders.mark_rule(color=MUTED, strokeWidth=1, strokeDash=[1.5, 2.5])
    yield from plane.names(named, x, y, 10.5)


def _on_diagonal(taken, size) -> tuple[float, tuple[float, float], list[labels.Box]]:
    """Where on the diagonal its words cover least: their angle, their middle, the room taken."""
    length, turn = hypot(*size), atan2(-size[1], size[0])
    needs = labels.width(RIGHT_WORDS) / 2 + labels.MARK

    def room(middle: float) -> list[labels.Box]:
        """The words stand 8 pixels above the line."""
        along = [middle + off for off in range(-int(needs), int(needs) + 1, 8)]
        across = [each * cos(turn) + 8 * sin(turn) for each in along]
        down = [size[1] + each * sin(turn) - 8 * cos(turn) for each in along]
        return list(map(labels.around, across, down))

    middles = [needs + part / 100 * (length - 2 * needs) for part in range(96, -1, -2)]
    middle = min(middles, key=lambda m: sum(b.covers(t) for b in room(m) for t in taken))
    spot = middle * cos(turn), size[1] + middle * sin(turn)
    return degrees(turn) % 360, spot, room(middle)


def _named(data, taken, plane: Plane, *, names: bool) -> list[labels.Label]:
    """Names beside marks, each with a leader where it stands farther off; none on another. What
    there is no room to name gets its number, and if that covers something too, nothing."""
    right, bottom = plane.size
    for point in data:
        start, level = plane.pixels(point["claimed_low"], point["value"])
        end = plane.across.at(point["claimed_high"])
        taken.append(labels.Box(start, level - SLIM, end, level + SLIM))
    for at in range(0, int(right), int(2 * SLIM)):  # the diagonal
        level = bottom * (1 - at / right)
        taken.append(labels.Box(at - SLIM, level - SLIM, at + SLIM, level + SLIM))
    wanted, free = [point for point in data if point["name"]], []
    for kind in ("name", "number") if names else ("number",):
        marks = [(*plane.pixels(point["x"], point["value"]), point[kind]) for point in wanted]
        found = labels.placed(marks, taken, [], plane.size)
        alone = [
            not any(label.box.covers(box) for box in taken)
            and not any(label.box.covers(other.box) for other in found if other is not label)
            for label in found
        ]
        wanted = [point for point, yes in zip(wanted, alone, strict=True) if not yes]
        free += [label for label, yes in zip(found, alone, strict=True) if yes]
        taken = taken + [label.box for label in free]
    return free
