"""The ladder on a page: one part of a comparison of its rungs, as a table or as a chart."""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from anatomy.chapters.ladder.shown import climbs, rungs
from anatomy.chapters.ladder.shown import tables as ladder_tables
from anatomy.chapters.ladder.shown.tables import View
from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.judge.rows import Row
from anatomy.record.showing import current, selectors
from anatomy.table import units
from anatomy.table.errors import UnknownName

EXPERIMENT = "ladder.training"
# One way or two of each rung, for a chart that tells the whole climb.
SHOWN = (
    *("0 fp32", "1 amp bf16", "2 amp bf16", "3 default", "3 reduce-overhead"),
    *("4 current", "4 current in a graph", "5 bf16", "5 fp8 delayed"),
)
# From the limit to a step, in the order of the colours that the parts of a step have.
OVER = ("the limit", "matmuls beyond it", "attention beyond it", "other kernels", "no kernel")
# Those whose parts are drawn beside each other: no bar is many times as long as the next.
PARTED = tuple(way for way in SHOWN if way not in ("0 fp32", "4 current"))


def ladder(
    part: str = "speed",
    *,
    experiment: str = EXPERIMENT,
    op: str | None = None,
    variants: Sequence[str] | None = None,
    caption: str | None = None,
    **params: Any,
) -> str:
    """One part of a comparison of the ladder's rungs.

        ladder("speed", width=4096, layers=2)
        ladder("time", variants=["1 amp bf16", "2 amp bf16"], caption="What SDPA took away.")

    Args:
        part: `speed` (a table of times, speed-ups and rates), `costs` (memory, kernels, the first
            step), `gates` (errors and what is allowed), `climb` (a chart of the times), `time`
            (a chart of what a step's time is made of), `limit` (the same, from the limit of its
            number format to the step) or `kernels` (the longest ones by name).
        experiment: Whose rows have a `rung`.
        op: The comparison shown; by default the first.
        variants: Ways shown, in this order; by default all, and of `climb` the one of each rung
            that counts.
    """
    showing = current()
    if part not in PARTS:
        raise UnknownName("part of the ladder", part, PARTS)
    params = selectors(experiment, params, op, None)
    found = showing.find(experiment, **params)
    ceilings = showing.ceilings_of(found)

    def draw() -> str:
        table = found.recording.rows
        steps = rungs.of(table, op)
        asked = variants
        if variants and not found.freshness.current:  # it may be older than a way asked for
            asked = rungs.known(steps, variants) or variants
        wanted = rungs.of(table, op, asked) if asked else steps
        if part == "climb" and not variants:
            wanted = rungs.one_way_of_each(steps)
        return PARTS[part](View(wanted, steps, table, ceilings))

    return framing.exhibit(found, caption, draw, kind="ladder")


def _climb(view: View) -> str:
    if not (picture := climbs.climb(view)):
        return ladder_tables.speeds(view)
    twin = figures.twin(ladder_tables.speeds_alone(view))
    return picture + ladder_tables.absent(view.table) + twin


def _time(view: View) -> str:
    drawn = {row["variant"]: row for row in view.table if rungs.pieces(row)}
    twin = _time_table(ladder_tables.there(view.table))
    left_out = ladder_tables.absent(row for row in view.table if not rungs.pieces(row))
    if not drawn:
        return twin + left_out
    pieces = [(row, rungs.pieces(row)) for row in drawn.values()]
    picture = _stacked(pieces, list(rungs.KINDS.values()))
    return picture + _misfit(drawn.values()) + left_out + figures.twin(twin)


