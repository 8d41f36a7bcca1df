"""How long a rate lasts: the same large GEMM for seconds without a rest."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from anatomy.figures import tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units

SUSTAINED = "limits.sustained"
ALONE, IN_A_ROW = "after a rest", "in a row"  # as `sustained` calls them, which needs torch
# What is drawn over the time since the last rest: a panel's title, and the size of its unit.
DRAWN = {"rate": ("Rate, TFLOP/s", 1e12), "sm_clock_mhz": ("SM clock read after, GHz", 1e3)}
SHOWN = ("median_s", "rate", "sm_clock_mhz", "power_w")


@drawn_from(SUSTAINED)
def lasting(table: Sequence[Row]) -> str:
    """Rate and clock of a GEMM over the seconds since the last rest, beside each other.

    lasting(caption="The card falls to the rate that its power budget pays for.")
    """
    every, table = table, in_a_row(table)
    known = [name for name in DRAWN if all(not units.missing(row.get(name)) for row in table)]
    panels = [(DRAWN[name][0], _drawing(table, name, _levels(every, name))) for name in known]
    label = "Over the seconds since the last rest. The table under it has the figures."
    heads = ["#after", *(f"#{rows.heading(name)}" for name in SHOWN)]
    body = [
        [rows.printed(row, "after_s"), *(tables.cell(row, name) for name in SHOWN)] for row in table
    ]
    below = tables.listed(heads, body, "The same GEMM by how long it has run in a row")
    return svg.chart(panels, label, abreast=len(panels)) + figures.twin(below)


def in_a_row(table: Sequence[Row]) -> list[Row]:
    """The windows of GEMMs without a rest, in order, each with its rate."""
    chosen = [rows.derived(row, None) for row in table if row.get("variant") == IN_A_ROW]
    return sorted(chosen, key=lambda row: row["after_s"])


def settled(table: Sequence[Row]) -> list[Row]:
    """The windows of the second half of the run, in which the clock no longer falls."""
    windows = in_a_row(table)
    return [row for row in windows if row["after_s"] > windows[-1]["after_s"] / 2]


def _levels(table: Sequence[Row], name: str) -> list[dict[str, Any]]:
    """The burst, of the call after a rest, and what is sustained, each with its figure."""
    alone = [rows.derived(row, None) for row in table if row.get("variant") == ALONE]
    levels = []
    for word, several in {"burst": alone, "sustained": settled(table)}.items():
        if several and not units.missing(several[0].get(name)):
            value = median(row[name] for row in several)
            text = f"{word}: {rows.printed(several[0] | {name: value}, name)}"
            levels.append({"value": value / DRAWN[name][1], "text": text})
    return levels


def _drawing(table: Sequence[Row], name: str, levels: Sequence[dict[str, Any]]) -> svg.Drawing:
    _, size = DRAWN[name]
    points = []
    for row in table:
        hover = f"after {rows.printed(row, 'after_s')}: {rows.printed(row, name)}"
        value = row[name] / size
        point = {"x": row["after_s"], "value": value, "low": value, "high": value}
        points.append(point | {"hover": hover})
    titles = "seconds since the last rest", ""
    return svg.Drawing("steps.staircase", (points, [], [], titles, levels))
