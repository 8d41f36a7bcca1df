"""Modules and files of chapters, found by their names: no machinery knows a chapter by its own."""

from functools import cache
from importlib import import_module
from pathlib import Path

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"
PACKAGE = "anatomy.chapters"


def modules(kind: str) -> list[str]:
    """Dotted names of the modules of one kind, in order of chapter and file. Of the kind `claims`
    is every file `claims.py` or `..._claims.py` of a chapter, and every file in its folder
    `claims/`."""
    places = [path.relative_to(CHAPTERS).with_suffix("") for path in CHAPTERS.rglob("*.py")]
    return [
        ".".join((PACKAGE, *place.parts))
        for place in sorted(places)
        if place.name == kind or place.name.endswith(f"_{kind}") or kind in place.parts[1:-1]
    ]


@cache  # claims ask a thousand times in a build; what is imported once stays so
def load(kind: str) -> None:
    """Import the modules of one kind, so that what they declare is there."""
    for name in modules(kind):
        import_module(name)


def files(name: str) -> list[Path]:
    """The files called `name` in the chapters, in order of chapter and folder."""
    return sorted(CHAPTERS.rglob(name))
