"""What profiles of single calls name as the longest, the first call beside later ones."""

from collections.abc import Sequence
from html import escape

from anatomy.figures import framing, tables
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.record.showing import current
from anatomy.table import kernel_names, units

EXPERIMENT = "bottlenecks.profiled_call"
# Side -> its title, and what its time is called.
SIDES = {"host": ("On the host", "host time"), "device": ("On the GPU", "GPU busy")}


def hotspots(*, caption: str | None = None, **params: object) -> str:
    """A table of `bottlenecks.profiled_call`: what took longest in each profiled call.

    hotspots(caption="What took longest in the first call, and in later ones.")
    """
    found = current().find(EXPERIMENT, **params)
    return framing.exhibit(found, caption, lambda: _tables(found.recording.rows))


def _tables(table: Sequence[Row]) -> str:
    """A table for each side that was profiled: host and GPU name different things."""
    sides = [side for side in SIDES if any(row.get(f"{side}_s") is not None for row in table)]
    return "".join(_of_side(table, side) for side in sides)


def _of_side(table: Sequence[Row], side: str) -> str:
    """A row for each call; a first call's name is marked: the same as later, or another."""
    title, time = SIDES[side]
    lines = []
    for model in rows.names(table, "model"):
        calls = [row for row in table if row["model"] == model]
        first = min(row["call"] for row in calls)
        later = [row.get(f"top_{side}") for row in calls if row["call"] != first]
        for row in calls:
            others = later if row["call"] == first else []
            lines.append([escape(str(row["variant"])), *_cells(row, side, others)])
    heads = ["profiled call", f"#{time}", "what took longest", "#share of it"]
    return f"<p>{title}</p>{tables.listed(heads, lines, f'What took longest: {title}')}"


def _cells(row: Row, side: str, later: Sequence[str | None]) -> tuple[str, str, str]:
    """A time, what took longest of it, and its share; that of `later` calls is held against it."""
    top = row.get(f"top_{side}")
    if top is None:
        return (tables.NONE,) * 3
    text = tables.code(top if side == "host" else kernel_names.short(str(top)))
    if len(same := {each == top for each in later}) == 1:
        chip = ("holds", "as later") if all(same) else ("fails", "not later")
        text += f" {tables.chip(*chip)}"
    return units.seconds(row.get(f"{side}_s")), text, units.percent(row.get(f"top_{side}_share"))
