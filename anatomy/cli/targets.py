"""What `record PAGE|EXPERIMENT ...` asks for, and what the pages of this checkout show."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from anatomy.record import signatures
from anatomy.table.errors import AnatomyError, BadParameter, UnknownName

# Experiment, parameters, and `page.md:line` where it is shown (absent if asked for by name).
Call = tuple[Any, ...]


def wanted(targets: Sequence[str], package: Path | None = None) -> list[Call]:
    """The calls that pages, experiments, or one experiment with its options ask for. Of pages, by
    default of all, what they show but for what is measured on request alone; of an experiment, all
    calls that pages show, and without any the one with its defaults."""
    known = signatures.experiments(package)
    at = next((i for i, each in enumerate(targets) if each.startswith("--")), len(targets))
    names, options = targets[:at], targets[at:]
    if options:
        if len(names) != 1 or names[0] not in known:
            raise BadParameter(f"{' '.join(options)}: options belong to a single experiment.")
        signature = known[names[0]]
        flags = {each.name for each in signature.parameters if each.type is bool}
        return [(names[0], signature.bind(**_pairs(options, flags)))]
    shown = collected() if pages() or not names else []  # outside a checkout nothing is shown
    if not names:
        return [call for call in shown if not known[call[0]].on_request]
    calls: list[Call] = []
    for name in names:
        if name in known:
            mine = [call for call in shown if call[0] == name]
            calls += mine or [(name, known[name].bind())]
        else:
            of_page = collected([_page(name, known)])
            calls += [call for call in of_page if not known[call[0]].on_request]
    return calls


def collected(only: Sequence[str] | None = None) -> list[Call]:
    """The calls that pages, by default all of this checkout, show."""
    from anatomy.site.collecting import collect

    if only is None and not (only := pages()):
        raise AnatomyError(
            "There are no pages here that could show anything: this runs in a checkout of the "
            "project. Elsewhere name an experiment."
        )
    return [tuple(call) for call in collect([docs() / page for page in only])]


def pages() -> list[str]:
    """Pages of the checkout relative to docs/; none outside a checkout."""
    return sorted(page.relative_to(docs()).as_posix() for page in docs().rglob("*.md"))


def drafts() -> set[str]:
    """Pages that a published site leaves out, for they are not measured yet: mkdocs.yml's."""
    settings = docs().parent / "mkdocs.yml"
    # Not by a YAML parser: a GPU host that only measures has none.
    text = settings.read_text(encoding="utf-8") if settings.is_file() else ""
    named = re.search(r"^draft_docs: \|\n((?:  /.*\n)+)", text, re.M)
    return {line.removeprefix("  /") for line in named[1].splitlines()} if named else set()


def docs() -> Path:
    """The folder of the pages, which only a checkout has."""
    return signatures.PACKAGE.parent / "docs"


def _page(name: str, known: Sequence[str]) -> str:
    """The page that a target names: relative to docs/, or as a path from here."""
    for page in pages():
        if Path(name).as_posix() == page or Path(name).resolve() == (docs() / page).resolve():
            return page
    raise UnknownName("page or experiment", name, [*known, *pages()])


def _pairs(options: Sequence[str], flags: Collection[str]) -> dict[str, str]:
    """`--name value`, `--name=value`, and of flags `--name` and `--no-name`, as parameters."""
    pairs, rest = {}, list(options)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if not name.startswith("--"):
            raise BadParameter(f"{name!r} belongs to no option; write --name value.")
        name = name.removeprefix("--").replace("-", "_")
        if not equals:
            if rest and not rest[0].startswith("--"):
                value = rest.pop(0)
            elif name in flags or name.removeprefix("no_") in flags:
                value = "true" if name in flags else "false"
                name = name if name in flags else name.removeprefix("no_")
            else:
                dashed = name.replace("_", "-")
                raise BadParameter(f"--{dashed} needs a value: write --{dashed} VALUE.")
        pairs[name] = value
    return pairs
