"""Would you get the same? One occasion of the shown machine's recordings against the next."""

from collections.abc import Callable, Sequence
from html import escape
from itertools import product
from math import exp, log

from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.compared.agreement import LEAST_FACTOR
from anatomy.judge import again
from anatomy.judge.again import Agreement
from anatomy.judge.occasions import Seen, pooled
from anatomy.judge.pace import EITHER, GPU, HOST, MIXED
from anatomy.record import occasions as kept
from anatomy.record import recording
from anatomy.record.showing import Showing, current
from anatomy.table import units
from anatomy.table.errors import lookup

WHO = {
    GPU: "GPU-bound",
    HOST: "host-bound",
    EITHER: "GPU- or host-bound",
    MIXED: "GPU-against-host",
}
WHAT = {"median_s": "times", "ratio": "ratios"}
SHOWN = 1.25  # times the widest band: how far the axes reach
AGAIN = "pytorch-gpu-anatomy record --again"


def occasions(*, caption: str | None = None) -> str:
    """How the occasions of the shown machine's recordings agree: each ratio on one occasion over
    that on the one before, GPU- and host-bound apart, and the counts. A gap while each recording
    has a single one.
    """
    showing = current()

    def draw() -> str:
        found = seen(showing)
        counted = again.agreements(found)
        if not counted:
            return gap(showing.machine)
        table = tables.by_columns(COLUMNS, counted, "How occasions agree")
        return _chart(found) + figures.twin(table, unfold=True)

    return framing.exhibit([], caption, draw)


def gap(machine: str) -> str:
    """The sentence that stands where every recording of a machine has one occasion."""
    return (
        f'<div class="notice gap" role="note" data-search-exclude><p><b>One occasion so far.</b> '
        f"Nothing on {tables.code(machine)} was measured by the same code on a second day, card or "
        f"host yet. Measure it again:</p><pre><code>{AGAIN}</code></pre></div>"
    )


def agreeing(showing: Showing, name: str) -> list[Agreement]:
    """How the occasions of the shown machine agree in one kind of figures, such as `GPU-bound
    ratios`, or in all three of `ratios`; empty where nothing was measured twice."""
    counted = showing.once(("agreements", showing.machine), lambda: again.agreements(seen(showing)))
    known = {WHAT["ratio"]: [each for each in counted if each.figure == "ratio"]}
    for pace, figure in product(WHO, WHAT):
        mine = [each for each in counted if (each.pace, each.figure) == (pace, figure)]
        known[f"{WHO[pace]} {WHAT[figure]}"] = mine
    return lookup("kind of figures", name, known)


def seen(showing: Showing) -> list[list[Seen]]:
    """What each recording of the shown machine found on several occasions."""

    def read() -> list[list[Seen]]:
        # One that can't be used is told where it is shown.
        every = recording.all_recordings(showing.root, showing.machine, broken=[])
        return [kept.seen(each) for each in every]

    return showing.once(("occasions", showing.machine), read)


def _chart(found: Sequence[Sequence[Seen]]) -> str:
    every = [each for one in found for each in one]
    reach, panes = pooled(every), []
    for pace, who in WHO.items():
        mine = [each for each in every if (each.pace, each.figure) == (pace, "ratio")]
        # What lies on one another is drawn once.
        steps = ((_step(before), _step(after / before)) for before, after in map(_last, mine))
        points = [{"x": x, "value": value} for x, value in dict.fromkeys(steps)]
        if points:
            panes.append((f"{len(mine)} {who} ratios", points, reach[pace]["ratio"]))
    axes = "ratio on one occasion", "next occasion over that one"
    # A single mark far out would leave the others a line: it stands at the edge.
    farthest = max(LEAST_FACTOR, *(SHOWN * factor for *_, factor in panes))
    for _, points, _ in panes:
        for point in points:
            point["value"] = min(max(point["value"], 1 / farthest), farthest)
    panels = [
        (title, svg.Drawing("clouds.moved", (points, {}, axes, factor, farthest)))
        for title, points, factor in panes
    ]
    label = "Ratios on the next occasion over those on one. The table beside it counts them."
    return svg.chart(panels, label, abreast=2 if len(panels) == 4 else len(panels))


def _last(each: Seen) -> tuple[float, float]:
    """The figure on the last occasion but one, and on the last."""
    before, after = each.found[-2:]
    return before.median, after.median


def _step(ratio: float) -> float:
    """The nearest step of 2 %, which is about a pixel, and is only drawn."""
    return float(f"{exp(round(50 * log(ratio)) / 50):.4g}")


def _of(count: int | None, rows: int) -> str:
    return tables.NONE if count is None or not rows else units.percent(count / rows)


COLUMNS: tuple[tuple[str, Callable[[Agreement], str]], ...] = (
    ("figures", lambda each: escape(f"{WHO[each.pace]} {WHAT[each.figure]}")),
    ("#rows", lambda each: str(each.rows)),
    ("#half within", lambda each: units.percent(each.half)),
    ("#95% within", lambda each: units.percent(each.most)),
    ("#own intervals overlap", lambda each: _of(each.overlap, each.rows)),
    ("#same verdict", lambda each: _of(each.kept, each.rows)),
    ("#turned round", lambda each: tables.NONE if each.turned is None else str(each.turned)),
    ("#held by the others' interval", lambda each: _of(each.held, each.asked)),
)
