"""What was claimed against what was measured, both logarithmic: on the diagonal they agree.

In the manner of `anatomy.charts.plain`, which has what all charts share.
"""

from collections.abc import Sequence
from math import atan2, cos, degrees, hypot, log10, sin
from typing import Any

import altair as alt

from anatomy.charts import labels
from anatomy.charts.loglog import VERDICTS, _decades, _steps
from anatomy.charts.plain import BAND, MUTED, TEXT, Drawn, _configured, _values
from anatomy.charts.tradeoffs import CAP, RIGHT, Scale

RIGHT_WORDS, MORE, LESS = "the seed was right", "more than claimed", "less than claimed"
# Pixels left of the plot: the labels of numbers without a unit and with one, and the title.
BARE, NAMED, TITLE = 30, 46, 24
# Pixels of height: of a chart over the whole width, of one that has neighbours, and on a phone.
TALL, BESIDE, PHONE = 560, 270, 430
BESIDE_PHONE = 260
ROOM = 0.05  # free room beyond the outermost number, as a share of the axis
NUDGE = {True: 9, False: 6}  # pixels that a mark may stand beside its number, desk and phone
SLIM = 2.5  # half of the room that a vertical bar wants, in pixels
FEW = 4.0  # from this many decades on an axis has the powers of ten alone
# Unit -> how an axis names its numbers.
SPACED = "replace(format(datum.value, '~s'), regexp('(\\\\D?)$'), ' $1{}')"
NAMES = {
    "s": SPACED.format("s"),
    "B/s": SPACED.format("B/s"),
    "share": "format(datum.value, '~%')",
}
NUMBER = "format(datum.value, '~g')"


def against(
    points: Sequence[dict[str, Any]], words: Sequence[str], unit: str, bands: Sequence[float]
) -> Drawn:
    """Measured over claimed, a mark for each claim, with the diagonal on which they are equal.

    A mark stands over the claimed number, of a range over the number in it that is nearest to what
    was measured. So how far it is above or below the diagonal is how far off the claim was.

    Args:
        points: `claimed_low`, `claimed_high`, `value`, `low` (None where it reaches 0), `high` in
            one unit, `many` (whether low to high spans several cases), `verdict`, `name` and
            `number` (of it; both empty where the claim is not to be named) and `told`.
        words: Verdicts of the legend; none where another chart beside it has one.
        unit: Of the numbers, one of `claims.findings.UNITS`.
        bands: Factors around the diagonal that are shaded, the narrow one first.
    """
    data = [dict(each) for each in points]
    return lambda width: _against(data, list(words), unit, list(bands), width)


def _against(data, words, unit, bands, width) -> dict[str, Any]:
    wide, whole = width > 500, bool(words)
    height = (TALL if wide else PHONE) if whole else (BESIDE if width < 330 else BESIDE_PHONE)
    beside = NAMED if unit in NAMES else BARE
    inner = width - beside - TITLE - RIGHT
    low, high = _reach(data)
    across, up = Scale(low, high, True, inner), Scale(low, high, True, height)
    beyond = []
    for point in data:
        if not point["low"] or point["low"] < low:
            point["low"] = low
            beyond.append(point | {"at": low, "arrow": "triangle-down"})
        if point["high"] > high:
            point["high"] = high
            beyond.append(point | {"at": high, "arrow": "triangle-up"})
    _set_apart(data, across, up, NUDGE[wide])
    places = {point["told"]: point["x"] for point in data}
    x = alt.X("x:Q", title="claimed", scale=across.drawn(), axis=_axis(across, unit))
    extent = {"minExtent": beside, "maxExtent": beside}
    y = alt.Y("value:Q", title="measured", scale=up.drawn(), axis=_axis(up, unit, **extent))
    known = list(VERDICTS)
    colours, shapes = zip(*VERDICTS.values(), strict=True)
    where = None
    if words:
        where = alt.Legend(
            orient="top",
            title=None,
            symbolSize=70,
            symbolOpacity=1,
            columnPadding=24,
            columns=5 if wide else 2,
            values=words,
        )
    colour, shape = (
        channel("verdict:N", sort=known, scale=alt.Scale(domain=known, range=kinds), legend=where)
        for channel, kinds in ((alt.Color, list(colours)), (alt.Shape, list(shapes)))
    )
    order = sorted(bands, reverse=True)  # the narrow band lies on the wide one
    layers = [_band(factor, across, x, y, factor == order[-1]) for factor in order]
    layers.append(_line(across, x, y))
    ranges = [point for point in data if point["claimed_low"] < point["claimed_high"]]
    if ranges:
        bars = alt.Chart(_values(ranges)).mark_rule(color=MUTED, opacity=0.4, strokeWidth=4)
        layers.append(
            bars.encode(x=alt.X("claimed_low:Q"), x2="claimed_high:Q", y=y, description="told:N")
        )
    layers += _bars(data, x, colour)
    for each in beyond:
        tip = alt.Chart(_values([each | {"x": places[each["told"]]}]))
        arrow = tip.mark_point(filled=True, size=26, opacity=1, shape=each["arrow"])
        layers.append(arrow.encode(x=x, y=alt.Y("at:Q"), color=colour, description="told:N"))
    marks = alt.Chart(_values(data)).mark_point(filled=True, size=62, opacity=1)
    layers.append(marks.encode(x=x, y=y, color=colour, shape=shape, description="told:N"))
    layers += _words(data, across, up, x, y, names=wide or not whole)
    return _configured(alt.layer(*layers).properties(width=inner, height=height))