def _limit(view: View) -> str:
    """Bars from the limit of a step to its time; as a table what they are made of."""
    table = ladder_tables.there(view.table)
    split = [(row, rungs.over_the_limit(row, view.whole, view.ceilings)) for row in table]
    drawn = [(row, parts) for row, parts in split if parts]
    if not drawn:
        return _time(view)
    parts_of = {row["variant"]: dict(parts) for row, parts in drawn}
    columns = [
        (f"#{kind}", lambda row, kind=kind: units.seconds(parts_of[row["variant"]][kind], most=3))
        for kind, _ in drawn[0][1]
    ]
    known = [row for row, _ in drawn]
    twin = ladder_tables.listed(columns, known, "From the limit to the step")
    left_out = ladder_tables.absent(row for row in view.table if row not in known)
    return _stacked(drawn, list(OVER), limit=True) + _misfit(known) + left_out + figures.twin(twin)


def _misfit(drawn: Iterable[Row]) -> str:
    """What is said where a profile has more kernel time than the step took."""
    below = {rungs.in_words(row): row for row in drawn if row["gap_s"] < 0}
    if not below:
        return ""
    name, row = min(below.items(), key=lambda each: each[1]["gap_s"])
    longer = units.seconds(-row["gap_s"], most=2)
    share = units.percent(-row["gap_s"] / row["median_s"], 2)
    return (
        '<p class="why">Kernels are timed in a profile, steps without one, each at a clock of its '
        f"own. In the profile of {escape(name)} they take {longer} ({share}) longer than the step. "
        f"So the part called <em>{rungs.KINDS['gap_s']}</em> is known no finer than that.</p>\n"
    )


def _stacked(
    drawn: Sequence[tuple[Row, Sequence[tuple[str, float]]]],
    kinds: list[str],
    *,
    limit: bool = False,
) -> str:
    """A bar for each row of its parts, a tick at its step's time; `kinds` in order of colour, of
    which the first may be a `limit`."""
    one, unit = tables.time_unit([max(row["median_s"] for row, _ in drawn)])
    timed = rungs.timed(drawn[0][0])
    bars, ends = [], []
    for row, parts in drawn:
        reached, label = 0.0, rungs.in_words(row)
        for kind, seconds in parts:
            if seconds < 0:  # no part of the bar: it ends beyond the tick by so much
                continue
            share = units.percent(seconds / row["median_s"], 2) if seconds else ""
            hover = f"{label}, {kind}: {units.seconds(seconds)}, {share}"
            bar = {"label": label, "kind": kind, "share": share, "hover": hover}
            bars.append(bar | {"start": reached / one, "end": (reached + seconds) / one})
            reached += seconds
        reach, text = max(reached, row["median_s"]), f"{climbs.digits(row, one)} {unit}"
        tick = {"label": label, "value": row["median_s"] / one, "reach": reach / one}
        ends.append(tick | {"text": text})
    label = (
        f"Bars of {', '.join(rungs.in_words(row) for row, _ in drawn)}, made of the time in "
        f"{', '.join(kinds)}. The table under them has the figures."
    )
    drawing = svg.Drawing("stacks.parts", (bars, ends, kinds, f"{unit} a {timed}", limit))
    return svg.chart([(f"Time of a {timed}, {unit}", drawing)], label)


def _time_table(table: Sequence[Row]) -> str:
    size, unit = tables.time_unit([row["median_s"] for row in table])

    def part(kind: str) -> Callable[[Row], str]:
        def text(row: Row) -> str:
            if not (pieces := dict(rungs.pieces(row))):
                return tables.NONE
            share = units.percent(pieces[kind] / row["median_s"], 2)
            return f'{units.significant(pieces[kind] / size)} <span class="ci">{share}</span>'

        return text

    columns = [
        (f"#step, {unit}", lambda row: tables.figure(*ladder_tables.ends(row), size)),
        *((f"#{kind}", part(kind)) for kind in rungs.KINDS.values()),
        ("#kernels", lambda row: tables.cell(row, "kernels_per_call")),
    ]
    label = f"Where a step's time goes, {unit} and % of it"
    return ladder_tables.listed(columns, table, label)


PARTS: dict[str, Callable[[View], str]] = {
    "speed": ladder_tables.speeds,
    "costs": ladder_tables.costs,
    "gates": ladder_tables.gates,
    "climb": _climb,
    "time": _time,
    "limit": _limit,
    "kernels": ladder_tables.kernels,
}
