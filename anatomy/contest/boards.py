"""Figures of the page on measuring: the comparison of harnesses, and one figure's raw samples."""

from collections.abc import Sequence
from html import escape
from typing import Any

from anatomy import tables, units
from anatomy.charts import figures, svg
from anatomy.contest import scoreboard, standings
from anatomy.contest.scoreboard import Board, Sheet
from anatomy.errors import BadParameter
from anatomy.rows import Row
from anatomy.showing import Found, Showing

# Verdict on a target -> the chip that has its mark and tone.
CHIPS = {
    scoreboard.MET: "holds",
    scoreboard.NOT_MET: "fails",
    scoreboard.OPEN: "not recorded",
}
# Parts that have a chart, and whether its axis is logarithmic.
CHARTS = {"spread": True, "bias": False}


def found(showing: Showing) -> list[Found]:
    """All recordings of the comparison, those that are missing among them."""
    return [showing.find(name, **params) for name, params in scoreboard.calls()]


def board(calls: Sequence[Found]) -> Board:
    """The board of those recordings that are there; judged once, however often a page asks."""
    there = [each.recording for each in calls if each.recording is not None]
    key = tuple(each.data["content_sha"] for each in there)
    if key not in _judged:
        _judged.clear()
        _judged[key] = Board.of(there)
    return _judged[key]


_judged: dict[tuple[str, ...], Board] = {}


def part(
    showing: Showing, calls: Sequence[Found], name: str, quantity: str, caption: str | None
) -> str:
    """One part of the comparison: its table, under its chart where it has one."""
    one = board(calls)
    if one.empty:
        return figures.framed(showing, calls, "", caption)
    sheet = scoreboard.sheet(one, name, quantity)
    body = _reasons(sheet) if name == "misses" else _table(sheet)
    if name in CHARTS and (points := _points(one, name, quantity)):
        body = _chart(showing, name, quantity, points) + figures.twin(body, unfold=False)
    return figures.framed(showing, calls, body, caption)


def chip(target: Any) -> str:
    """A target's verdict as a chip, with the figure that decides it on hover."""
    word = scoreboard.verdict(target)
    hover = f"{target.says}: {scoreboard.found_text(target)}. {target.detail or ''}".strip()
    return tables.chip(CHIPS[word], word, hover)


def samples(showing: Showing, call: Found, table: Sequence[Row], caption: str | None) -> str:
    """The raw samples of a control and its duplicate, block by block, with the medians' interval.

    Raises:
        BadParameter: The recording kept no samples.
    """
    shown = [row for row in table if row.get("samples_s") and row["role"] in ("control", "again")]
    if not shown:
        raise BadParameter(f"{call.name} keeps no raw samples, so there is nothing to draw.")
    size, unit = tables.time_unit([row["median_s"] for row in shown])
    points, bands = [], []
    for row in shown:
        # Of rows that several processes measured, the samples are those of the first.
        blocks = row["run_blocks"][0] if row.get("run_blocks") else len(row["blocks_s"])
        each = len(row["samples_s"]) // blocks
        for index, sample in enumerate(row["samples_s"]):
            at = index // each
            points.append(
                {
                    "block": at + 1,
                    "series": row["variant"],
                    "value": sample / size,
                    "median": row["blocks_s"][at] / size,
                }
            )
        if row["role"] == "control":
            told = units.seconds_range(row["median_s"], row["low_s"], row["high_s"])
            bands.append(
                {
                    "series": row["variant"],
                    "low": row["low_s"] / size,
                    "high": row["high_s"] / size,
                    "hover": f"median over the blocks {told}",
                }
            )
    label = "Raw samples by block, with the median of each block and the interval of their median."
    drawn = svg.Drawing("clouds.samples", (points, bands, f"time, {unit}"))
    body = svg.chart(showing, [("", drawn)], label)
    body += figures.twin(tables.times(shown), unfold=True)
    return figures.framed(showing, [call], body, caption)


def _table(sheet: Sheet) -> str:
    lines = []
    for line in sheet.lines:
        cells = []
        for text in line:
            if text in CHIPS:
                cells.append(tables.chip(CHIPS[text], text))
                continue
            number, bracket, rest = text.partition(" [")
            interval = f' <span class="ci">[{escape(rest)}</span>' if bracket else ""
            cells.append((escape(number) or tables.NONE) + interval)
        lines.append(cells)
    return tables.listed(sheet.heads, lines, sheet.title, "board")


def _reasons(sheet: Sheet) -> str:
    """The missed targets as lists, one a target: sentences need more room than a table's cells."""
    by_target: dict[str, list[str]] = {}
    for where, says, found, why in sheet.lines:
        item = f"<li><strong>{escape(where)}</strong>: {escape(found)}. {escape(why)}</li>"
        by_target.setdefault(says, []).append(item)
    if not by_target:
        return "<p>No target that can be decided is missed.</p>"
    return "".join(
        f"<p><strong>{escape(says)}</strong></p><ul>{''.join(items)}</ul>"
        for says, items in by_target.items()
    )


def _points(one: Board, name: str, quantity: str) -> list[dict[str, Any]]:
    """The marks of a part's chart, in percent."""
    if name == "spread":
        table, column = standings.spreads(one.estimates, one.reference), "spread"
    else:
        table, column = standings.biases(one.estimates, one.reference), "bias"
    table = table[table.quantity == quantity]
    return [
        {
            "label": row.op,
            "series": row.variant,
            "value": 100 * getattr(row, column),
            "hover": f"{row.op}, {row.variant}: {units.percent(getattr(row, column))}",
        }
        for row in table.itertuples()
        if getattr(row, column) > 0 or not CHARTS[name]  # a logarithm has no place for 0
    ]


def _chart(showing: Showing, name: str, quantity: str, points: list[dict[str, Any]]) -> str:
    titles = {"spread": "spread, % of the reference", "bias": "figure above the reference, %"}
    drawn = svg.Drawing("clouds.harnesses", (points, titles[name], CHARTS[name]))
    label = f"{titles[name]} by workload and harness, {quantity}. The table has the figures."
    return svg.chart(showing, [("", drawn)], label)
