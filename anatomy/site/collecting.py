"""What pages show, found by running their blocks without rendering anything.

A build on a GPU host must know all recordings before it measures, and `check`, `record --plan` and
`record --prune` ask the same question. Nothing of the site's own packages is needed for it.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path

from anatomy.figures.text import fences, frontmatter, inline
from anatomy.figures.text.frontmatter import Page
from anatomy.record import signatures
from anatomy.record.showing import Asked, PageError, Showing, unique
from anatomy.site.drawing import Ahead, Heard
from anatomy.table.errors import AnatomyError


class PageProblems(AnatomyError):
    """What is wrong on the pages, one sentence with `page.md:line` for each, in `problems`."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self):
        # The default would rebuild the error from its joined message.
        return type(self), (self.problems,)


def collect(pages: Iterable[Path | Page] | None = None, *, docs: Path | None = None) -> list[Asked]:
    """All recordings that pages show, each once, as (experiment, parameters, `page.md:line`).

    Where blocks or references are wrong, PageProblems lists every one of them.

    Args:
        pages: Files, or (name, Markdown) pairs. Default: every .md file under `docs`.
        docs: Folder that the pages' names are relative to. Default: docs/ of the checkout.
    """
    docs = docs or signatures.PACKAGE.parent / "docs"
    everything = dict(frontmatter.pages_in(docs))
    fronts, wrong = frontmatter.read_all(everything.items())
    if pages is not None:
        read = (p if isinstance(p, tuple) else frontmatter.page_of(p, docs) for p in pages)
        everything = dict(read)
    asked, problems = on_pages(everything, fronts)
    if wrong := [*wrong, *problems]:
        raise PageProblems(wrong)
    return unique(each for found in asked.values() for each in found)


def on_pages(
    texts: Mapping[str, str], fronts: frontmatter.Fronts
) -> tuple[dict[str, list[Asked]], list[str]]:
    """What the blocks and references of pages show, by page, and what is wrong with them all."""
    asked, wrong = {}, []
    import_module("anatomy.page")  # once, not in each process
    with signatures.unchanging():
        signatures.experiments()
        ahead = Ahead(lambda name, begun: on_page(name, texts[name], 0, fronts, begun), list(texts))
        for name in texts:
            try:
                asked[name], problems = ahead[name]
                wrong += problems
            except PageError as error:
                wrong.append(str(error))
    return asked, wrong


def on_page(
    name: str,
    text: str,
    offset: int = 0,
    fronts: frontmatter.Fronts | None = None,
    begun: Heard = lambda place: None,
) -> tuple[list[Asked], list[str]]:
    """What one page's blocks and references show, repetitions included, and what is wrong with it.
    A block that fails for another reason than a wrong name is left to rendering, which fails in the
    same way with the data at hand. `begun` hears of each block."""
    showing = Showing(root=Path(), machine="", page=name, collecting=True, fronts=fronts)
    wrong = [f"{name}:{line + offset}: {text}" for line, text in fences.problems(text)]
    for fence in fences.find(text):
        if fence.executes and not fence.problems:
            begun(f"{name}:{fence.line + offset}")
            try:
                showing.run(fence.code, fence.line + offset, fence.options.get("session", ""))
            except PageError as error:
                why = error.__cause__
                if isinstance(why, AnatomyError | SyntaxError) or not isinstance(why, Exception):
                    wrong.append(str(error))
    wrong += inline.replace(showing, text, offset)[1]  # which notes what references show
    return showing.asked, wrong
