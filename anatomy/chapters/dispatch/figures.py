"""A call's way through the dispatch keys: where it stops, what it falls through, and its time."""

from collections.abc import Mapping, Sequence

from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import GOOD, INK, MUTED, QUIET, Canvas
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row

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
    scale = (sheet.width - 2) / max(row.get("high_s") or row["median_s"] for row in shown)
    for row in shown:
        y = sheet.height + 14
        sheet.words(1, y, labels[row["variant"]], code=True, bold=True)
        time = rows.printed(row, "median_s")
        sheet.words(sheet.width - 2, y, time, anchor="end", bold=True)
        if row.get("verdict") == "undecided":
            sheet.words(sheet.width - 58, y, UNDECIDED, size=11, colour=MUTED, anchor="end")
        sheet.box(1, y + 7, scale * row["median_s"], 5, fill=GOOD, opacity=0.75)
        if row.get("high_s"):
            ends = [(1 + scale * row[end], y + 9.5) for end in ("low_s", "high_s")]
            sheet.line(*ends, colour=INK)
        _keys(sheet, y + 19, row)
        sheet.space(12)
    key = "filled: runs code, grey: Python; dashed: has none for this operator"
    sheet.words(1, sheet.height + 4, key, size=11, colour=MUTED)


def _keys(sheet: Canvas, y: float, row: Row) -> None:
    """What the call passes, from left to right, in as many lines as it takes."""
    x, enters = 1.0, row.get("enters")
    keys = [*filter(None, [enters, *row["keys"].split(", ")])]
    python = {enters, PYTHON, *(keys[-1:] if enters == IN_PYTHON else ())}
    for key in keys:
        text = key.strip("()")
        long = canvas.wide(text, 11, bold=True) + 14  # as wide as keys with their capitals are
        if x > 1:
            if x + BETWEEN + long > sheet.width - 1:
                x, y = 1.0, y + BOX + 5
            sheet.line((x, y + BOX / 2), (x + BETWEEN - 2, y + BOX / 2), arrow=True)
            x += BETWEEN
        look = {"fill": QUIET if key in python else GOOD, "opacity": 0.2}
        if text != key:  # the operator has no code there
            look = {"dashed": True}
        sheet.box(x, y, long, BOX, edge=MUTED, round_=4, **look)
        sheet.words(x + 7, y + 15, text, size=11)
        x += long
