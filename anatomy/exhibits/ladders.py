"""The ladder on a page: one part of a comparison of its rungs, as a table or as a chart."""

from collections.abc import Callable, Sequence
from typing import Any

from anatomy import rows, rungs, tables, units
from anatomy.charts import figures, svg
from anatomy.errors import UnknownName
from anatomy.exhibits import ladder_tables
from anatomy.exhibits.ladder_tables import View
from anatomy.pages import inline
from anatomy.rows import Row
from anatomy.showing import current, selectors

EXPERIMENT = "ladder.training"
# Where one step is so many times as long as another, shares are drawn as well.
FAR = 3.0


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
            step), `gates` (errors and what is allowed), `climb` (a chart of the speed-ups), `time`
            (a chart of what a step's time is made of) or `kernels` (the longest ones by name).
        experiment: Whose rows have a `rung`.
        op: The comparison shown; by default the first.
        variants: Ways shown, in this order; by default all, and of `climb` the one of each rung
            that counts.
        caption: What to see.
        params: Parameters of the experiment, where not the default.

    Raises:
        UnknownName: There is no such part, experiment, parameter, comparison or way.
    """
    showing = current()
    if part not in PARTS:
        raise UnknownName("part of the ladder", part, PARTS)
    params, op, _ = selectors(experiment, params, op, None)
    ceilings = showing.ceilings
    found = showing.find(experiment, **params)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    if found.recording is None:
        return figures.framed(showing, [found], "", told)

    def draw() -> str:
        table = found.recording.data["rows"]
        steps = rungs.of(table, op)
        asked = variants
        if variants and not found.freshness.current:  # it may be older than a way asked for
            asked = rungs.known(steps, variants) or variants
        wanted = rungs.of(table, op, asked) if asked else steps
        if part == "climb" and not variants:
            wanted = rungs.counted(steps)
        body = PARTS[part](View(showing, wanted, steps, table, ceilings))
        return figures.framed(showing, [found], body, told, kind="ladder")

    return figures.or_badge(showing, [found], told, draw)


def _climb(view: View) -> str:
    there = ladder_tables.there(view.table)
    steps = []
    for row in there:
        value, low, high = rungs.speedup(row)
        if value is None:
            continue
        below = rungs.last(row, view.steps)
        over = rungs.climbed(row, view.steps)
        start = rungs.speedup(below)[0] if below else 1.0
        word = over.get("verdict") or ""
        gain = units.ratio_range(*rungs.speedup(over)) if below else ""
        total = units.ratio(value, low, high)
        behind = (
            f" ({units.ratio(*rungs.speedup(over))} over {below['variant']})"
            if below and below.get("role") != "control"
            else ""
        )
        steps.append(
            {
                "label": str(row["variant"]),
                "start": start,
                "value": value,
                "low": value if low is None else low,
                "high": value if high is None else high,
                "reach": max(start, value if high is None else high),
                "verdict": word,
                "text": f"{total}{behind}",
                "short": total,
                "hover": f"{row['variant']}: {units.ratio_range(value, low, high)} over rung 0"
                + (f"; {gain} over {below['variant']}, {word}" if below else ""),
            }
        )
    if not steps:
        return ladder_tables.speeds(view)
    title = f"speed-up over rung 0 ({rows.interval_name(there)})"
    drawing = svg.Drawing("stacks.climb", (steps, title))
    label = (
        "Speed-up over rung 0 of "
        + ", ".join(step["label"] for step in steps)
        + ": each bar begins where the rung that it changes ended. The table has the figures."
    )
    picture = svg.chart(view.showing, [("", drawing)], label)
    twin = figures.twin(ladder_tables.speeds_alone(view), unfold=False)
    return picture + CLIMB_KEY + ladder_tables.absent(view.table) + twin


def _time(view: View) -> str:
    table = view.table
    made = [(row, rungs.pieces(row)) for row in table]
    drawn = [(row, pieces) for row, pieces in made if pieces]
    twin = _time_table(ladder_tables.there(table))
    left_out = ladder_tables.absent(row for row, pieces in made if not pieces)
    if not drawn:
        return twin + left_out
    longest = max(row["median_s"] for row, _ in drawn)
    shortest = min(row["median_s"] for row, _ in drawn)
    size, unit = tables.time_unit([longest])
    panels = [(f"Time of a step, {unit}", _stacked(drawn, lambda row: size, f"{unit} a step"))]
    if longest > FAR * shortest:
        shares = _stacked(drawn, lambda row: row["median_s"] / 100, "% of the step")
        panels.append(("The same as shares of each step", shares))
    label = (
        f"Bars of {', '.join(str(row['variant']) for row, _ in drawn)}, made of the time in "
        f"{', '.join(rungs.KINDS.values())}. The table under them has the figures."
    )
    return svg.chart(view.showing, panels, label) + left_out + figures.twin(twin, unfold=False)


def _stacked(
    drawn: Sequence[tuple[Row, list[tuple[str, float]]]],
    size: Callable[[Row], float],
    title: str,
) -> svg.Drawing:
    bars, ends = [], []
    for row, pieces in drawn:
        reached, one = 0.0, size(row)
        total = sum(seconds for _, seconds in pieces)
        for kind, seconds in pieces:
            share = units.percent(seconds / row["median_s"], 2) if seconds else ""
            bars.append(
                {
                    "label": str(row["variant"]),
                    "kind": kind,
                    "start": reached / one,
                    "end": (reached + seconds) / one,
                    "share": share,
                    "hover": f"{row['variant']}, {kind}: {units.seconds(seconds)}, {share}",
                }
            )
            reached += seconds
        ends.append(
            {
                "label": str(row["variant"]),
                "value": row["median_s"] / one,
                "reach": max(total, row["median_s"]) / one,
                "text": rows.printed(row, "median_s"),
            }
        )
    return svg.Drawing("stacks.parts", (bars, ends, list(rungs.KINDS.values()), title))


def _time_table(table: Sequence[Row]) -> str:
    timed = [row["median_s"] for row in table]
    size, unit = tables.time_unit(timed)
    heads = ["rung", f"#step, {unit}", *(f"#{kind}" for kind in rungs.KINDS.values()), "#kernels"]
    lines = []
    for row in table:
        cells = [ladder_tables.name(row), tables.figure(*ladder_tables.ends(row), size)]
        pieces = rungs.pieces(row)
        for _, seconds in pieces:
            share = f' <span class="ci">{units.percent(seconds / row["median_s"], 2)}</span>'
            cells.append(f"{units.significant(seconds / size)}{share}")
        cells += [tables.NONE] * (0 if pieces else len(rungs.KINDS))
        lines.append([*cells, ladder_tables.cell(row, "kernels_per_call")])
    return tables.listed(heads, lines, f"Where a step's time goes, {unit} and % of it", "rungs")


CLIMB_KEY = (
    '<p class="key"><span>a bar begins where the rung that it changes ended</span> '
    "<span>green, to the right: faster</span> <span>orange, to the left: slower</span> "
    "<span>grey: no difference shown</span></p>"
)
PARTS: dict[str, Callable[[View], str]] = {
    "speed": ladder_tables.speeds,
    "costs": ladder_tables.costs,
    "gates": ladder_tables.gates,
    "climb": _climb,
    "time": _time,
    "kernels": ladder_tables.kernels,
}
