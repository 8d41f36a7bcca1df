"""The confusion matrix of the bottleneck classifier, and the evidence behind each of its cells.

```python exec="on" html="1"
from anatomy.confusions import confusion

print(confusion(caption="What each workload was built to be, and what it was called."))
```
"""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

from anatomy import figures, inline, rows, tables, units
from anatomy.bottleneck import CAUSES
from anatomy.errors import UnknownName
from anatomy.rows import Row
from anatomy.showing import current

EXPERIMENT = "bottlenecks.confusion"
# Who names the bottleneck: column of the table, and what it is called.
JUDGES = {"found": "diagnose", "seed_says": "the seed's three kinds"}
SHARES = {
    "idle_share": "GPU idle",
    "enqueue_share": "host busy",
    "sync_share": "waits",
    "input_share": "input",
    "transfer_share": "copies",
    "flop_share": "of peak",
    "byte_share": "of bandwidth",
}


def confusion(part: str = "matrix", *, caption: str | None = None, **params: Any) -> str:
    """What the workloads of `bottlenecks.confusion` were built to be, and what they were called.

        confusion()
        confusion("shares", caption="The shares behind each name.")

    Args:
        part: `matrix`, how many of each kind were called what, by both judges; `workloads`, what
            each was called and what its cause costs; or `shares`, what the names rest on.
        caption: What to see.
        params: Parameters of the experiment, where not the default.

    Raises:
        UnknownName: There is no such part or parameter.
    """
    if part not in PARTS:
        raise UnknownName("part of the confusion", part, PARTS)
    showing = current()
    found = showing.find(EXPERIMENT, **params)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    if found.recording is None:
        return figures.framed(showing, [found], "", told)

    def draw() -> str:
        body = PARTS[part](found.recording.data["rows"])
        return figures.framed(showing, [found], body, told)

    return figures.or_badge(showing, [found], told, draw)


def _matrices(table: Sequence[Row]) -> str:
    """A matrix for each judge: kinds by construction down, names given across."""
    return "".join(_matrix(table, column, judge) for column, judge in JUDGES.items())


def _matrix(table: Sequence[Row], column: str, judge: str) -> str:
    there = [row for row in table if row.get("role") == "control" and row.get("expected")]
    counts = Counter((row["expected"], row.get(column) or units.NOT_MEASURED) for row in there)
    kinds = [cause for cause in CAUSES if any(row["expected"] == cause for row in there)]
    given = {name for _, name in counts}
    names = [*kinds, *sorted(given - set(kinds))]
    right = sum(count for (kind, name), count in counts.items() if kind == name)
    heads = ["built as", *(f"#{escape(name)}" for name in names)]
    lines = [
        [escape(kind), *(_count(counts[kind, name], kind == name) for name in names)]
        for kind in kinds
    ]
    title = f"<p>{escape(judge)}: {right} of {len(there)} as built</p>"
    return title + tables.listed(heads, lines, f"What {judge} called each workload")


def _count(count: int, right: bool) -> str:
    """A cell: its mark says whether it lies on the diagonal."""
    return tables.chip("holds" if right else "fails", str(count)) if count else tables.NONE


def _each(table: Sequence[Row]) -> list[tuple[str, Row, list[Row]]]:
    """Every workload's name, its own row, and all of its rows."""
    found = []
    for op in rows.names(table, "op"):
        members = [row for row in table if row.get("op") == op]
        own = next((row for row in members if row.get("role") == "control"), members[0])
        found.append((escape(op), own, members))
    return found


def _workloads(table: Sequence[Row]) -> str:
    """A row for each workload: what it is called, and what its cause costs."""
    heads = ["workload", "built as", *JUDGES.values(), "second", "#without it"]
    lines = [[name, *_names(own, members)] for name, own, members in _each(table)]
    return tables.listed(heads, lines, "Workloads and their names")


def _names(own: Row, members: Sequence[Row]) -> list[str]:
    expected = escape(str(own.get("expected") or "—"))
    if own.get("note"):
        why = f'<span class="why">{escape(own["note"])}</span>'
        return [expected, why, *[""] * (len(JUDGES)), tables.NONE]
    cells = [expected]
    for column in JUDGES:
        name = own.get(column) or units.NOT_MEASURED
        doubt = ", in doubt" if column == "found" and own.get("certain") is False else ""
        right = name == own.get("expected")
        cells.append(tables.chip("holds" if right else "fails", name + doubt))
    cells.append(escape(str(own.get("second") or "—")))
    beside = next((row for row in members if row.get("variant") == "without"), None)
    ends = ("ratio", "ratio_low", "ratio_high")
    text = units.ratio_range(*(beside.get(end) for end in ends)) if beside else tables.NONE
    return [*cells, text]


def _shares(table: Sequence[Row]) -> str:
    """A row for each workload that was diagnosed: the shares that its name rests on."""
    lines = [
        [name, *(_percent(own.get(column)) for column in SHARES)]
        for name, own, _ in _each(table)
        if not own.get("note")
    ]
    heads = ["workload", *(f"#{name}" for name in SHARES.values())]
    return tables.listed(heads, lines, "The shares behind the names")


def _percent(value: float | None) -> str:
    return tables.NONE if units.missing(value) else units.percent(value)


# Part -> what draws it.
PARTS = {"matrix": _matrices, "workloads": _workloads, "shares": _shares}
