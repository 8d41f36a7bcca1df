"""Rows of a matrix in memory, with the marks that a wide load begins on."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from anatomy.figures import framing
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, INK, LINE, MUTED, Canvas
from anatomy.judge import rows
from anatomy.record.showing import current, selectors
from anatomy.table import units
from anatomy.table.errors import BadParameter

# A load of the widest kind takes so many bytes of a thread, from an address divisible by as many.
LOAD_BYTES = 16
# Elements that are drawn, on a desk and on a phone.
DRAWN = {True: 34, False: 20}
# Pixels: the height of a cell, and of a view with its brackets; on a phone its speed has a line.
CELL, LANE, SAID = 17.0, 76.0, 17.0
ABOVE = 6.0  # pixels from the words over the cells to these: no mark runs into them


class View(NamedTuple):
    """A view of a matrix: how it is written, and where its elements lie, in elements."""

    code: str
    strides: tuple[int, int]
    offset: int = 0
    columns: int = 16  # elements of a row that belong to the view
    rows: int = 1  # how many rows are drawn, one after the other in memory


def strides(
    experiment: str,
    views: Mapping[str, tuple],
    *,
    itemsize: int = 2,
    op: str | None = None,
    quantity: str | None = None,
    caption: str | None = None,
    **params: Any,
) -> str:
    """The first rows of each view of a matrix as they lie in memory, a dashed mark every 16 bytes,
    the loads that fetch them, and how fast the recorded operation is on a large matrix of that
    layout.

        strides("contiguity.bench", op="matmul", quantity="gpu_warm", views={
            "contiguous": ("A", (16, 1)), "sliced_offset_view": ("A[:, 1:]", (16, 1), 1, 15)})

    Args:
        views: Variant of the recording -> its code, its strides of rows and columns, the offset of
            its first element, the elements of a row and the rows drawn, all of a matrix of 16
            columns.
        itemsize: Bytes of an element.
    """
    showing = current()
    found = showing.find(experiment, **selectors(experiment, params, op, quantity))
    drawn = {name: View(*view) for name, view in views.items()}

    def draw() -> str:
        table = rows.select(found.recording.rows, op=op, quantity=quantity, variants=list(drawn))
        said = {row["variant"]: _said(row) for row in table}
        if missing := [name for name in drawn if name not in said]:
            raise BadParameter(f"no row of {experiment} is of {', '.join(missing)}.")
        label = "Row 0 of each view in memory, with 16-byte marks: " + "; ".join(
            f"{view.code} {said[name]}" for name, view in drawn.items()
        )
        return canvas.both(lambda sheet: _rows(sheet, drawn, said, itemsize), f"{label}.")

    return framing.exhibit(found, caption, draw)


def _said(row: Mapping[str, Any]) -> str:
    """The time, and how fast that is beside the control."""
    time = rows.printed(row, "median_s", units.PLAIN_DIGITS)
    if row["role"] == "control":
        return time
    return f"{time}, {rows.speed_in_words(row, short=True)}"


def _rows(sheet: Canvas, views: Mapping[str, View], said: Mapping[str, str], size: int) -> None:
    desk = sheet.width > 500
    count, lane = DRAWN[desk], LANE if desk else LANE + SAID
    cell = (sheet.width - 2) / count
    for at, (name, view) in enumerate(views.items()):
        top = at * lane + 13 + ABOVE + (0 if desk else SAID)
        title = top - ABOVE if desk else top - ABOVE - SAID
        lengths = *_starts(view), view.columns  # a row that ends off a mark is as bad as its start
        colour = BAD if any(each * size % LOAD_BYTES for each in lengths) else GOOD
        used = sheet.words(1, title, view.code, bold=True, code=True)
        rule = f"strides {view.strides}, offset {view.offset}"
        if desk:
            sheet.words(used + 12, title, rule, colour=MUTED, size=11)
            sheet.words(sheet.width - 2, title, said[name], colour=colour, anchor="end", bold=True)
        else:
            sheet.words(1, top - ABOVE, said[name], colour=colour, bold=True)
        _cells(sheet, view, top, cell, count, colour)
        _marks(sheet, top, cell, count, size)
        for start in _starts(view):
            if (start + LOAD_BYTES // size) * cell < sheet.width:
                _loads(sheet, view, start, top + CELL + 9, cell, size, colour)


def _cells(sheet: Canvas, view: View, top: float, cell: float, count: int, colour: str) -> None:
    """Cells of memory; those of the view's rows have the number of their column."""
    step = view.strides[1]
    of_row = {
        start + step * column: column for start in _starts(view) for column in range(view.columns)
    }
    for address in range(count):
        x = 1 + address * cell
        column = of_row.get(address)
        fill = LINE if column is None else colour
        sheet.box(x + 0.7, top, cell - 1.4, CELL, fill=fill, opacity=1 if column is None else 0.28)
        if column is not None and cell > 10:
            middle = x + cell / 2
            sheet.words(middle, top + 12.5, str(column), size=9, anchor="middle", colour=INK)


def _starts(view: View) -> list[int]:
    """Where each row that is drawn begins, in elements."""
    return [view.offset + row * view.strides[0] for row in range(view.rows)]


def _marks(sheet: Canvas, top: float, cell: float, count: int, size: int) -> None:
    each = LOAD_BYTES // size
    for address in range(0, count + 1, each):
        x = 1 + address * cell
        sheet.line((x, top), (x, top + CELL + 7), colour=INK, thick=1, dashed=True)


def _loads(
    sheet: Canvas, view: View, first: int, y: float, cell: float, size: int, colour: str
) -> None:
    """Under each wide load of a row of memory what it fetches, if it can be made."""
    each = LOAD_BYTES // size
    along = view.strides[1] == 1
    first, ends = (first, first + view.columns) if along else (0, 16)
    said: list[tuple[float, float, str]] = []
    for number in range(2):
        start, end = first + number * each, min(first + (number + 1) * each, ends)
        if start >= ends or end * cell > sheet.width:
            continue
        x0, x1 = 1 + start * cell + 1.5, 1 + end * cell - 1.5
        sheet.bracket(x0, x1, y + 5, colour)
        late = first * size % LOAD_BYTES
        if end - start < each:
            text = f"{end - start} left"
        else:
            text = f"begins {late} bytes late" if late else "16-byte load"
            text = text if along else f"column 0: {text}"
        said.append((x0, x1, text))
    fits = all(canvas.wide(text, canvas.LEAST) < x1 - x0 for x0, x1, text in said)
    if (
        not fits and len(said) > 1 and len({text for *_, text in said}) == 1
    ):  # once under all of them
        said = [(said[0][0], said[-1][1], f"{said[0][2]}{'s' * (not late)}")]
    for x0, x1, text in said:
        room = canvas.wide(text, canvas.LEAST) < x1 - x0 + 8
        text = text if room else ("late" if first % each else "16 B")
        sheet.words((x0 + x1) / 2, y + 17, text, anchor="middle", colour=MUTED, size=10)
