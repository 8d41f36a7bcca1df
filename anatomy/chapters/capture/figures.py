"""What each way keeps of a function, which functions it gets right, and code line by line."""

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple

from anatomy.figures import tables
from anatomy.figures.diagrams import canvas
from anatomy.figures.diagrams.canvas import BAD, GOOD, LINE, MUTED, QUIET, Canvas
from anatomy.figures.framing import drawn_from
from anatomy.judge import rows
from anatomy.judge.rows import Row

BRANCH = "if on a tensor"
# Outcome -> a word for it in a narrow column, and the verdict whose tone and mark it has.
CHIPS = {
    "right": ("right", "holds"),
    "graph break": ("break", "holds in part"),
    "left to Python": ("Python", "holds in part"),
    "wrong answer": ("wrong", "fails"),
    "print lost": ("no print", "fails"),
    "error": ("error", "inconclusive"),
}
STOPPED = "■"  # the mark of an error: a question mark says of verdicts that they are open
LANE, BOX = 58.0, 24.0  # pixels: of a way, and of a piece of its graph


class Kept(NamedTuple):
    """What a way makes of `if x.sum() > 0: return x * 2`, else `x - 1`: pieces of a graph, of which
    those of one number are one graph, and None is Python's part; and how it comes about."""

    pieces: tuple[tuple[str, int | None], ...]
    how: str


SUM, IF, YES, NO = "x.sum() > 0", "if", "x * 2", "x - 1"
KEPT = {
    "eager": Kept(((SUM, None), (IF, None), (YES, None), (NO, None)), "no graph: Python decides"),
    "jit.trace": Kept(((SUM, 1), (YES, 1)), "what the example did, without the if"),
    "jit.script": Kept(((SUM, 1), (IF, 1), (YES, 1), (NO, 1)), "the source, parsed: both branches"),
    "fx.symbolic_trace": Kept((), "a stand-in for x has no value to decide the if by"),
    "export": Kept((), "one graph for every input: the if would need two"),
    "compile": Kept(((SUM, 1), (IF, None), (YES, 2), (NO, 3)), "pieces, and Python between them"),
}


@drawn_from("capture.catalogue")
def kept(table: Sequence[Row]) -> str:
    """What each way keeps of a function with a branch, and what the recording says came of it."""
    said = {row["variant"]: _said(row) for row in rows.select(table, op=BRANCH)}
    label = "; ".join(f"{way}: {KEPT[way].how}: {said[way]}" for way in KEPT)
    return canvas.both(lambda sheet: _lanes(sheet, said), f"What each way keeps. {label}.")


def _said(row: Row) -> str:
    return f"{row['outcome']} at {row['failed_at']}" if row.get("failed_at") else row["outcome"]


def _lanes(sheet: Canvas, said: dict[str, str]) -> None:
    desk = sheet.width > 500
    top = 0.0
    for way, (pieces, how) in KEPT.items():
        outcome = said[way]
        good = outcome.startswith(("right", "graph break", "left to Python"))
        sheet.words(1, top + 14, way, bold=True, code=True)
        sheet.words(sheet.width - 1, top + 14, outcome, bold=True, anchor="end",
                    colour=GOOD if good else BAD)  # fmt: skip
        x = _pieces(sheet, pieces, top + 22)
        beside = desk or not pieces
        sheet.words(x if beside else 1, top + (38 if beside else 62), how, colour=MUTED, size=11)
        top += LANE if beside else LANE + 20


def _pieces(sheet: Canvas, pieces: tuple[tuple[str, int | None], ...], y: float) -> float:
    """Boxes, those of a graph in a frame; returns where they end."""
    x = 1.0
    for graph, several in groupby(pieces, key=lambda piece: piece[1]):
        begun = x
        for text, _ in several:
            wide = canvas.wide(text, 11.5, code=True) + 14
            tone = QUIET if graph is None else GOOD
            sheet.box(x, y, wide, BOX, fill=tone, opacity=0.25, edge=LINE)
            sheet.words(x + wide / 2, y + 16, text, anchor="middle", code=True, size=11.5)
            x += wide + 3
        if graph is not None:
            sheet.box(begun, y, x - 3 - begun, BOX, edge=GOOD)
        x += 9
    return x


@drawn_from("capture.catalogue")
def outcomes(table: Sequence[Row]) -> str:
    """Functions down, ways across, and what became of each; errors on hover."""
    lines = [
        [tables.code(op), *(_chip(row) for row in rows.select(table, op=op))]
        for op in rows.names(table, "op")
    ]
    ways = (way.partition(".symbolic")[0] for way in rows.names(table, "variant"))
    label = "What each way makes of each function"
    return tables.listed(["function", *ways], lines, label, "outcomes")


def _chip(row: Row) -> str:
    word, like = CHIPS[row["outcome"]]
    mark, kind = tables.CHIPS[like]
    mark = STOPPED if word == "error" else mark
    told = ": ".join(filter(None, (_said(row), row.get("error"))))
    inside = f'<span class="mark" aria-hidden="true">{mark}</span>{word}'
    return f'<span class="chip {kind}" title="{escape(told)}">{inside}</span>'


# What a line of the code is explained by; the first that fits. Triton's and C++'s.
NOTES = {
    r"def triton_|void +kernel": "What is in it, as a name: `poi` is pointwise, `red` and `per` "
    "are reductions. Then come the operations, each kind once.",
    r"xnumel = ": "The size, as a constant: this kernel is for this shape.",
    r"tl\.program_id": "Where this program's block begins.",
    r"tl\.arange": "The numbers of its elements, all at once.",
    r"xmask = ": "Which of them exist: the last block may reach beyond the end.",
    r"tl\.load|loadu": "A read from memory, into registers.",
    r"cos\(": "A cosine of a register, into a register. No memory.",
    r"tl\.store|\.store\(": "A write to memory.",
    r"omp parallel": "Threads of the CPU, which share the loop.",
    r"for\(": "A step of the loop takes a whole vector register.",
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
    label = f"Generated code, the {part}"
    return tables.listed(["the code, and what it says"], lines, label, "annotated")


def explained(line: str) -> str:
    """What a line of generated code says, as markup; nothing of one that needs no words."""
    note = next((note for pattern, note in NOTES.items() if re.search(pattern, line)), "")
    return re.sub(r"`(\w+)`", r"<code>\1</code>", escape(note))


def _line(text: str) -> str:
    indent = "&nbsp;" * (len(text) - len(text.lstrip()))
    note = explained(text)
    under = f'<br>{indent}<span class="ci">{note}</span>' if note else ""
    return f"{indent}<code>{escape(text.lstrip())}</code>{under}"