def _reach(data) -> tuple[float, float]:
    """Both ends of both axes: all numbers and their intervals are within, long ranges may not be.

    A range over cases that goes on for decades would press all that is of interest together.
    """
    held = [point[end] for point in data for end in ("claimed_low", "claimed_high", "value")]
    held += [
        point[end] for point in data for end in ("low", "high") if point[end] and not point["many"]
    ]
    room = (max(held) / min(held)) ** ROOM if max(held) > min(held) else 2.0
    return min(held) / room, max(held) * room


def _axis(scale: Scale, unit: str, **how: Any) -> alt.Axis:
    steps = _steps(scale.low, scale.high)
    if log10(scale.high / scale.low) > FEW or len(steps) * 30 > scale.pixels:
        steps = _decades(scale.low, scale.high)
    shown = [step for step in steps if scale.low <= step <= scale.high]
    said = NAMES.get(unit, NUMBER)
    return alt.Axis(values=shown, labelExpr=said, labelOverlap="greedy", **how)


def _set_apart(data, across: Scale, up: Scale, most: int) -> None:
    """Gives each point its `x`: over its claimed number, or a few pixels beside it.

    Where vertical bars would lie on one another, the nearest free place is taken.
    """
    taken: list[labels.Box] = []
    # Long bars first: a short one finds a place beside them.
    for point in sorted(data, key=lambda each: each["low"] / each["high"]):
        home = across.at(min(max(point["value"], point["claimed_low"]), point["claimed_high"]))
        best: tuple[float, float, list[labels.Box]] | None = None
        for step in range(2 * most + 1):
            at = home + (step + 1) // 2 * (1 if step % 2 else -1)
            boxes = _room(point, at, up)
            cost = abs(at - home) + sum(one.covers(each) for one in boxes for each in taken)
            if best is None or cost < best[0]:
                best = cost, at, boxes
        point["x"] = across.value(best[1])
        taken += best[2]


def _room(point, at: float, up: Scale) -> list[labels.Box]:
    """What a mark and its vertical bar take, in pixels from the upper left corner."""
    top, bottom = (up.pixels - up.at(point[end]) for end in ("high", "low"))
    bar = labels.Box(at - SLIM, top, at + SLIM, bottom)
    return [labels.around(at, up.pixels - up.at(point["value"])), bar]


def _line(across: Scale, x, y) -> alt.Chart:
    line = alt.Chart(_values([{"x": end, "value": end} for end in (across.low, across.high)]))
    return line.mark_line(color=TEXT, strokeWidth=1.2).encode(x=x, y=y)


def _band(factor: float, across: Scale, x, y, strong: bool) -> alt.Chart:
    """All that is within a factor of the claim."""
    ends = across.low, across.high
    data = [{"x": end, "value": end / factor, "upper": end * factor} for end in ends]
    shade = alt.Chart(_values(data)).mark_area(color=BAND, opacity=1 if strong else 0.45, clip=True)
    return shade.encode(x=x, y=y, y2="upper:Q")


def _bars(data, x, colour) -> list[alt.Chart]:
    """Intervals are strong and have ends; what runs over several cases is thin."""
    drawn = []
    for many, stroke, seen in ((True, 1.2, 0.65), (False, 2.2, 1)):
        some = alt.Chart(_values([point for point in data if point["many"] == many]))
        bars = some.mark_rule(strokeWidth=stroke, opacity=seen)
        drawn.append(
            bars.encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour, description="told:N")
        )
        for end in ("low", "high"):
            caps = some.mark_tick(orient="horizontal", size=CAP, thickness=1.2, opacity=seen)
            drawn.append(caps.encode(x=x, y=alt.Y(f"{end}:Q"), color=colour))
    return drawn


