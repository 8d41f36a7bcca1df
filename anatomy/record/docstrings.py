"""Google docstrings, read as far as the project writes them: a summary and the Args section."""

import re
from inspect import cleandoc

SECTION = re.compile(r"^([A-Z][A-Za-z ]*):\s*$")
ENTRY = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


def summary(doc: str) -> str:
    """First paragraph of a docstring as one line."""
    return " ".join(cleandoc(doc).split("\n\n", 1)[0].split())


def arguments(doc: str) -> dict[str, str]:
    """Help of each argument in the Args section, by name, continuation lines joined by spaces."""
    helps: dict[str, str] = {}
    name, inside, indent = None, False, None
    for line in cleandoc(doc).splitlines():
        if not line.strip():
            continue
        width = len(line) - len(line.lstrip())
        if width == 0:
            heading = SECTION.match(line)
            inside, name, indent = bool(heading and heading[1] in ("Args", "Arguments")), None, None
            continue
        if not inside:
            continue
        indent = width if indent is None else indent  # the first entry sets it
        entry = ENTRY.match(line.strip()) if width == indent else None
        if entry:
            name = entry[1].lstrip("*")
            helps[name] = entry[2].strip()
        elif name:
            helps[name] = f"{helps[name]} {line.strip()}".strip()
    return helps
