"""The ladder's scripts as texts: which rung each changes, by its first lines (`Changes from rung 2:
...`), its ways, and how two differ. All is read from the files, so that no page can fall behind."""

import ast
import re
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

from anatomy.record import signatures
from anatomy.table.errors import UnknownName

FOLDER = Path("snippets") / "ladder"
CONTEXT = 2  # unchanged lines on either side of a change
TOP = "imports and constants"
_BEFORE = re.compile(r"Changes from rung (\d)")
_MARK = re.compile(r"^\s*# --8<-- \[(start|end):\w+\]\s*$")


@cache
def before(rung: str) -> str | None:
    """The script that a rung changes, by its first lines, or None; UnknownName without a script."""
    docstring = ast.get_docstring(ast.parse(_text(rung))) or ""
    found = _BEFORE.search(docstring)
    if not found:
        return None
    numbered = {name[0]: name for name in names()}
    if found[1] not in numbered:
        raise UnknownName(f"rung that {rung} changes", found[1], numbered)
    return numbered[found[1]]


@cache
def names() -> list[str]:
    """All rungs, from the slowest idea up."""
    return [path.stem for path in sorted((signatures.PACKAGE.parent / FOLDER).glob("*.py"))]


@cache
def ways(rung: str) -> tuple[str, ...]:
    """The ways that a script can be run in, the first counts; UnknownName without a script."""
    for node in ast.parse(_text(rung)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WAYS":
            return tuple(_texts(node.value))
    return ()


def _texts(node: ast.expr) -> list[str]:
    """The texts of a tuple in order, those of tuples inside it among them."""
    texts = [each for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return [each.value for each in sorted(texts, key=lambda each: (each.lineno, each.col_offset))]


def difference(old: str, new: str) -> list[str]:
    """Lines that two scripts share no more, with their signs, and what they stand in."""
    before, after = code(old), code(new)
    places = _places(after)
    found: list[str] = []
    for changes in SequenceMatcher(None, before, after).get_grouped_opcodes(CONTEXT):
        first = next(start for kind, _, _, start, _ in changes if kind != "equal")
        # What is new may begin with the empty lines behind what stands above it.
        at = next((n for n in range(first, len(after)) if after[n].strip()), len(after) - 1)
        found.append(f"@@ {places[at]} @@")
        for kind, i1, i2, j1, j2 in changes:
            if kind == "equal":
                found += [f" {line}" for line in before[i1:i2]]
            else:
                found += [f"-{line}" for line in before[i1:i2]]
                found += [f"+{line}" for line in after[j1:j2]]
    return found


def code(rung: str) -> list[str]:
    """A script's lines from its imports to what times it, without the marks of sections."""
    text = _text(rung)
    lines = text.splitlines()
    tree = ast.parse(text)
    first = tree.body[1].lineno - 1 if ast.get_docstring(tree) else 0
    last = next((n.lineno - 1 for n in tree.body if _times(n)), len(lines))
    kept = "\n".join(line for line in lines[first:last] if not _MARK.match(line)).rstrip()
    # Where a mark stood alone, its empty lines are one too many.
    return re.sub(r"\n{4,}", "\n\n\n", kept).split("\n")


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
