"""Labs: notebooks in py:percent, `docs/labs/NAME.py`, read as pages, line for line.

    # ---
    # title: "Lab 2: ..."
    # ---

    # %% [markdown]
    # ## A heading, and *text* that a notebook shows as well

    # %%
    stairs = measure("occupancy.staircase")
    stairs.show()

    # %% tags=["yours"]
    # code that runs on a reader's machine alone

    # %% tags=["drawn"]
    # code that prints a figure of the site's page, and is in no reader's notebook

Each cell ends with an empty line. What a page is checked for, collected for and drawn for then
holds of a lab: a cell of code is a block of the page, and its last expression is printed as a
notebook shows it (`anatomy.notebook.output`).
"""

import ast
import re
from dataclasses import dataclass
from typing import Literal

from anatomy.table.errors import BadParameter

FOLDER, ENDING = "labs", ".py"
SESSION, YOURS = "lab", "yours"  # what marks the fences of cells among those in their text
DRAWN = "drawn"
TEXT = "<!--cell-->"  # begins a cell of text
_OPENINGS = {
    "text": TEXT,
    "code": f'```python exec="on" html="1" session="{SESSION}"',
    YOURS: f'```python title="{YOURS}"',
    DRAWN: f'```python exec="on" html="1" session="{DRAWN}"',
}
_MARKER = re.compile(r'# %%(?P<text> \[markdown\])?(?: tags=\["(?P<tag>yours|drawn)"\])?\s*')
_OUTPUT = 'print(__import__("anatomy.notebook").notebook.output('


@dataclass
class Cell:
    """One cell of a notebook."""

    kind: Literal["text", "code", "yours", "drawn"]
    line: int  # of its marker, from 1
    lines: list[str]  # without the marks of comments


def is_lab(page: str) -> bool:
    """Whether a page, by its source relative to docs/, is a lab."""
    return page.endswith(ENDING)


def cells(page: str, text: str) -> tuple[list[str], list[Cell]]:
    """The lines above the first cell, as a page has them, and all cells; BadParameter where a line
    belongs to none of them."""
    before: list[str] = []
    found: list[Cell] = []
    for at, line in enumerate(text.split("\n"), 1):
        if line.startswith("# %%"):
            if not (marker := _MARKER.fullmatch(line)):
                known = '`# %%`, `# %% [markdown]` and `# %% tags=["yours"]`'
                raise BadParameter(f"{page}:{at}: a cell begins with one of {known}.")
            if (found[-1].lines if found else before)[-1:] not in ([], [""]):
                raise BadParameter(f"{page}:{at}: an empty line ends the cell before this one.")
            kind = "text" if marker["text"] else marker["tag"] or "code"
            found.append(Cell(kind, at, []))
        elif found and found[-1].kind != "text":
            found[-1].lines.append(line)
        elif line and not re.match(r"#( |$)", line):
            raise BadParameter(f"{page}:{at}: text begins with `# `; code with a line `# %%`.")
        else:
            (found[-1].lines if found else before).append(line[2:])
    if found and found[-1].lines[-1:] != [""]:
        raise BadParameter(f"{page}:{at}: the last cell ends with an empty line.")
    return before, found


def as_page(page: str, text: str) -> str:
    """A lab as the Markdown of a page, each line where it was."""
    lines, found = cells(page, text)
    for cell in found:
        lines.append(_OPENINGS[cell.kind])
        code = _printing(cell.lines) if cell.kind == "code" else cell.lines
        lines += code if cell.kind == "text" else [*code[:-1], "```"]
    return "\n".join(lines)


def _printing(lines: list[str]) -> list[str]:
    """Code that prints what a notebook shows of its last expression."""
    try:
        last = ast.parse("\n".join(lines)).body[-1:]
    except SyntaxError:  # which the build reports with its line
        return lines
    if not last or not isinstance(shown := last[0], ast.Expr):
        return lines
    if isinstance(shown.value, ast.Call) and getattr(shown.value.func, "id", "") == "print":
        return lines
    lines = list(lines)
    lines[shown.end_lineno - 1] = _at(lines[shown.end_lineno - 1], shown.end_col_offset, "))")
    lines[shown.lineno - 1] = _OUTPUT + lines[shown.lineno - 1]
    return lines


def written(code: str) -> str:
    """The code of a cell as it was written, by that of its block."""
    if _OUTPUT not in code:
        return code.strip("\n")
    lines, shown = code.split("\n"), ast.parse(code).body[-1]
    lines[shown.end_lineno - 1] = _at(lines[shown.end_lineno - 1], shown.end_col_offset, "", 2)
    return "\n".join(lines).replace(_OUTPUT, "").strip("\n")


def _at(line: str, offset: int, text: str, instead: int = 0) -> str:
    """A line with a text at an offset as `ast` counts it, in bytes, in place of those before it."""
    whole = line.encode()
    return whole[: offset - instead].decode() + text + whole[offset:].decode()
