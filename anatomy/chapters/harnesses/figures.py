"""The comparison of harnesses on a page, and the raw samples of a worked example."""

from collections.abc import Sequence
from html import escape

from anatomy.chapters.harnesses import covered, mistakes
from anatomy.chapters.harnesses.contest import scoreboard, targets
from anatomy.chapters.harnesses.contest.scoreboard import Sheet
from anatomy.chapters.harnesses.contest.standings import (
    BIAS,
    OURS,
    PROCESSES,
    RIVALS,
    Contest,
    where,
)
from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.judge.rows import Row
from anatomy.record.showing import Found, Showing, current
from anatomy.table import units
from anatomy.table.errors import BadParameter, lookup

# Verdict on a target -> the chip that has its mark and tone.
CHIPS = {targets.MET: "holds", targets.NOT_MET: "fails", targets.OPEN: "not recorded"}
# Part with a chart -> the title of its axis.
CHARTS = {
    "spread": "spread, % of the record",
    "bias": "figure above the record, % (log scale beyond 1)",
}
_judged: dict[tuple[str, ...], Contest] = {}


def harnesses(part: str, quantity: str = "gpu_cold", *, caption: str | None = None) -> str:
    """One part of the comparison of our stopwatch with the public ones, of all its recordings.

        harnesses("bias", "gpu_warm")

    Args:
        part: `targets`, `misses`, `spread`, `bias`, `coverage`, `errors` or `cost`.
        quantity: Of `spread` and `bias`: gpu_cold, gpu_warm or step_wall.
    """
    lookup("part of the comparison", part, scoreboard.PARTS)
    lookup("quantity", quantity, RIVALS)
    calls = recordings(current())
    return framing.exhibit(
        calls, caption, lambda: _part(contest(calls), part, quantity) + _apart(calls, part)
    )


def samples(experiment: str, *, quantity: str | None = None, caption: str | None = None) -> str:
    """The raw samples of a control and of its duplicate, over the blocks they were taken in.

        samples("worked_example.kernel")

    Args:
        experiment: One that keeps them, by its defaults.

    Raises:
        BadParameter: It keeps none.
    """
    found = current().find(experiment)

    def draw() -> str:
        return _samples(found, figures.rows_of(found, None, quantity=quantity))

    return framing.exhibit(found, caption, draw)


def recordings(showing: Showing) -> list[Found]:
    """All recordings of the comparison, those that are missing among them."""
    counts = PROCESSES.items()
    return showing.find_together(
        [(name, {"process": number}) for name, count in counts for number in range(count)]
    )


def contest(calls: Sequence[Found]) -> Contest:
    """What those recordings say that are there; judged once, however often a page asks."""
    there = [each.recording for each in calls if each.recording is not None]
    key = tuple(each.data["content_sha"] for each in there)
    if key not in _judged:
        _judged.clear()
        _judged[key] = Contest.of(there)
    return _judged[key]


def _part(found: Contest, part: str, quantity: str) -> str:
    if found.estimates.empty:
        return ""
    sheet = scoreboard.sheet(found, part, quantity)
    if part == "misses":
        return _reasons(sheet)
    lines = [[_cell(text) for text in line] for line in sheet.lines]
    table = tables.listed(sheet.heads, lines, sheet.title, "board")
    if part == "errors":
        return mistakes.mistakes(found.errors) + figures.twin(table)
    if part == "coverage":
        return covered.covered(found.asked) + figures.twin(table, unfold=True)
    return (_chart(found, part, quantity) + figures.twin(table)) if part in CHARTS else table


def _apart(calls: Sequence[Found], part: str) -> str:
    """What must be known where figures of one card are held against a record of another."""
    cards: dict[str, set] = {name: set() for name in PROCESSES}
    for each in calls:
        if each.recording is not None:
            cards[each.name].add(each.recording.data["machine"].get("card"))
    one, other = cards.values()
    if part not in ("bias", "coverage") or not (one and other) or one == other:
        return ""
    return (
        "<p>The kernels' record is of another card of this model than the estimates. What the two "
        "cards differ by is in these figures.</p>"
    )


def _cell(text: str) -> str:
    if text in CHIPS:
        return tables.chip(CHIPS[text], text)
    return tables.lighter(text) or tables.NONE


def _reasons(sheet: Sheet) -> str:
    """The missed targets as lists, one a target: sentences need more room than a table's cells."""
    by_target: dict[str, str] = {}
    for place, says, found, why in sheet.lines:
        item = f"<li><strong>{escape(place)}</strong>: {escape(found)}. {escape(why)}</li>"
        by_target[says] = by_target.get(says, "") + item
    lists = (f"<p><strong>{escape(s)}</strong></p><ul>{i}</ul>" for s, i in by_target.items())
    return "".join(lists) or "<p>No target that can be decided is missed.</p>"


def _chart(found: Contest, part: str, quantity: str) -> str:
    """A mark for each workload and harness, in percent; a spread's axis is logarithmic."""
    logarithmic = part == "spread"
    table = where(getattr(found, {"spread": "spreads", "bias": "biases"}[part]), quantity=quantity)
    order = {name: at for at, name in enumerate((OURS, *RIVALS[quantity]))}  # in all their charts
    table = table.sort_values("variant", key=lambda names: names.map(order), kind="stable")
    took = {op: units.seconds(found.per_s[(op, quantity)], most=2) for op in table.op.unique()}
    points = [
        {"label": f"{op}: {took[op]}", "series": variant, "value": 100 * value}
        | {"hover": f"{op}, {variant}: {units.percent(value)}"}
        for op, variant, value in table[["op", "variant", part]].itertuples(index=False)
        if value > 0 or not logarithmic
    ]
    near = 100 * BIAS if part == "bias" and quantity != "step_wall" else 0.0
    drawn = svg.Drawing("clouds.harnesses", (points, CHARTS[part], logarithmic, near))
    label = f"{CHARTS[part]} by workload and harness, {quantity}. The table has the figures."
    return svg.chart([("", drawn)], label) if points else ""


def _samples(call: Found, table: Sequence[Row]) -> str:
    """The raw samples of a control and its duplicate by block, with the medians' interval."""
    shown = [row for row in table if row.get("samples_s") and row["role"] in ("control", "again")]
    if not shown:
        raise BadParameter(f"{call.name} keeps no raw samples, so there is nothing to draw.")
    size, unit = tables.time_unit([row["median_s"] for row in shown])
    points, bands = [], []
    for row in shown:
        # Of rows that several processes measured, the samples are those of the first.
        blocks = row["run_blocks"][0] if row.get("run_blocks") else len(row["blocks_s"])
        each, series = len(row["samples_s"]) // blocks, {"series": row["variant"]}
        for index, sample in enumerate(row["samples_s"]):
            at = index // each
            medians = {"median": row["blocks_s"][at] / size}
            points.append(series | {"block": at + 1, "value": sample / size} | medians)
        if row["role"] == "control":
            span = units.seconds_range(row["median_s"], row["low_s"], row["high_s"])
            ends = {"low": row["low_s"] / size, "high": row["high_s"] / size}
            bands.append(series | ends | {"hover": f"median over the blocks {span}"})
    label = "Raw samples by block, with the median of each block and the interval of their median."
    drawn = svg.Drawing("clouds.samples", (points, bands, f"time, {unit}"))
    return svg.chart([("", drawn)], label) + figures.twin(tables.times(shown))
