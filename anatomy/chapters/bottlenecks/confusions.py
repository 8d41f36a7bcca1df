"""The confusion matrix of the bottleneck classifier, and the evidence behind each of its cells."""

import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

from anatomy.diagnosis.bottleneck import CAUSES, COMPUTE, LAUNCH, MEMORY
from anatomy.figures import framing, tables
from anatomy.judge import rows
from anatomy.judge.rows import Row
from anatomy.record.showing import current
from anatomy.table import kernel_names, units
from anatomy.table.errors import UnknownName

EXPERIMENT = "bottlenecks.confusion"
# Who names the bottleneck: column of the table, and what it is called.
JUDGES = {"found": "diagnose", "seed_says": "the inherited three kinds"}
# How the lines begin that name the cause, say what it takes, and what to change.
FIRST_READ = ("bottleneck:", "A step takes", "It waits for the GPU", "try next:")
_KERNEL = re.compile(r"^(\s+[\d.]+%\s+[\d.]+ ×\s+)(.+)$")  # of a report: share, how often, name
NAMEABLE = {"seed_says": (COMPUTE, MEMORY, LAUNCH)}  # kinds that a judge can name, if not all
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
        confusion("three kinds")
        confusion("shares", caption="The shares behind each name.")
        confusion("told", op="copy")

    Args:
        part: `matrix`, how many of each kind `diagnose` called what; `three kinds`, how many the
            rule of the inherited advice did; `workloads`, what each was called and what its cause
            costs; `shares`, what the names rest on; `told`, what `diagnose` said; or `answer`, the
            lines of it to read first.
        op: The only workload of `told` or `answer`; by default those that were not called what they
            were built as, or in doubt.
    """
    if part not in PARTS:
        raise UnknownName("part of the confusion", part, PARTS)
    found = current().find(EXPERIMENT, **params)
    return framing.exhibit(found, caption, lambda: PARTS[part](found.recording.rows, op))


def _matrix(table: Sequence[Row], column: str) -> str:
    """What one judge called the workloads: kinds by construction down, names given across."""
    there, judge = _built(table), JUDGES[column]
    called = Counter((row["expected"], row.get(column) or units.NOT_MEASURED) for row in there)
    kinds = [cause for cause in CAUSES if any(row["expected"] == cause for row in there)]
    names = [*kinds, *sorted({name for _, name in called} - set(kinds))]
    heads = ["built as", *(f"#{escape(name)}" for name in names)]
    lines = []
    for kind in kinds:
        counts = {name: called[kind, name] for name in names}
        cells = (_marked(str(n), kind == name) if n else tables.NONE for name, n in counts.items())
        lines.append([escape(kind), *cells])
    title = f"{judge}: {_right(there, column)} of {len(there)} as built"
    if column in NAMEABLE:
        own = sum(row["expected"] in NAMEABLE[column] for row in there)
        title += f"; only {own} are of a kind that has a name there"
    listed = tables.listed(heads, lines, f"What {judge} called each workload")
    return f"<p><strong>{escape(title)}</strong></p>{listed}"


def _built(table: Sequence[Row]) -> list[Row]:
    """The workloads that were diagnosed and are known to be built as something."""
    return [row for row in table if row.get("role") == "control" and row.get("expected")]


def _right(there: Sequence[Row], column: str) -> int:
    return sum(row.get(column) == row["expected"] for row in there)


def _name(row: Row, column: str) -> str:
    """What a judge called a workload: `launch, in doubt`."""
    doubt = ", in doubt" if column == "found" and row.get("certain") is False else ""
    return (row.get(column) or units.NOT_MEASURED) + doubt


def _named(line: str) -> str:
    """A line of a report, the kernel on it by its short name: a template's fills a phone."""
    return _KERNEL.sub(lambda found: found[1] + kernel_names.short(found[2]), line)


def _reports(table: Sequence[Row], op: str | None) -> str:
    """What `diagnose` said of one workload, or of all that it did not name as they were built."""
    there = {row["op"]: row for row in _built(table)}
    if op is not None and op not in there:
        raise UnknownName("workload", op, there)
    doubtful = [r for r in there.values() if r.get("found") != r["expected"] or not r["certain"]]
    wanted = [there[op]] if op else doubtful
    if not wanted:
        return "<p>Every workload was called what it was built as, without a doubt.</p>"
    texts = (escape("\n".join(map(_named, row.get("report") or ()))) for row in wanted)
    return "".join(f'<pre class="told"><code>{text}</code></pre>' for text in texts)


def _answer(table: Sequence[Row], op: str | None) -> str:
    """The lines of these reports that are to be read first."""

    def kept(row: Row) -> Row:
        lines = (line.strip() for line in row.get("report") or ())
        return row | {"report": [line for line in lines if line.startswith(FIRST_READ)]}

    return _reports([kept(row) for row in table], op)


def _marked(text: str, right: bool) -> str:
    """A chip: its mark says whether a name is the one that was built."""
    return tables.chip("holds" if right else "fails", text)


def _each(table: Sequence[Row]) -> dict[str, tuple[Row, Row | None]]:
    """Of every workload its own row, and that without its cause if there is one."""
    found = {}
    for op in rows.names(table, "op"):
        members = [row for row in table if row.get("op") == op]
        own = next((row for row in members if row.get("role") == "control"), members[0])
        found[escape(op)] = own, next((r for r in members if r.get("variant") == "without"), None)
    return found


def _workloads(table: Sequence[Row], op: str | None) -> str:
    heads = ["workload", "built as", *JUDGES.values(), "second", "#by the model", "#without it"]
    each = _each(table)
    lines = [[name, *_cells(*both)] for name, both in each.items() if not both[0].get("note")]
    # A reason is a sentence: it would make a column of words, and stands under the table.
    why = "".join(
        f'<p class="why">{name}, built as {escape(str(own.get("expected")))}: '
        f"{escape(own['note'])}.</p>"
        for name, (own, _) in each.items()
        if own.get("note")
    )
    return tables.listed(heads, lines, "Workloads and their names") + why


def _cells(own: Row, beside: Row | None) -> list[str]:
    expected = own.get("expected") or ""
    names = [_marked(_name(own, judge), own.get(judge) == expected) for judge in JUDGES]
    built, second = (escape(str(own.get(column) or "—")) for column in ("expected", "second"))
    if beside is None:
        return [built, *names, second, tables.NONE, tables.NONE]
    text = units.ratio_range(*(beside.get(end) for end in ("ratio", "ratio_low", "ratio_high")))
    saving = own.get("saving")
    model = tables.NONE if units.missing(saving) else units.ratio(1.0 - saving)
    return [built, *names, second, model, text]


def _shares(table: Sequence[Row], op: str | None) -> str:
    """A row for each workload that was diagnosed: the shares that its name rests on."""
    lines = [
        [name, *(tables.percent(own.get(column)) for column in SHARES)]
        for name, (own, _) in _each(table).items()
        if not own.get("note")
    ]
    heads = ["workload", *(f"#{name}" for name in SHARES.values())]
    return tables.listed(heads, lines, "The shares behind the names")


PARTS = {
    "matrix": lambda table, op: _matrix(table, "found"),
    "three kinds": lambda table, op: _matrix(table, "seed_says"),
    "workloads": _workloads,
    "shares": _shares,
    "told": _reports,
    "answer": _answer,
}
