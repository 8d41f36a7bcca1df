"""A call's way through the dispatch keys: where it stops, what it falls through, and its time."""

from collections.abc import Mapping, Sequence

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import GOOD, INK, LINE, MUTED, QUIET, Canvas
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.table import columns

PYTHON = "Python"  # the key that calls a mode
IN_PYTHON = "torch.library"  # enters here what Python has registered: its kernel is Python, too
UNDECIDED = "not told apart"
BOX, BETWEEN = 21.0, 13.0  # pixels: the height of a key, and the arrow to the next one


@drawn_from("dispatch.calls", needs="median_s")
def ways(table: Sequence[Row], labels: Mapping[str, str]) -> str:
    """Calls with the keys on their way, in order, under a bar as long as the call takes the CPU,
    with its interval; a time that was not told apart from the control's says so.

        ways({"torch.add": "torch.add(x, y)", "requires_grad": "the same, recorded"})

    Args:
        labels: Rows of `dispatch.calls`, and what the drawing calls them.
    """
    shown = rows.select(table, op="one call", variants=list(labels))
    label = "; ".join(
        f"{labels[row['variant']]}: {row['keys']}, {rows.printed(row, 'median_s')}" for row in shown
    )
    return canvas.both(lambda sheet: _drawn(sheet, shown, labels), f"{label}.")


def _drawn(sheet: Canvas, shown: Sequence[Row], labels: Mapping[str, str]) -> None:
    least, longest = columns.column("median_s").interval
    most = max(row.get(longest) or row["median_s"] for row in shown)
    for row in shown:
        y = sheet.height + (14 if sheet.height else 2)
        sheet.words(1, y + 12, labels[row["variant"]], code=True, bold=True)
        time = rows.printed(row, "median_s")
        if row.get("verdict") == "undecided":
            sheet.words(sheet.width - 58, y + 12, UNDECIDED, size=11, colour=MUTED, anchor="end")
        sheet.words(sheet.width - 2, y + 12, time, anchor="end", bold=True)
        scale = (sheet.width - 2) / most
        sheet.box(1, y + 19, scale * row["median_s"], 5, fill=GOOD, opacity=0.75)
        ends = [(1 + scale * row[end], y + 21.5) for end in (least, longest) if row.get(end)]
        if len(ends) == 2:
            sheet.line(*ends, colour=INK)
        _keys(sheet, y + 31, row)
    key = "filled: runs code, grey: Python; dashed: has none for this operator"
    sheet.words(1, sheet.height + 16, key, size=11, colour=MUTED)


def _keys(sheet: Canvas, y: float, row: Row) -> None:
    """What the call passes, from left to right, in as many lines as it takes."""
    x, enters = 1.0, row.get("enters")
    keys = [*filter(None, [enters, *(row.get("keys") or "").split(", ")])]
    for number, key in enumerate(keys):
        python = key in (enters, PYTHON) or (enters == IN_PYTHON and key == keys[-1])
        empty, text = key.startswith("("), key.strip("()")
        long = canvas.wide(text, 11, bold=True) + 14  # as wide as keys with their capitals are
        if x > 1 and x + BETWEEN + long > sheet.width - 1:
            x, y = 1.0, y + BOX + 5
        if number:
            sheet.line((x, y + BOX / 2), (x + BETWEEN - 2, y + BOX / 2), colour=MUTED, arrow=True)
            x += BETWEEN
        fill, edge = (QUIET if python else GOOD), (LINE if empty else MUTED)
        look = {"dashed": True} if empty else {"fill": fill, "opacity": 0.2}
        sheet.box(x, y, long, BOX, edge=edge, round_=4, **look)
        sheet.words(x + 7, y + 15, text, size=11, colour=MUTED if empty else INK)
        x += long
