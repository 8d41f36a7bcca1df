"""How far equals differ, by how they are compared."""

from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.text import spans
from anatomy.judge import rows
from anatomy.record.showing import current
from anatomy.table import units

COLUMNS = ("variant", "stray", "pairs")
LEAST = 1e-3  # percent: samples have five digits, and an axis of logarithms has no 0


def strays(*, caption: str | None = None) -> str:
    """A mark for each way to compare one callable with itself: what 95 % of the ratios stray by."""
    found = current().find("timing.equals")

    def draw() -> str:
        table = [row for row in found.recording.rows if not units.missing(row.get("stray"))]
        if not table:
            why = found.recording.rows[0].get("note")
            return spans.gap_because(why or "not measured")
        points = [
            {"label": row["op"], "series": row["variant"], "value": max(LEAST, 100 * row["stray"])}
            | {"hover": f"{row['op']}, {row['variant']}: {rows.printed(row, 'stray')}"}
            for row in table
        ]
        drawing = svg.Drawing("clouds.harnesses", (points, "two equals differ by, %", True))
        label = "How far 95 % of comparisons of equals stray. The table under it has the figures."
        heads = ["operation", *(rows.heading(name) for name in COLUMNS)]
        body = [[row["op"], *(tables.cell(row, name) for name in COLUMNS)] for row in table]
        twin = figures.twin(tables.listed(heads, body, "Comparisons of equals"))
        return svg.chart([("", drawing)], label) + twin

    return framing.exhibit(found, caption, draw)
