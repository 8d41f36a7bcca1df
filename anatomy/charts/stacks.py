"""Charts of the ladder: what a step's time is made of, and what each rung adds to the speed-up.

They are in the manner of `anatomy.charts`, which has what all charts share.
"""

from collections.abc import Sequence
from math import exp, log
from typing import Any

import altair as alt

from anatomy.charts.plain import (
    BAND,
    CHARACTER,
    LOG_TICKS,
    MUTED,
    SERIES,
    TEXT,
    TONE,
    Drawn,
    _label_width,
    _names,
    _spec,
    _values,
)

PAPER = "var(--md-default-bg-color)"  # the page's own colour: text on what is coloured
LEAST = 30  # pixels of a part that has room for its share
BAR = 15  # pixels
SHARE = 10.5  # pixels of type; a phone is a little narrower than its picture
# Verdict of a rung over the one before it -> colour of its bar.
COLOURS = {"faster": "var(--chart-better)", "slower": "var(--chart-worse)"}


def parts(
    bars: Sequence[dict[str, Any]],
    ends: Sequence[dict[str, Any]],
    kinds: Sequence[str],
    title: str,
) -> Drawn:
    """Bars that are made of parts, each with its share where there is room, and a tick.

    Args:
        bars: `label`, `kind`, `start`, `end`, `share` (a text) and `told` of each part.
        ends: `label`, `value` (where the tick is), `reach` (that, or the bar's end if it is
            farther) and `text`, which stands behind that.
        kinds: All kinds of parts in order; the last is what nothing ran in.
        title: Of the axis.
    """
    data, ticks = [dict(each) for each in bars], [dict(each) for each in ends]
    return lambda width: _parts(data, ticks, list(kinds), title, width)


def _parts(data, ticks, kinds, title, width) -> dict[str, Any]:
    label = _label_width(ticks, width)
    beside = max(len(tick["text"]) for tick in ticks) * CHARACTER + 12
    longest = max(tick["reach"] for tick in ticks)
    room = width - label - beside
    scale = alt.Scale(domain=[0, longest * (1 + beside / room)], nice=False)
    x = alt.X("start:Q", scale=scale, title=title, axis=alt.Axis(tickCount=width // 90))
    names = _names(ticks, label)
    colours = alt.Scale(domain=kinds, range=[*SERIES[: len(kinds) - 1], BAND])
    columns = len(kinds) if width > 500 else 2
    where = alt.Legend(orient="top", title=None, symbolType="square", columns=columns)
    shown = [
        bar | {"middle": (bar["start"] + bar["end"]) / 2, "gap": bar["kind"] == kinds[-1]}
        for bar in data
    ]
    told = [bar for bar in shown if room * (bar["end"] - bar["start"]) / longest >= LEAST]
    layers = [
        alt.Chart(_values(shown))
        .mark_bar(height=BAR, stroke=PAPER, strokeWidth=1)
        .encode(
            x=x,
            x2="end:Q",
            y=names,
            color=alt.Color("kind:N", scale=colours, sort=kinds, legend=where),
            description="told:N",
        )
    ]
    for gap, colour in ((False, PAPER), (True, TEXT)):
        some = [bar for bar in told if bar["gap"] is gap]
        if some:
            words = alt.Chart(_values(some)).mark_text(
                color=colour, fontSize=SHARE, baseline="middle"
            )
            layers.append(words.encode(x=alt.X("middle:Q"), y=names, text="share:N"))
    marks = alt.Chart(_values(ticks))
    layers += [
        marks.mark_tick(color=TEXT, thickness=2, size=BAR + 6).encode(
            x=alt.X("value:Q"), y=names, description="text:N"
        ),
        marks.mark_text(align="left", dx=7, color=TEXT, fontSize=11).encode(
            x=alt.X("reach:Q"), y=names, text="text:N"
        ),
    ]
    return _spec(alt.layer(*layers), width, rows=len(ticks))


def climb(steps: Sequence[dict[str, Any]], title: str) -> Drawn:
    """Each rung's speed-up over the first as a bar that begins where the rung before it ended.

    Args:
        steps: Of each rung `label`; `start`, `value`, `low` and `high`, speed-ups over the first
            one; `reach`, what its text stands behind; `verdict` over the rung before it; `text`,
            `short` (the same for a phone) and `told`.
        title: Of the axis.
    """
    data = [step | {"colour": COLOURS.get(step["verdict"], TONE)} for step in steps]
    return lambda width: _climb(data, title, width)


def _climb(data, title, width) -> dict[str, Any]:
    label = _label_width(data, width)
    said = "text" if width > 500 else "short"
    beside = max(len(step[said]) for step in data) * CHARACTER + 16
    ends = [1.0, *(step[end] for step in data for end in ("start", "low", "high"))]
    span = log(max(ends) / min(ends)) or 0.1
    room = width - label - beside
    low, high = min(ends) * exp(-0.03 * span), max(ends) * exp(span * beside / room)
    shown = [tick for tick in LOG_TICKS if low <= tick <= max(ends)]
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    axis = alt.Axis(values=shown, format="~g", labelOverlap="greedy", labelSeparation=5)
    x = alt.X("start:Q", scale=scale, title=title, axis=axis)
    base = alt.Chart(_values(data)).encode(y=_names(data, label))
    colour = alt.Color("colour:N", scale=None)
    one = alt.Chart(_values([{"value": 1.0}])).mark_rule(color=MUTED, strokeDash=[4, 3])
    layers = [
        one.encode(x=alt.X("value:Q")),
        base.mark_bar(height=BAR).encode(x=x, x2="value:Q", color=colour, description="told:N"),
        base.mark_rule(color=TEXT, strokeWidth=1.5).encode(x=alt.X("low:Q"), x2="high:Q"),
        base.mark_tick(color=TEXT, thickness=2, size=BAR + 4).encode(x=alt.X("value:Q")),
        base.mark_text(align="left", dx=8, color=TEXT, fontSize=11).encode(
            x=alt.X("reach:Q"), text=f"{said}:N"
        ),
    ]
    return _spec(alt.layer(*layers), width, rows=len(data))
