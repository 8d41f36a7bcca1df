"""The ladder on a page: its table, its gates, how a speed-up adds up, and where the time goes."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from anatomy import figures, inline, rows, rungs, svg, tables, units
from anatomy.errors import UnknownName
from anatomy.limits import Ceilings
from anatomy.rows import Row
from anatomy.showing import Showing, current, selectors

EXPERIMENT = "ladder.training"
MOST_KERNELS = 10
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
        everything = rungs.of(found.recording.data["rows"], op)
        wanted = rungs.of(found.recording.data["rows"], op, variants) if variants else everything
        body = PARTS[part](showing, wanted, everything, ceilings, bool(variants))
        return figures.framed(showing, [found], body, told, kind="ladder")

    return figures.or_badge(showing, [found], told, draw)


def _speed(
    showing: Showing, table: Sequence[Row], everything: Sequence[Row], ceilings: Ceilings | None, _
) -> str:
    size, unit = tables.time_unit([row["median_s"] for row in table if rungs.measured(row)])
    control = next((row["variant"] for row in table if row.get("role") == "control"), "rung 0")
    heads = ["rung", f"#step, {unit}", "#over the last rung", "", f"#over {control}"]
    heads += ["#TFLOP/s", "#% of its limit", "#% of bf16's"]
    lines = []
    for row in table:
        whole = rows.derived(row, ceilings)
        below = rungs.last(row, everything)
        over = rungs.climbed(row, everything)
        has = below is not None and rungs.measured(row)
        rate = whole.get("rate")
        lines.append(
            [
                _name(row),
                tables.figure(*_ends(row), size),
                tables.figure(*rungs.speedup(over)) if has else tables.NONE,
                _verdict(over, below) if has else "",
                tables.figure(*rungs.speedup(row)) if rungs.measured(row) else tables.NONE,
                units.significant(rate / 1e12) if rate else tables.NONE,
                _limit(whole),
                _percent(rungs.share_of_bf16(row, ceilings)),
            ]
        )
    return tables.listed(heads, lines, "The rungs: times and speed-ups", "rungs")


def _costs(_, table: Sequence[Row], *__) -> str:
    heads = ["rung", "#peak of a step", "#peak with weights", "#reserved", "#kernels a step"]
    heads += ["#gaps, % of the step", "#first step", "#paid back after, steps"]
    lines = []
    for row in table:
        gap = row.get("gap_s")
        share = gap / row["median_s"] if rungs.measured(row) and not units.missing(gap) else None
        lines.append(
            [
                _name(row),
                *(
                    _cell(row, name)
                    for name in ("peak_bytes", "total_peak_bytes", "reserved_bytes")
                ),
                _cell(row, "kernels_per_call"),
                _percent(share),
                _cell(row, "setup_s"),
                _uses(row),
            ]
        )
    return tables.listed(heads, lines, "The rungs: memory, kernels and the first step", "rungs")


def _gates(_, table: Sequence[Row], *__) -> str:
    heads = ["rung", "products in", "#error of the loss", "#allowed", "#error of the gradients"]
    heads += ["#allowed", "gate", "#parameters", "#FLOPs, of the formula's", "attention by"]
    lines = []
    for row in table:
        kind = rungs.format_of(row)
        loss, gradients = rungs.ALLOWED.get(kind, (None, None))
        counted, flops = row.get("counted_flops"), row.get("flops")
        known = not units.missing(counted) and not units.missing(flops)
        word = rungs.standing(row)
        lines.append(
            [
                _name(row),
                escape(kind) or tables.NONE,
                _small(row.get("loss_error")),
                _small(loss),
                _small(row.get("gradient_error")),
                _small(gradients),
                tables.chip(word) if word else tables.NONE,
                _count(row.get("parameters")),
                _percent(counted / flops if known and flops else None, "%"),
                escape(str(row["backend"])) if row.get("backend") else tables.NONE,
            ]
        )
    return tables.listed(heads, lines, "The rungs: errors and what is allowed", "rungs")


def _climb(
    showing: Showing,
    table: Sequence[Row],
    everything: Sequence[Row],
    ceilings: Ceilings | None,
    named: bool,
) -> str:
    there = [row for row in (table if named else rungs.counted(table)) if rungs.measured(row)]
    steps = []
    for row in there:
        value, low, high = rungs.speedup(row)
        if value is None:
            continue
        below = rungs.last(row, everything)
        over = rungs.climbed(row, everything)
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
                "told": f"{row['variant']}: {units.ratio_range(value, low, high)} over rung 0"
                + (f"; {gain} over {below['variant']}, {word}" if below else ""),
            }
        )
    twin = _speed(showing, there, everything, ceilings, named)
    if not steps:
        return twin + _absent(table)
    title = f"speed-up over rung 0, logarithmic ({rows.interval_name(there)})"
    drawing = svg.Drawing("stacks.climb", (steps, title))
    label = (
        "Speed-up over rung 0 of "
        + ", ".join(step["label"] for step in steps)
        + ": each bar begins where the rung that it changes ended. The table has the figures."
    )
    picture = svg.chart(showing, [("", drawing)], label)
    return picture + CLIMB_KEY + _absent(table) + figures.twin(twin, unfold=False)


def _time(showing: Showing, table: Sequence[Row], *_) -> str:
    made = [(row, rungs.pieces(row)) for row in table]
    drawn = [(row, pieces) for row, pieces in made if pieces]
    twin = _time_table(table)
    if not drawn:
        return twin
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
    left_out = [row for row, pieces in made if not pieces]
    return svg.chart(showing, panels, label) + _absent(left_out) + figures.twin(twin, unfold=False)


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
                    "told": f"{row['variant']}, {kind}: {units.seconds(seconds)}, {share}",
                }
            )
            reached += seconds
        ends.append(
            {
                "label": str(row["variant"]),
                "value": row["median_s"] / one,
                "end": total / one,
                "reach": max(total, row["median_s"]) / one,
                "text": rows.printed(row, "median_s"),
            }
        )
    return svg.Drawing("stacks.parts", (bars, ends, list(rungs.KINDS.values()), title))


def _time_table(table: Sequence[Row]) -> str:
    timed = [row["median_s"] for row in table if rungs.measured(row)]
    size, unit = tables.time_unit(timed)
    heads = ["rung", f"#step, {unit}", *(f"#{kind}" for kind in rungs.KINDS.values()), "#kernels"]
    lines = []
    for row in table:
        cells = [_name(row), tables.figure(*_ends(row), size)]
        pieces = rungs.pieces(row)
        for _, seconds in pieces:
            share = f' <span class="ci">{units.percent(seconds / row["median_s"], 2)}</span>'
            cells.append(f"{units.significant(seconds / size)}{share}")
        cells += [tables.NONE] * (0 if pieces else len(rungs.KINDS))
        lines.append([*cells, _cell(row, "kernels_per_call")])
    return tables.listed(heads, lines, f"Where a step's time goes, {unit} and % of it", "rungs")


def _kernels(_, table: Sequence[Row], *__) -> str:
    lines = []
    for row in table:
        busy = row.get("busy_s")
        for name, count, seconds in rungs.heaviest(row, MOST_KERNELS):
            share = units.percent(seconds / busy, 2) if busy else ""
            lines.append(
                [
                    f"<code>{escape(str(row['variant']))}</code>",
                    f'<code title="{escape(name)}">{escape(figures.short_kernel(name))}</code>',
                    f"{count:g}",
                    units.seconds(seconds),
                    share,
                ]
            )
    heads = ["rung", "kernel", "#launches a step", "#time a step", "#% of the busy time"]
    if not lines:
        return _absent(table) or '<p class="why">No kernel was recorded.</p>'
    return tables.listed(heads, lines, "The longest kernels of a step", "kernels") + _absent(table)


def _name(row: Row) -> str:
    return f"<code>{escape(str(row.get('variant')))}</code>{tables.under(row, _beside(row))}"


def _beside(row: Row) -> list[tables.Tag]:
    """What the other columns say already: whom the row is held against."""
    return [("vs " + str(row.get("control")), "The control of this row, which does the same work.")]


def _ends(row: Row) -> tuple[float | None, float | None, float | None]:
    if not rungs.measured(row):
        return None, None, None
    return row["median_s"], row.get("low_s"), row.get("high_s")


def _verdict(over: Row, below: Row) -> str:
    """The verdict over the rung before, and which that is."""
    against = f'<span class="remarks ci">vs {escape(str(below["variant"]))}</span>'
    return (tables.chip(over["verdict"]) if over.get("verdict") else "") + against


def _limit(whole: Row) -> str:
    if units.missing(whole.get("share")):
        return tables.NONE
    limit = f"{whole['share_of']}, {rows.printed(whole, 'limit_value')}, {whole['limit_kind']}"
    return f'<span title="of {escape(limit)}">{_percent(whole["share"])}</span>'


def _percent(share: float | None, sign: str = "") -> str:
    return tables.NONE if units.missing(share) else units.percent(share).removesuffix("%") + sign


def _cell(row: Row, column: str) -> str:
    return tables.NONE if units.missing(row.get(column)) else escape(rows.printed(row, column))


def _uses(row: Row) -> str:
    ends = [row.get(name) for name in ("uses", "uses_low", "uses_high")]
    if units.missing(ends[0]):
        return tables.NONE
    low, high = (None if units.missing(end) else units.significant(end, 2) for end in ends[1:])
    interval = f' <span class="ci">[{low}, {high}]</span>' if low and high else ""
    return units.significant(ends[0], 2) + interval


def _small(value: float | None) -> str:
    """An error as a power of ten: it may be smaller than three decimals show."""
    return tables.NONE if units.missing(value) else f"{value:.1e}" if value else "0"


def _count(value: float | None) -> str:
    return tables.NONE if units.missing(value) else f"{int(value):,}".replace(",", " ")


def _absent(table: Sequence[Row]) -> str:
    """The rows that have no time, with the reason, so that none is left out without a word."""
    lines = [
        f"<li><code>{escape(str(row['variant']))}</code>: {escape(str(row['note']))}</li>"
        for row in table
        if row.get("note") and not rungs.measured(row)
    ]
    return f'<ul class="breaks">{"".join(lines)}</ul>' if lines else ""


CLIMB_KEY = (
    '<p class="key"><span>a bar begins where the rung that it changes ended</span> '
    "<span>green, to the right: faster</span> <span>orange, to the left: slower</span> "
    "<span>grey: not decided</span></p>"
)
PARTS: dict[str, Callable[..., str]] = {
    "speed": _speed,
    "costs": _costs,
    "gates": _gates,
    "climb": _climb,
    "time": _time,
    "kernels": _kernels,
}
