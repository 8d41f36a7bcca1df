"""The confusion matrix of the bottleneck classifier, and the evidence behind each of its cells.

```python exec="on" html="1"
from anatomy.page import confusion

print(confusion(caption="What each workload was built to be, and what it was called."))
```
"""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

from anatomy import rows, tables, units
from anatomy.bottleneck import CAUSES, COMPUTE, LAUNCH, MEMORY
from anatomy.charts import figures
from anatomy.errors import UnknownName
from anatomy.pages import inline
from anatomy.rows import Row
from anatomy.showing import current

EXPERIMENT = "bottlenecks.confusion"
# Who names the bottleneck: column of the table, and what it is called.
JUDGES = {"found": "diagnose", "seed_says": "the seed's three kinds"}
# The kinds that a judge has a name for, where they are not all.
NAMEABLE = {"seed_says": (COMPUTE, MEMORY, LAUNCH)}
SHARES = {
    "idle_share": "GPU idle",
    "enqueue_share": "host busy",
    "sync_share": "waits",
    "input_share": "input",
    "transfer_share": "copies",
    "flop_share": "of peak",
    "byte_share": "of bandwidth",
}


def confusion(
    part: str = "matrix", *, op: str | None = None, caption: str | None = None, **params: Any
) -> str:
    """What the workloads of `bottlenecks.confusion` were built to be, and what they were called.

        confusion()
        confusion("shares", caption="The shares behind each name.")
        confusion("told", op="copy")

    Args:
        part: `score`, how many were called what they were built as; `matrix`, how many of each kind
            were called what, by both judges; `workloads`, what each was called and what its cause
            costs; `shares`, what the names rest on; or `told`, what `diagnose` said.
        op: The only workload of `told`; by default those that were not called what they were built
            as, or in doubt.
        caption: What to see.
        params: Parameters of the experiment, where not the default.

    Raises:
        UnknownName: There is no such part or parameter.
    """
    if part not in (*PARTS, "told"):
        raise UnknownName("part of the confusion", part, (*PARTS, "told"))
    showing = current()
    found = showing.find(EXPERIMENT, **params)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    if found.recording is None:
        return figures.framed(showing, [found], "", told)

    def draw() -> str:
        table = found.recording.rows
        body = _told(table, op) if part == "told" else PARTS[part](table)
        return figures.framed(showing, [found], body, told)

    return figures.or_badge(showing, [found], told, draw)


def _matrices(table: Sequence[Row]) -> str:
    """A matrix for each judge: kinds by construction down, names given across."""
    return "".join(_matrix(table, column, judge) for column, judge in JUDGES.items())


def _matrix(table: Sequence[Row], column: str, judge: str) -> str:
    there = _built(table)
    counts = Counter((row["expected"], row.get(column) or units.NOT_MEASURED) for row in there)
    kinds = [cause for cause in CAUSES if any(row["expected"] == cause for row in there)]
    given = {name for _, name in counts}
    names = [*kinds, *sorted(given - set(kinds))]
    heads = ["built as", *(f"#{escape(name)}" for name in names)]
    lines = [
        [escape(kind), *(_count(counts[kind, name], kind == name) for name in names)]
        for kind in kinds
    ]
    title = f"{judge}: {_right(there, column)} of {len(there)} as built"
    if column in NAMEABLE:
        own = sum(row["expected"] in NAMEABLE[column] for row in there)
        title += f"; only {own} are of a kind that has a name there"
    return f"<p>{escape(title)}</p>" + tables.listed(
        heads, lines, f"What {judge} called each workload"
    )


def _built(table: Sequence[Row]) -> list[Row]:
    """The workloads that were diagnosed and are known to be built as something."""
    return [row for row in table if row.get("role") == "control" and row.get("expected")]


def _right(there: Sequence[Row], column: str) -> int:
    return sum(row.get(column) == row["expected"] for row in there)


def _score(table: Sequence[Row]) -> str:
    """How many names are right, and which are not, in a sentence."""
    there = _built(table)
    told = f"diagnose named {_right(there, 'found')} of {len(there)} workloads as they were built."
    for row in there:
        if row.get("found") != row["expected"]:
            told += f" {row['op']}, built as {row['expected']}, was called {_called(row)}."
    return f"<p>{escape(told)}</p>"


def _called(row: Row) -> str:
    """`launch, in doubt (second most likely: sync)`."""
    told = row.get("found") or units.NOT_MEASURED
    told += ", in doubt" if row.get("certain") is False else ""
    return f"{told} (second most likely: {row['second']})" if row.get("second") else told


def _told(table: Sequence[Row], op: str | None) -> str:
    """What `diagnose` said of one workload, or of all that it did not name as they were built.

    Raises:
        UnknownName: There is no such workload.
    """
    there = _built(table)
    if op is not None and op not in (known := [row["op"] for row in there]):
        raise UnknownName("workload", op, known)
    wanted = [
        row
        for row in there
        if (row["op"] == op if op else row.get("found") != row["expected"] or not row["certain"])
    ]
    if not wanted:
        return "<p>Every workload was called what it was built as, without a doubt.</p>"
    parts = []
    for row in wanted:
        text = escape("\n".join(row.get("report") or ()))
        parts.append(f'<pre class="told"><code>{text}</code></pre>')
    return "".join(parts)


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
    heads = ["workload", "built as", *JUDGES.values(), "second", "#by the model", "#without it"]
    each = _each(table)
    lines = [[name, *_names(own, members)] for name, own, members in each if not own.get("note")]
    # A reason is a sentence: it would make a column of words, and stands under the table.
    why = "".join(
        f'<p class="why">{name}, built as {escape(str(own.get("expected")))}: '
        f"{escape(own['note'])}.</p>"
        for name, own, _ in each
        if own.get("note")
    )
    return tables.listed(heads, lines, "Workloads and their names") + why


def _names(own: Row, members: Sequence[Row]) -> list[str]:
    cells = [escape(str(own.get("expected") or "—"))]
    for column in JUDGES:
        name = own.get(column) or units.NOT_MEASURED
        doubt = ", in doubt" if column == "found" and own.get("certain") is False else ""
        right = name == own.get("expected")
        cells.append(tables.chip("holds" if right else "fails", name + doubt))
    cells.append(escape(str(own.get("second") or "—")))
    beside = next((row for row in members if row.get("variant") == "without"), None)
    ends = ("ratio", "ratio_low", "ratio_high")
    text = units.ratio_range(*(beside.get(end) for end in ends)) if beside else tables.NONE
    saving = own.get("saving") if beside else None
    return [*cells, tables.NONE if units.missing(saving) else units.ratio(1.0 - saving), text]


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


# Part -> what draws it, beside `told`.
PARTS = {"score": _score, "matrix": _matrices, "workloads": _workloads, "shares": _shares}