def _words(data, across, up, x, y, *, names: bool) -> list[alt.Chart]:
    """The words on the diagonal and on both sides of it, and the claims' names that find room."""
    taken = [box for point in data for box in _room(point, across.at(point["x"]), up)]
    size = across.pixels, up.pixels
    placed = [
        _on_side(MORE, 6.0, "left", 10.0, size),
        _on_side(LESS, size[0] - 6, "right", size[1] - 10, size),
    ]
    angle, spot, along = _on_line(taken, size)
    right = alt.Chart(_values([_at(*spot, across, up) | {"text": RIGHT_WORDS}]))
    words = right.mark_text(color=TEXT, fontSize=11, angle=angle, dy=-8, fontStyle="italic")
    drawn = [words.encode(x=x, y=y, text="text:N")]
    for (text, at, align), _ in placed:
        words = alt.Chart(_values([_at(*at, across, up) | {"text": text}]))
        drawn.append(
            words.mark_text(
                color=MUTED, fontSize=11, align=align, baseline="middle", fontStyle="italic"
            ).encode(x=x, y=y, text="text:N")
        )
    taken += along + [box for _, box in placed]
    return drawn + _named(data, taken, across, up, x, y, names=names)


def _on_side(text, at, align, level, size):
    width = labels.width(text)
    left = at if align == "left" else at - width
    box = labels.Box(left, level - labels.HEIGHT / 2, left + width, level + labels.HEIGHT / 2)
    return (text, (at, level), align), box


def _on_line(taken, size):
    """Where on the diagonal its words cover least: their angle, their middle, the room taken."""
    length, turn = hypot(*size), atan2(-size[1], size[0])
    needs = labels.width(RIGHT_WORDS) / 2 + labels.MARK
    best = None
    for part in range(96, -1, -2):
        middle = needs + part / 100 * (length - 2 * needs)
        boxes = []
        for off in range(-int(needs), int(needs) + 1, 8):
            along = middle + off
            # The words stand above the line.
            at = along * cos(turn) + 8 * sin(turn)
            level = size[1] + along * sin(turn) - 8 * cos(turn)
            boxes.append(labels.around(at, level))
        cost = sum(box.covers(each) for box in boxes for each in taken)
        if best is None or cost < best[0]:
            spot = middle * cos(turn), size[1] + middle * sin(turn)
            best = cost, spot, boxes
    return degrees(turn) % 360, best[1], best[2]


def _around_line(at: float, size) -> labels.Box:
    """What the diagonal takes of the plot, at so many pixels from the left."""
    level = size[1] * (1 - at / size[0])
    return labels.Box(at - SLIM, level - SLIM, at + SLIM, level + SLIM)


def _alone(label: labels.Label, taken, others) -> bool:
    """Whether a name covers nothing and no other name."""
    boxes = [*taken, *(each.box for each in others if each is not label)]
    return not any(label.box.covers(box) for box in boxes)


def _at(at: float, level: float, across: Scale, up: Scale) -> dict[str, float]:
    """A place in pixels as numbers on the axes."""
    return {"x": across.value(at), "value": up.value(up.pixels - level)}


def _named(data, taken, across: Scale, up: Scale, x, y, *, names: bool) -> list[alt.Chart]:
    """Names beside marks, each with a leader where it stands farther off; none on another.

    What there is no room to name gets its number, and if that covers something too, nothing.
    """
    size = across.pixels, up.pixels
    for point in data:
        level = up.pixels - up.at(point["value"])
        left, right = (across.at(point[f"claimed_{end}"]) for end in ("low", "high"))
        taken.append(labels.Box(left, level - SLIM, right, level + SLIM))
    taken += [_around_line(at, size) for at in range(0, int(size[0]), int(2 * SLIM))]
    wanted, free = [point for point in data if point["name"]], []
    for kind in ("name", "number") if names else ("number",):
        marks = [(across.at(p["x"]), up.pixels - up.at(p["value"]), p[kind]) for p in wanted]
        found = labels.placed(marks, taken, [], size)
        alone = [_alone(label, taken, found) for label in found]
        wanted = [point for point, yes in zip(wanted, alone, strict=True) if not yes]
        some = [label for label, yes in zip(found, alone, strict=True) if yes]
        taken += [label.box for label in some]
        free += some
    drawn = []
    led = [label.leader for label in free if label.leader]
    if led:
        lines = [
            _at(*leader[:2], across, up)
            | {f"to_{name}": end for name, end in _at(*leader[2:], across, up).items()}
            for leader in led
        ]
        # Dotted, so that one that goes straight up or down is not taken for an interval.
        rules = alt.Chart(_values(lines)).mark_rule(
            color=MUTED, strokeWidth=1, strokeDash=[1.5, 2.5]
        )
        drawn.append(rules.encode(x=x, x2="to_x:Q", y=y, y2="to_value:Q"))
    for align in ("left", "center", "right"):
        mine = [label for label in free if label.align == align]
        some = [_at(each.anchor, each.y, across, up) | {"text": each.text} for each in mine]
        words = alt.Chart(_values(some)).mark_text(
            color=TEXT, fontSize=10.5, align=align, baseline="middle"
        )
        drawn += [words.encode(x=x, y=y, text="text:N")] if some else []
    return drawn
