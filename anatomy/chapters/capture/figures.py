"""What each way keeps of a function, which functions it gets right, and code line by line."""

import re
from collections.abc import Mapping, Sequence
from html import escape

from anatomy.figures import tables
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, MUTED, QUIET, Canvas
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row

# Outcome -> its mark, its tone, and a word for it in a narrow column. An error has a mark of its
# own: a question mark says of verdicts that they are open.
CHIPS = {
    "right": ("✓", "better", "right"),
    "graph break": ("◐", "mixed", "break"),
    "left to Python": ("◐", "mixed", "Python"),
    "wrong answer": ("✗", "worse", "wrong"),
    "print lost": ("✗", "worse", "no print"),
    "error": ("■", "open", "error"),
}
# What a way makes of `if x.sum() > 0: return x * 2`, else `x - 1`: of each piece the number of the
# graph that holds it, P where it is left to Python, and - where it is lost; and how that comes.
PIECES = "x.sum() > 0", "if", "x * 2", "x - 1"
KEPT = {
    "eager": ("PPPP", "no graph: Python decides"),
    "jit.trace": ("--1-", "what made the result, without the if"),
    "jit.script": ("1111", "the source, parsed: both branches"),
    "fx.symbolic_trace": ("----", "a stand-in for x has no value to decide the if by"),
    "export": ("----", "one graph for every input: the if would need two"),
    "compile": ("1P23", "pieces, and Python between them"),
}


@drawn_from("capture.catalogue")
def kept(table: Sequence[Row]) -> str:
    """What each way keeps of a function with a branch, and what the recording says came of it."""
    said = {row["variant"]: _said(row) for row in rows.select(table, op="if on a tensor")}
    label = "; ".join(f"{way}: {how}: {said[way]}" for way, (_, how) in KEPT.items())
    return canvas.both(lambda sheet: _lanes(sheet, said), f"What each way keeps. {label}.")


def _said(row: Row) -> str:
    return f"{row['outcome']} at {row['failed_at']}" if row.get("failed_at") else row["outcome"]


def _lanes(sheet: Canvas, said: Mapping[str, str]) -> None:
    """A lane for each way: pieces, those of a graph in one box."""
    wide, top = sheet.width / len(PIECES), 0.0
    for way, (graphs, how) in KEPT.items():
        # An error says so, and is no wrong answer.
        tone = BAD if said[way] == "wrong answer" else MUTED if "error" in said[way] else GOOD
        sheet.words(1, top + 14, way, bold=True, code=True)
        sheet.words(sheet.width - 1, top + 14, said[way], bold=True, anchor="end", colour=tone)
        for graph in filter(graphs.count, "P123"):
            first, end = graphs.find(graph), graphs.rfind(graph) + 1
            fill = QUIET if graph == "P" else GOOD
            sheet.box(first * wide, top + 22, (end - first) * wide - 4, 24, fill=fill, opacity=0.3)
        for place, piece in enumerate(PIECES):
            if graphs[place] != "-":
                x = (place + 0.5) * wide - 2
                sheet.words(x, top + 38, piece, anchor="middle", code=True, size=11)
        top += 62 if graphs.strip("-") else 32
        sheet.words(1, top, how, colour=MUTED, size=11)
        top += 14


@drawn_from("capture.catalogue")
def outcomes(table: Sequence[Row]) -> str:
    """Functions down, ways across, and what became of each; errors on hover."""
    ops, ways = rows.names(table, "op"), rows.names(table, "variant")
    lines = [[tables.code(op), *map(_chip, rows.select(table, op=op))] for op in ops]
    heads = ["function", *(way.partition(".symbolic")[0] for way in ways)]
    return tables.listed(heads, lines, "What each way makes of each function")


def _chip(row: Row) -> str:
    mark, tone, word = CHIPS[row["outcome"]]
    told = escape(": ".join(filter(None, (_said(row), row.get("error")))))
    inside = f'<span class="mark" aria-hidden="true">{mark}</span>{word}'
    return f'<span class="chip {tone}" title="{told}">{inside}</span>'


# What a line of the code is explained by; the first that fits. Triton's and C++'s.
NOTES = {
    r"def triton_|void +kernel": "`poi` is pointwise, `red` a reduction; then each operation once.",
    r"xnumel = ": "The size, as a constant: this kernel is for this shape.",
    r"tl\.program_id": "Where this program's block begins.",
    r"tl\.arange": "The numbers of its elements, all at once.",
    r"xmask = ": "Which of them exist: the last block may reach beyond the end.",
    r"tl\.load|loadu": "A read from memory, into registers.",
    r"cos\(": "A cosine of a register, into a register. No memory.",
    r"tl\.store|\.store\(": "A write to memory.",
    r"for\(": "Threads of the CPU share the loop; a step takes a whole vector register.",
    r"def call": "The wrapper. Python runs it at every call, once the guards have passed.",
    r"args\.clear": "The inputs are let go as soon as nobody needs them.",
    r"assert_size_stride": "Shape and strides must be those that it was compiled for.",
    r"empty_strided": "Memory for the result. What lies between the operations gets none.",
    r"get_raw_stream": "The queue that the launch goes to.",
    r"\.run\(|cpp_fused\w*\(": "A launch.",
    r"return": "What the caller gets.",
}


@drawn_from("capture.code", needs="generated")
def annotated(table: Sequence[Row], part: str) -> str:
    """The code that the compiler wrote, under a line what it says: `kernel`, or the `call`."""
    (row,) = rows.select(table, variants=[part])
    lines = [[_line(text)] for text in row["generated"].splitlines()]
    return tables.listed(["the code, and what it says"], lines, f"Generated code, the {part}")


def explained(line: str) -> str:
    """What a line of generated code says, as markup; nothing of one that needs no words."""
    note = next((note for pattern, note in NOTES.items() if re.search(pattern, line)), "")
    return re.sub(r"`(\w+)`", r"<code>\1</code>", escape(note))


def _line(text: str) -> str:
    indent = "&nbsp;" * (len(text) - len(text.lstrip()))
    note = explained(text)
    under = f'<br>{indent}<span class="ci">{note}</span>' if note else ""
    return f"{indent}<code>{escape(text.lstrip())}</code>{under}"
