"""How long a rate lasts: the same large GEMM for seconds without a rest."""

from collections.abc import Sequence

from anatomy.figures import tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units

SUSTAINED = "limits.sustained"
IN_A_ROW = "in a row"  # as `sustained` calls it, which needs torch
# What is drawn over the time since the last rest: a panel's title, and the size of its unit.
DRAWN = {"rate": ("Rate, TFLOP/s", 1e12), "sm_clock_mhz": ("SM clock read after, GHz", 1e3)}
SHOWN = ("median_s", "rate", "sm_clock_mhz", "power_w")


@drawn_from(SUSTAINED)
def lasting(table: Sequence[Row]) -> str:
    """Rate and clock of a GEMM over the seconds since the last rest, beside each other.

    lasting(caption="The card falls to the rate that its power budget pays for.")
    """
    table = in_a_row(table)
    known = [name for name in DRAWN if all(not units.missing(row.get(name)) for row in table)]
    panels = [(DRAWN[name][0], _drawing(table, name)) for name in known]
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


def _drawing(table: Sequence[Row], name: str) -> svg.Drawing:
    _, size = DRAWN[name]
    points = []
    for row in table:
        hover = f"after {rows.printed(row, 'after_s')}: {rows.printed(row, name)}"
        value = row[name] / size
        point = {"x": row["after_s"], "value": value, "low": value, "high": value}
        points.append(point | {"hover": hover})
    return svg.Drawing("steps.staircase", (points, [], [], ("seconds since the last rest", "")))
