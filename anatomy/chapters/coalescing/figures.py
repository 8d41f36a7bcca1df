"""The sectors that a warp touches, beside the bandwidth that was measured there."""

import json
from collections.abc import Iterable, Sequence
from html import escape

from anatomy.chapters.coalescing.sectors import ITEM_BYTES, SECTOR_BYTES, sectors, useful_share
from anatomy.figures import framing, tables
from anatomy.figures.charts import figures, svg
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, LINE, MUTED, Canvas
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.record.showing import current
from anatomy.table import units

PARTS = {"coalescing.strides": "one of each", "coalescing.offsets": "from HBM"}
LEAST_SHOWN, THREADS = 40, 32  # sectors of a strip; of a warp
TERA = 1e12  # bytes per second, the chart's unit
DRAWN = {"value": "rate", "low": "rate_low", "high": "rate_high", "predicted": "predicted_rate"}
LANE, SAID, BAR = 62.0, 16.0, 20.0  # pixels of a pattern, of a line on a phone, of the sectors


def touched(
    places: Iterable[tuple[int, int]], *, sliders: bool = False, caption: str | None = None
) -> str:
    """The sectors of 32 bytes that a warp touches at some strides in elements and offsets in bytes,
    with the bandwidth that was measured there; with `sliders` a script lets the reader choose.

        touched([(1, 0), (2, 0), (1, 4)], caption="Filled sectors are moved.")
    """
    found, places = current().find_together((name, {}) for name in PARTS), list(places)

    def draw() -> str:
        measured = {
            (row["stride"], row["offset_bytes"]): _rate(rows.derived(row, None))
            for each, op in zip(found, PARTS.values(), strict=True)
            for row in (rows.select(each.recording.rows, op=op) if each.recording else ())
            if row.get("role") != "again" and row.get("stride")
        }
        said = {place: _said(place, measured.get(place, "")) for place in places}
        label = "Sectors that a warp touches: " + "; ".join(
            f"{_named(place)}: {text}" for place, text in said.items()
        )
        drawn = canvas.both(lambda sheet: _rows(sheet, said), f"{label}.")
        if not sliders:
            return drawn
        rates = {f"{stride},{offset}": rate for (stride, offset), rate in measured.items()}
        chosen = escape(json.dumps(rates, separators=(",", ":")))
        return f'{drawn}<div class="sectors" data-measured="{chosen}"></div>'

    return framing.exhibit(found, caption, draw)


@framing.drawn_from("coalescing.offsets")
def offsets(table: Sequence[Row]) -> str:
    """Bandwidth over the offset at which a warp's reads begin, a chart for HBM and one for L1, and
    beside each mark a hollow one for what the sectors predict."""
    every = [rows.derived(row, None) for row in table]
    timed = [row for row in every if row["role"] != "again" and _rate(row)]
    if not timed:
        return figures.refused(every)
    points, lines = {}, []
    for row in timed:
        op, offset = row["op"], row["offset_bytes"]
        point = {"x": offset, "hover": f"{op}, {offset} bytes: {_rate(row)}"}
        point |= {name: row[column] / TERA for name, column in DRAWN.items()}
        points.setdefault(op, []).append(point)
        rates = (tables.cell(row, column) for column in ("rate", "predicted_rate"))
        lines.append([op, str(offset), *rates])
    how = list(range(0, 129, 32)), ("offset in bytes", "TB/s of bytes asked for")
    panels = [(op, svg.Drawing("steps.predicted", (p, *how))) for op, p in points.items()]
    head = ("reads", "#offset, bytes", "#measured", "#predicted")
    label = "Bandwidth over the offset, measured and predicted by sectors."
    return svg.chart(panels, label) + figures.twin(tables.listed(head, lines, label))


def _named(place: tuple[int, int]) -> str:
    stride, offset = place
    return f"stride {stride}" + (f", offset {offset} bytes" if offset else "")


def _rate(row: Row) -> str:
    return "" if units.missing(row["rate"]) else rows.printed(row, "rate")


def _said(place: tuple[int, int], rate: str) -> str:
    moved, used = len(sectors(*place)), useful_share(*place)
    return f"{moved} sectors, {100 * used:.3g}% used" + (f", {rate} measured" if rate else "")


def _rows(sheet: Canvas, said: dict[tuple[int, int], str]) -> None:
    desk = sheet.width > 500
    shown = max(LEAST_SHOWN, *(1 + max(sectors(*place)) for place in said))
    for number, (place, text) in enumerate(said.items()):
        top = number * (LANE if desk else LANE + SAID) + 14
        sheet.words(0, top, _named(place), bold=True)
        colour = GOOD if useful_share(*place) == 1 else BAD
        if not desk:
            top += SAID
        ends = {"anchor": "end"} if desk else {}
        sheet.words(sheet.width if desk else 0, top, text, colour=colour, bold=True, **ends)
        _sectors(sheet, top + 9, place, colour, shown)
    key = "a box is a sector of 32 bytes, four are a line; in full colour each thread's float"
    sheet.paragraph(0, sheet.height + 16, sheet.width, key, colour=MUTED, size=11)
    sheet.space(4)


def _sectors(sheet: Canvas, top: float, place: tuple[int, int], colour: str, most: int) -> None:
    """A strip of memory: sectors that move are pale, floats dark; under it the threads' reach."""
    wide, (stride, offset) = sheet.width / most, place
    size, moved = wide / SECTOR_BYTES, sectors(*place)  # pixels of a byte
    for sector in range(most):
        fill, width = colour if sector in moved else LINE, wide - (0.8 if sector % 4 == 3 else 0.2)
        sheet.box(sector * wide, top, width, BAR, round_=0.0, fill=fill, opacity=0.4)
    begins = [size * (offset + ITEM_BYTES * stride * thread) for thread in range(THREADS)]
    for begin in begins:
        sheet.box(begin, top, size * ITEM_BYTES, BAR, round_=0.0, fill=colour)
    end = begins[-1] + size * ITEM_BYTES
    sheet.bracket(begins[0], end, top + BAR + 7)
    if end + 70 <= sheet.width:
        sheet.words(end + 8, top + BAR + 9, f"{THREADS} threads", colour=MUTED, size=11)
