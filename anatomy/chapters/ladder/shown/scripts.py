"""The ladder's scripts as texts: which rung each changes, its ways, and how two of them differ.

Each says in its first lines which rung it changes: `Changes from rung 2: ...`. All is read from the
files, so that no page can fall behind them.
"""

import ast
import re
from collections.abc import Iterator
from difflib import unified_diff
from functools import cache
from pathlib import Path

from anatomy.record import signatures
from anatomy.table.errors import UnknownName

FOLDER = Path("snippets") / "ladder"
CONTEXT = 2  # unchanged lines on either side of a change
TOP = "imports and constants"
_BEFORE = re.compile(r"Changes from rung (\d)")
_MARK = re.compile(r"^\s*# --8<-- \[(start|end):\w+\]\s*$")
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@cache
def before(rung: str) -> str | None:
    """The script that a rung changes, by its own first lines; None of the first rung.

    Raises:
        UnknownName: There is no such script, or none of the rung that it names.
    """
    docstring = ast.get_docstring(ast.parse(_text(rung))) or ""
    found = _BEFORE.search(docstring)
    if not found:
        return None
    numbered = {name[0]: name for name in names()}
    if found[1] not in numbered:
        raise UnknownName(f"rung that {rung} changes", found[1], numbered)
    return numbered[found[1]]


def names() -> list[str]:
    """All rungs, from the slowest idea up."""
    return [path.stem for path in sorted((signatures.PACKAGE.parent / FOLDER).glob("*.py"))]


@cache
def ways(rung: str) -> tuple[str, ...]:
    """The ways that a script can be run in, the one that counts first.

    Raises:
        UnknownName: There is no such script.
    """
    for node in ast.parse(_text(rung)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WAYS":
            return tuple(_texts(node.value))
    return ()


def _texts(node: ast.expr) -> Iterator[str]:
    """The texts of a tuple as it is written, those of tuples inside it among them."""
    if isinstance(node, ast.Constant):
        yield node.value
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.expr):
            yield from _texts(inner)


def difference(old: str, new: str) -> list[str]:
    """Lines that two scripts share no more, with their signs, and what they stand in."""
    here = code(new)
    places = _places(here)
    found: list[str] = []
    head, at = None, 0  # the hunk whose first change is still to come, and its line in `new`
    lines = unified_diff(code(old), here, lineterm="", n=CONTEXT)
    for line in list(lines)[2:]:  # the names of the files
        if hunk := _HUNK.match(line):
            head, at = len(found), max(0, int(hunk[1]) - 1)
        elif head is not None and line[:1] in "+-":
            # What is new may begin with the empty lines behind what stands above it.
            at = next((n for n in range(at, len(here)) if here[n].strip()), len(here) - 1)
            found[head], head = f"@@ {places[at]} @@", None
        else:
            at += 1
        found.append(line)
    return found


def code(rung: str) -> list[str]:
    """A script's lines from its imports to what times it, without the marks of sections."""
    text = _text(rung)
    lines = text.splitlines()
    tree = ast.parse(text)
    first = tree.body[1].lineno - 1 if ast.get_docstring(tree) else 0
    last = next((n.lineno - 1 for n in tree.body if _times(n)), len(lines))
    kept = [line for line in lines[first:last] if not _MARK.match(line)]
    while kept and not kept[-1].strip():
        kept.pop()
    # Where a mark stood alone, its empty lines are one too many.
    return [
        line
        for at, line in enumerate(kept)
        if line.strip() or at < 2 or kept[at - 1].strip() or kept[at - 2].strip()
    ]


def _times(node: ast.stmt) -> bool:
    """Whether this is what runs only where the script runs by itself."""
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


@cache
def _text(rung: str) -> str:
    path = signatures.PACKAGE.parent / FOLDER / f"{rung}.py"
    if not path.is_file():
        raise UnknownName("rung", rung, names())
    return path.read_text(encoding="utf-8")


def _places(lines: list[str]) -> list[str]:
    """The class or function that each line stands in, by its name."""
    found, here = [], TOP
    for at, line in enumerate(lines):
        if line.startswith(("class ", "def ", "@")):
            opened = (re.match(r"(?:class|def) (\w+)", later) for later in lines[at:])
            here = next((each[1] for each in opened if each), TOP)
        elif line[:1] not in ("", " ", ")"):
            here = TOP
        found.append(here)
    return found
