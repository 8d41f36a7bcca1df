"""Google docstrings, read as far as the project writes them: a summary and the Args section."""

import re
from inspect import cleandoc
from textwrap import dedent

SECTION = re.compile(r"^(?:Args|Arguments):[ \t]*\n((?:[ \t]+.*\n|\n)*)", re.MULTILINE)
ENTRY = re.compile(r"^\*{0,2}(\w+)[ \t]*(?:\([^)]*\))?:", re.MULTILINE)


def summary(doc: str) -> str:
    """First paragraph of a docstring as one line."""
    return " ".join(cleandoc(doc).split("\n\n", 1)[0].split())


def arguments(doc: str) -> dict[str, str]:
    """Help of each argument in the Args section, by name, each as one line."""
    section = SECTION.search(f"{cleandoc(doc)}\n")
    _, *found = ENTRY.split(dedent(section[1])) if section else [""]
    pairs = zip(found[::2], found[1::2], strict=True)
    return {name: " ".join(text.split()) for name, text in pairs}
