"""Charts of the ladder: what a step's time is made of, and what each rung adds to the speed-up."""

from collections.abc import Sequence
from math import exp, log

import altair as alt

from anatomy.figures.charts import grammar
from anatomy.figures.charts.grammar import BAND, DESK, LOG_TICKS, PAPER, SERIES, TEXT, Data, Spec

LEAST = 30  # pixels of a part that has room for its share
BAR = 15  # pixels
SHARE = 10.5  # pixels of type; a phone is a little narrower than its picture
# Verdict of a rung over the one before it -> colour of its bar.
COLOURS = {"faster": grammar.BETTER, "slower": grammar.WORSE}


def parts(bars: Data, ends: Data, kinds: Sequence[str], title: str, *, width: int) -> Spec:
    """Bars that are made of parts, each with its `share` (a text) where there is room, and a tick.

    A part reaches from `start` to `end`. Of the `ends` of bars, `value` is where the tick is, and
    `text` stands behind `reach`: the tick, or the bar's end if that is farther. The last of the
    `kinds` of parts is what nothing ran in.
    """
    label, beside = grammar.label_width(ends, width), grammar.text_width(ends)
    longest, room = max(grammar.ends_of(ends, "reach")), width - label - beside
    scale = alt.Scale(domain=[0, longest * (1 + beside / room)], nice=False)
    x = alt.X("start:Q", scale=scale, title=title, axis=alt.Axis(tickCount=width // 90))
    rows, names, height = grammar.row_names(ends, width)
    where = grammar.legend(kinds, width, symbolType="square")
    colour, _ = grammar.series(kinds, where, "kind", [*SERIES[: len(kinds) - 1], BAND])
    base = grammar.on(bars, x=x, x2="end:Q", y=rows, color=colour, description="hover:N")
    layers = [base.mark_bar(height=BAR, stroke=PAPER, strokeWidth=1)]
    labelled = [
        bar | {"middle": (bar["start"] + bar["end"]) / 2}
        for bar in bars
        if room * (bar["end"] - bar["start"]) / longest >= LEAST
    ]
    for gap, ink in ((False, PAPER), (True, TEXT)):
        if some := [bar for bar in labelled if (bar["kind"] == kinds[-1]) is gap]:
            how = {"color": ink, "fontSize": SHARE, "baseline": "middle"}
            layers.append(grammar.words(grammar.on(some, x="middle:Q", y=rows), "share", how))
    ticks = grammar.on(ends, y=rows)
    marks = ticks.mark_tick(color=TEXT, thickness=2, size=BAR + 6)
    layers.append(marks.encode(x="value:Q", description="text:N"))
    layers.append(grammar.words(ticks, how={"align": "left", "dx": 7}, x="reach:Q"))
    return grammar.framed([*layers, *names], width, height)


def climb(steps: Data, title: str, *, width: int) -> Spec:
    """Each rung's speed-up over the first as a bar that begins where the rung before it ended:
    `start`, `value`, `low` and `high` are over the first rung, and `verdict` is over the one
    before. The `text`, for a phone the `short` one, stands behind `reach`."""
    data = [step | {"colour": COLOURS.get(step["verdict"], grammar.TONE)} for step in steps]
    text = "text" if width > DESK else "short"
    label, beside = grammar.label_width(data, width), grammar.text_width(data, text, 16)
    ends = [1.0, *grammar.ends_of(data, "start", "low", "high")]
    span = log(max(ends) / min(ends)) or 0.1
    low, high = min(ends) * exp(-0.03 * span), max(ends)
    shown = [tick for tick in LOG_TICKS if low <= tick <= high]
    high *= exp(span * beside / (width - label - beside))
    axis = alt.Axis(values=shown, format="~g", labelOverlap="greedy", labelSeparation=5)
    x = alt.X("start:Q", scale=grammar.log_scale(low, high), title=title, axis=axis)
    y, names, height = grammar.row_names(data, width)
    base = grammar.on(data, y=y)
    colour, bar = alt.Color("colour:N", scale=None), base.mark_bar(height=BAR)
    layers = [
        grammar.one("x"),
        bar.encode(x=x, x2="value:Q", color=colour, description="hover:N"),
        base.mark_rule(color=TEXT, strokeWidth=1.5).encode(x="low:Q", x2="high:Q"),
        base.mark_tick(color=TEXT, thickness=2, size=BAR + 4).encode(x="value:Q"),
        grammar.words(base, text, {"align": "left", "dx": 8}, x="reach:Q"),
        *names,
    ]
    return grammar.framed(layers, width, height)
