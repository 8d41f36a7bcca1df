"""What a script of the ladder changes from the rung before it, as a difference of the two files.

Which rung that is each script says itself, in its first lines: `Changes from rung 2: ...`. The
difference is made from the files when a page is built, so that it can't fall behind them.
"""

import ast
import re
from difflib import unified_diff
from functools import cache
from html import escape
from pathlib import Path

from anatomy import inline, signatures
from anatomy.errors import BadParameter, UnknownName
from anatomy.showing import current

FOLDER = Path("snippets") / "ladder"
CONTEXT = 2  # unchanged lines on either side of a change
TOP = "imports and constants"
_BEFORE = re.compile(r"Changes from rung (\d)")
_MARK = re.compile(r"^\s*# --8<-- \[(start|end):\w+\]\s*$")
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def changes(rung: str, *, since: str | None = None, caption: str | None = None) -> str:
    """The lines that a rung's script takes from the rung before it, and those that it adds.

    Its docstring, the marks of its sections and the part that times it are left out.

        changes("2_sdpa", caption="One call in the place of four lines.")

    Args:
        rung: Name of the script, without its ending.
        since: Name of the script that it is held against; by default the rung that it says.
        caption: What to see.

    Raises:
        UnknownName: There is no such script.
        BadParameter: The script names no rung before it, and neither does `since`.
    """
    showing = current()
    name = since or before(rung)
    if name is None:
        raise BadParameter(f"{rung} says of no rung that it changes it; give `since`.")
    lines = difference(name, rung)
    told = inline.render_text(showing, caption) if caption else None
    if showing.collecting:
        return ""
    gone, new = (sum(line.startswith(sign) for line in lines) for sign in "-+")
    counts = f"{_count(gone)} of <code>{escape(name)}.py</code> gone, {_count(new)} new"
    says = f'<span class="says">{told}</span> ' if told else ""
    return (
        f'<figure class="shown changes" data-search-exclude>{_coloured(lines)}'
        f"<figcaption>{says}{counts}</figcaption></figure>\n"
    )


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


def difference(old: str, new: str) -> list[str]:
    """Lines that two scripts share no more, with their signs, and what they stand in.

    Args:
        old: Name of one script.
        new: Name of the other.
    """
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
    last = next((n.lineno - 1 for n in tree.body if isinstance(n, ast.If)), len(lines))
    kept = [line for line in lines[first:last] if not _MARK.match(line)]
    while kept and not kept[-1].strip():
        kept.pop()
    # Where a mark stood alone, its empty lines are one too many.
    return [
        line
        for at, line in enumerate(kept)
        if line.strip() or at < 2 or kept[at - 1].strip() or kept[at - 2].strip()
    ]


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


def _count(lines: int) -> str:
    return f"{lines} line" if lines == 1 else f"{lines} lines"


def _coloured(lines: list[str]) -> str:
    """A difference as the site's other code is coloured; its signs say the same."""
    from pygments import highlight  # only a build of the site has it
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import DiffLexer

    how = HtmlFormatter(cssclass="language-diff highlight", wrapcode=True)
    return highlight("\n".join(lines) + "\n", DiffLexer(stripnl=False), how)
