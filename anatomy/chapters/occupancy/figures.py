"""The staircase: a chart, and the places on the GPU that blocks fill wave by wave."""

from collections.abc import Sequence

from anatomy.chapters.occupancy.requirements import ALONE
from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import GOOD, QUIET, Canvas
from anatomy.figures.text import spans
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import units

ENDS = {"value": "median_s", "low": "low_s", "high": "high_s"}
SHOWN = ("variant", "waves", "median_s", "samples")
SAID = (
    "<b data-blocks>{blocks}</b> blocks: <b data-waves>2</b> waves, about <b data-time>{time}</b>. "
    "The last wave fills <b data-last>1</b> of {places} places; over all waves "
    "<b data-used>{used}</b> are used."
)


@framing.drawn_from("occupancy.staircase")
def staircase(recorded: Sequence[Row], *, op: str = ALONE) -> str:
    """GPU time over the number of blocks, the host's pace aside; and, where steps were fitted, the
    GPU's places with one block too many. docs/assets/waves.js lets a reader choose another."""
    chosen = [row | {"regime": None} for row in rows.select(recorded, op=op)]
    table = [row for row in chosen if row.get("median_s") and row.get("role") != "again"]
    if not table:
        return spans.gap_because(chosen[0].get("note") or "not measured")
    below = _waves(table[0]) if table[0].get("at_once") else ""
    columns = [each for each in SHOWN if each in table[0]]
    return _chart(table) + below + figures.twin(tables.times(table, columns))


def _chart(table: Sequence[Row]) -> str:
    size, unit = tables.time_unit([row["median_s"] for row in table])
    points, corners, edges, first = [], [], [], table[0]
    for row in table:
        hover = f"{row['variant']}: {rows.ranged(row, 'median_s')}"
        point = {end: row[column] / size for end, column in ENDS.items()}
        points.append(point | {"x": row["grid_blocks"], "hover": hover})
        if row.get("edge") == "full":
            edges.append({"x": row["grid_blocks"], "text": row["variant"]})
    for wave in range(1, (table[-1].get("waves") or 0) + 1):
        ends = [{"x": first["at_once"] * n} for n in (wave - 1, wave)]
        corners += [each | {"value": _seconds(first, wave) / size} for each in ends]
    titles = ("blocks of the launch", f"time, {unit} ({rows.interval_name(table)})")
    drawing = svg.Drawing("steps.staircase", (points, corners, edges, titles))
    return svg.chart([("", drawing)], "Time over blocks. The table under it has the figures.")


def _waves(first: Row) -> str:
    places = first["at_once"]
    used, time = units.percent((places + 1) / places / 2), units.seconds(_seconds(first, 2))
    said = SAID.format(blocks=places + 1, places=places, time=time, used=used)
    names = ("at_once", "fixed_s", "wave_s")
    data = " ".join(f'data-{name.replace("_", "-")}="{first[name]:.6g}"' for name in names)
    label = f"{places} places, of which the second wave of {places + 1} blocks fills one."
    drawn = canvas.both(lambda sheet: _places(sheet, places), label)
    return f'<div class="waves" {data}>{drawn}<p>{said}</p></div>'


def _seconds(row: Row, waves: int) -> float:
    return row["fixed_s"] + waves * row["wave_s"]


def _places(sheet: Canvas, places: int) -> None:
    """A square for each; the script colours as many of a picture's rectangles as are filled."""
    across = 33 if sheet.width > 500 else 22
    each = sheet.width / across
    for at in range(places):
        x, y = (at % across) * each + 1, (at // across) * each + 1
        sheet.box(x, y, each - 3, each - 3, fill=QUIET if at else GOOD, opacity=0.8)
