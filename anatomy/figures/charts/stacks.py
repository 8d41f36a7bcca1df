"""What something is made of: a step's time as stacked bars, memory over time as areas."""

from collections.abc import Sequence
from textwrap import wrap

import altair as alt

from anatomy.figures.charts import grammar
from anatomy.figures.charts.grammar import BAND, MUTED, PAPER, SERIES, TEXT, TONE, Data, Spec

LEAST = 30  # pixels of a part that has room for its share
BAR = 15  # pixels
UNDER = 14  # pixels: a line under a bar, of the parts that have no room
WORTH_SAYING = 0.01  # share of a bar: what is less is in the table alone
TALL, NAMES = 190, 14  # pixels of areas, and of a line of names under them
SHARE = 10.5  # pixels of type; a phone is a little narrower than its picture


def parts(
    bars: Data, ends: Data, kinds: Sequence[str], title: str, limit: bool = False, *, width: int
) -> Spec:
    """Bars that are made of parts, each with its `share` (a text), and a tick. A part that is too
    short for its share has it under the bar, with its name.

    A part reaches from `start` to `end`. Of the `ends` of bars, `value` is where the tick is, and
    `text` stands behind `reach`: the tick, or the bar's end if that is farther. The last of the
    `kinds` of parts is what nothing ran in; with `limit` the first is no part, but the least that
    all of them could take.
    """
    label, beside = grammar.label_width(ends, width), grammar.text_width(ends)
    longest, room = max(grammar.ends_of(ends, "reach")), width - label - beside
    scale = alt.Scale(domain=[0, longest * (1 + beside / room)], nice=False)
    x = alt.X("start:Q", scale=scale, title=title, axis=alt.Axis(tickCount=width // 90))
    rows, names, height = grammar.row_names(ends, width)
    where = grammar.legend(kinds, width, symbolType="square")
    coloured = [MUTED] * limit + list(SERIES[: len(kinds) - 1 - limit])
    colour, _ = grammar.series(kinds, where, "kind", [*coloured, BAND])
    base = grammar.on(bars, x=x, x2="end:Q", y=rows, color=colour, description="hover:N")
    layers = [base.mark_bar(height=BAR, stroke=PAPER, strokeWidth=1)]
    labelled, short, whole = [], {}, {end["label"]: end["reach"] for end in ends}
    for bar in bars:
        if room * (bar["end"] - bar["start"]) / longest >= LEAST:
            labelled.append(bar | {"middle": (bar["start"] + bar["end"]) / 2})
        elif bar["end"] - bar["start"] >= WORTH_SAYING * whole[bar["label"]]:
            short.setdefault(bar["label"], []).append(f"{bar['kind']} {bar['share']}")
    letters = int((width - label) / grammar.CHARACTER)
    under = [
        {"label": label, "text": wrap(" · ".join(said), letters)} for label, said in short.items()
    ]
    for gap, ink in ((False, PAPER), (True, TEXT)):
        if some := [bar for bar in labelled if (bar["kind"] == kinds[-1]) is gap]:
            how = {"color": ink, "fontSize": SHARE, "baseline": "middle"}
            layers.append(grammar.words(grammar.on(some, x="middle:Q", y=rows), "share", how))
    ticks = grammar.on(ends, y=rows)
    marks = ticks.mark_tick(color=TEXT, thickness=2, size=BAR + 6)
    layers.append(marks.encode(x="value:Q", description="text:N"))
    layers.append(grammar.words(ticks, how={"align": "left", "dx": 7}, x="reach:Q"))
    if under:
        how = {"align": "left", "baseline": "top", "dy": BAR / 2 + 3, "color": MUTED}
        how |= {"stroke": PAPER, "strokeWidth": 3}  # lines of the plot pass behind it
        beside = grammar.on(under, y=rows, x=alt.value(0))
        layers.append(grammar.words(beside, how=how))
        height += (UNDER * max(len(each["text"]) for each in under) + 6) * len(ends)
    return grammar.framed([*layers, *names], width, height)


def areas(
    tops: Data, spans: Data, peak: dict, kinds: Sequence[str], title: str, *, width: int
) -> Spec:
    """Areas of the `kinds`, from above: each of the `tops` has where one of them ends at `x`, which
    holds until its next one. Under the plot are the names of the `spans`, from `start` to `end`,
    and in it the text of the `peak`."""
    across = alt.Scale(domain=[0, spans[-1]["end"]], nice=False)
    up = alt.Scale(domain=[0, 1.1 * peak["value"]], nice=False)
    x = alt.X("x:Q", scale=across, axis=None)
    y = alt.Y("value:Q", title=title, stack=None, scale=up)
    where = grammar.legend(kinds, width, symbolType="square")
    # The lowest is always there.
    colour, _ = grammar.series(kinds, where, "kind", [*SERIES[: len(kinds) - 1], TONE])
    # Each reaches down to 0, and those below it lie over it.
    base = grammar.on(tops, x=x, y=y, color=colour)
    named = [span | {"x": (span["start"] + span["end"]) / 2} for span in spans]
    # Names of neighbours are on two lines: a phone has no room for them on one.
    names = [
        grammar.words(grammar.on(named[line::2], x=x, y=alt.value(TALL + (line + 1) * NAMES)))
        for line in (0, 1)
    ]
    # A line between two parts passes behind it.
    how = {"dy": -8, "fontWeight": 600, "stroke": PAPER, "strokeWidth": 3}
    layers = [
        base.mark_area(interpolate="step-after", opacity=1),
        grammar.dashed(spans[:-1], x=alt.X("end:Q", scale=across, axis=None)),
        *names,
        grammar.words(grammar.on([peak], x=x, y=y), how=how),
    ]
    return grammar.framed(layers, width, TALL)
