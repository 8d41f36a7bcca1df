"""The comparison of harnesses on a page, and the raw samples of a worked example."""

from collections.abc import Sequence
from html import escape
from typing import Any

from anatomy.chapters.harnesses.contest import scoreboard, standings
from anatomy.chapters.harnesses.contest.scoreboard import Board, Sheet
from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.judge.rows import Row
from anatomy.record.showing import Found, Showing, current
from anatomy.table import units
from anatomy.table.errors import BadParameter

# Verdict on a target -> the chip that has its mark and tone.
CHIPS = {scoreboard.MET: "holds", scoreboard.NOT_MET: "fails", scoreboard.OPEN: "not recorded"}
CHARTS = {"spread": True, "bias": False}  # parts with a chart, and whether its axis is logarithmic
_judged: dict[tuple[str, ...], Board] = {}


def harnesses(part: str, quantity: str = "gpu_cold", *, caption: str | None = None) -> str:
    """One part of the comparison of our stopwatch with the public ones, of all its recordings.

        harnesses("targets")
        harnesses("spread", "step_wall")

    Args:
        part: `targets`, `misses`, `spread`, `bias`, `coverage`, `errors` or `cost`.
        quantity: Of `spread` and `bias`: gpu_cold, gpu_warm or step_wall.
    """
    scoreboard.check(part, quantity)
    calls = recordings(current())
    return framing.exhibit(calls, caption, lambda: _part(board(calls), part, quantity))


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
    return showing.find_together(scoreboard.calls())


def board(calls: Sequence[Found]) -> Board:
    """The board of those recordings that are there; judged once, however often a page asks."""
    there = [each.recording for each in calls if each.recording is not None]
    key = tuple(each.data["content_sha"] for each in there)
    if key not in _judged:
        _judged.clear()
        _judged[key] = Board.of(there)
    return _judged[key]


def chip(target: Any) -> str:
    """A target's verdict as a chip, with the figure that decides it on hover."""
    word = scoreboard.verdict(target)
    hover = f"{target.says}: {scoreboard.found_text(target)}. {target.detail or ''}".strip()
    return tables.chip(CHIPS[word], word, hover)


def _part(one: Board, name: str, quantity: str) -> str:
    if one.empty:
        return ""
    sheet = scoreboard.sheet(one, name, quantity)
    body = _reasons(sheet) if name == "misses" else _table(sheet)
    if name in CHARTS and (points := _points(one, name, quantity)):
        return _chart(name, quantity, points) + figures.twin(body)
    return body


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


def _table(sheet: Sheet) -> str:
    def cell(text: str) -> str:
        if text in CHIPS:
            return tables.chip(CHIPS[text], text)
        return tables.lighter(text) or tables.NONE

    lines = [[cell(text) for text in line] for line in sheet.lines]
    return tables.listed(sheet.heads, lines, sheet.title, "board")


def _reasons(sheet: Sheet) -> str:
    """The missed targets as lists, one a target: sentences need more room than a table's cells."""
    by_target: dict[str, str] = {}
    for where, says, found, why in sheet.lines:
        item = f"<li><strong>{escape(where)}</strong>: {escape(found)}. {escape(why)}</li>"
        by_target[says] = by_target.get(says, "") + item
    lists = (f"<p><strong>{escape(s)}</strong></p><ul>{i}</ul>" for s, i in by_target.items())
    return "".join(lists) or "<p>No target that can be decided is missed.</p>"


def _points(one: Board, name: str, quantity: str) -> list[dict[str, Any]]:
    """The marks of a part's chart, in percent."""
    shown = standings.spreads if name == "spread" else standings.biases
    table = shown(one.estimates, one.reference)
    table = table[table.quantity == quantity]
    if CHARTS[name]:
        table = table[table[name] > 0]  # a logarithm has no place for 0
    return [
        {"label": op, "series": variant, "value": 100 * value}
        | {"hover": f"{op}, {variant}: {units.percent(value)}"}
        for op, variant, value in table[["op", "variant", name]].itertuples(index=False)
    ]


def _chart(name: str, quantity: str, points: list[dict[str, Any]]) -> str:
    titles = {"spread": "spread, % of the reference", "bias": "figure above the reference, %"}
    drawn = svg.Drawing("clouds.harnesses", (points, titles[name], CHARTS[name]))
    label = f"{titles[name]} by workload and harness, {quantity}. The table has the figures."
    return svg.chart([("", drawn)], label)
