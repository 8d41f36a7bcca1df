"""What profiles of single calls name as the longest, the first call beside later ones.

```python exec="on" html="1"
from anatomy.hotspots import hotspots

print(hotspots(caption="What took longest in the first call, and in later ones."))
```
"""

from collections.abc import Sequence
from html import escape

from anatomy import figures, inline, rows, tables, units
from anatomy.rows import Row
from anatomy.showing import current

EXPERIMENT = "bottlenecks.profiled_call"
# Side -> heads of its two columns.
SIDES = {
    "host": ("#host time", "longest on the host"),
    "device": ("#GPU busy", "longest on the GPU"),
}


def hotspots(*, caption: str | None = None, **params: object) -> str:
    """A table of `bottlenecks.profiled_call`: what took longest in each profiled call.

    Args:
        caption: What to see.
        params: Parameters of the experiment, where not the default.

    Raises:
        UnknownName: There is no such parameter.
    """
    showing = current()
    found = showing.find(EXPERIMENT, **params)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    if found.recording is None:
        return figures.framed(showing, [found], "", told)

    def draw() -> str:
        body = _table(found.recording.data["rows"])
        return figures.framed(showing, [found], body, told)

    return figures.or_badge(showing, [found], told, draw)


def _table(table: Sequence[Row]) -> str:
    """A row for each call; a first call's names are marked: the same as later, or another."""
    sides = [side for side in SIDES if any(row.get(f"{side}_s") is not None for row in table)]
    heads = ["profiled call", *(head for side in sides for head in SIDES[side])]
    lines = []
    for model in rows.names(table, "model"):
        calls = [row for row in table if row["model"] == model]
        first = min(row["call"] for row in calls)
        for row in calls:
            later = (
                [each for each in calls if each["call"] != first] if row["call"] == first else []
            )
            cells = [_side(row, side, later) for side in sides]
            lines.append([escape(str(row["variant"])), *(text for cell in cells for text in cell)])
    return tables.listed(heads, lines, "What took longest in each profiled call")


def _side(row: Row, side: str, later: Sequence[Row]) -> tuple[str, str]:
    """A time, and what took longest of it with its share; `later` are calls to hold it against."""
    top = row.get(f"top_{side}")
    if top is None:
        return tables.NONE, tables.NONE
    name = str(top) if side == "host" else figures.short_kernel(str(top))
    text = f"<code>{escape(name)}</code>"
    same = {each.get(f"top_{side}") == top for each in later}
    if len(same) == 1:
        word, told = ("holds", "as later") if same == {True} else ("fails", "not later")
        text += f" {tables.chip(word, told)}"
    share = units.percent(row.get(f"top_{side}_share"))
    return units.seconds(row.get(f"{side}_s")), f"{share} {text}"
