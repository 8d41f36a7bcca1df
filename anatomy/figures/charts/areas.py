"""Kinds of something that lie on each other over time, as areas."""

from collections.abc import Sequence

import altair as alt

from anatomy.figures.charts import grammar
from anatomy.figures.charts.grammar import SERIES, TONE, Data, Spec

HIGH, LINE = 190, 14  # pixels of the plot, and of a line of names under it


def layers(
    tops: Data, parts: Data, peak: dict, kinds: Sequence[str], title: str, *, width: int
) -> Spec:
    """Areas of the `kinds`, from above: each of the `tops` has where one of them ends at `x`, which
    holds until its next one. Under the plot are the names of `parts`, from `start` to `end`, and in
    it the text of the `peak`."""
    scale = alt.Scale(domain=[0, parts[-1]["end"]], nice=False)
    x = alt.X("x:Q", scale=scale, axis=None)
    tall = alt.Scale(domain=[0, 1.1 * peak["value"]], nice=False)
    y = alt.Y("value:Q", title=title, stack=None, scale=tall)
    where = grammar.legend(kinds, width, symbolType="square")
    colours = [*SERIES[: len(kinds) - 1], TONE]  # the lowest is always there
    colour, _ = grammar.series(kinds, where, "kind", colours)
    # Each reaches down to 0, and those below it lie over it.
    areas = grammar.on(tops, x=x, y=y, color=colour).mark_area(interpolate="step-after", opacity=1)
    named = [part | {"x": (part["start"] + part["end"]) / 2} for part in parts]
    # Names of neighbours are on two lines: a phone has no room for them on one.
    names = [
        grammar.words(grammar.on(named[line::2], x=x, y=alt.value(HIGH + (line + 1) * LINE)))
        for line in (0, 1)
    ]
    most = grammar.words(grammar.on([peak], x=x, y=y), how={"dy": -8, "fontWeight": 600})
    ends = grammar.dashed(parts[:-1], x=alt.X("end:Q", scale=scale, axis=None))
    return grammar.framed([areas, ends, *names, most], width, HIGH)
