"""What a page says of itself, between two lines `---` at its top: the only list of pages there is.

    ---
    title: When does torch.compile pay?
    nav: torch.compile
    section: Techniques
    order: 203
    ---

Navigation, the tables of a section's pages, the table of techniques and the
pages that the browser tests open follow from these lines, so a new page is one new file. A page of
the curriculum says `day: 2` (or `week: 1`, `phase: 1`), and the outline tells the rest. A key that
is not known, a page without its place and two pages in one place are errors with `page.md:line`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any

import yaml

from anatomy.figures.curriculum import outline
from anatomy.figures.text import labs
from anatomy.record import signatures
from anatomy.record.showing import Showing
from anatomy.table.errors import AnatomyError, BadParameter, UnknownName

Page = tuple[str, str]  # source relative to docs/, and its Markdown
# The same lines that MkDocs takes for front matter.
_BLOCK = re.compile(r"---[ \t]*\n(?P<yaml>.*?\n)(?:---|\.\.\.)[ \t]*\n", re.DOTALL)


@dataclass(frozen=True)
class Technique:
    """One line in the table of techniques, `anatomy.page.techniques`."""

    name: str
    reads: tuple[str, ...]  # its recordings, as in `compilation.map(task=inference)`
    variants: tuple[str, ...]  # the ways of using it that count
    memory: str  # the column of bytes that tells its memory
    claim: str = ""  # on its speed; empty where no factor was promised
    control: str = ""  # what its time is held against, where not the recording's own control
    once: str = ""  # the variant whose first call is paid once


@dataclass(frozen=True)
class Front:
    """The front matter of one page."""

    title: str = ""  # of the browser's window
    description: str = ""  # one sentence for search engines
    hide: tuple[str, ...] = ()  # what the theme leaves out: `navigation`, `toc`
    nav: str = ""  # the page's name in the navigation; by default its title
    section: tuple[str, ...] | None = None  # from the outside; empty for one beside the sections
    several: bool = False  # whether it is in the menu only of a site of several machines
    order: int = 0  # its place among all pages; a section stands where the first of its pages does
    needs: tuple[str, ...] = ()  # what to know before, as the line under the first screen says it
    index: dict[str, str] | None = None  # column -> cell of its line in `[[index: SECTION]]`
    advice: dict[str, str] | None = None  # the same of its line in `[[advice: SECTION]]`
    techniques: tuple[Technique, ...] = ()
    # Of a page of the curriculum, what it is about: one of these has a number.
    phase: int = 0
    week: int = 0
    day: int = 0

    @property
    def name(self) -> str:
        """What the navigation calls the page."""
        return self.nav or self.title


Fronts = Mapping[str, Front]  # by the page's source relative to docs/


def read(page: str, text: str) -> Front:
    """The front matter of one page, empty where it has none; BadParameter says what is wrong."""
    block = _BLOCK.match(text)
    if not block:
        return Front()
    try:
        said = yaml.safe_load(block["yaml"]) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 1
        why = getattr(error, "problem", None) or "it can't be read"
        problem = f"the front matter is not YAML: {why}. Quote a text that holds a colon."
        raise BadParameter(f"{page}:{line}: {problem}") from None
    front = _record(Front, said, f"{page}:1: the front matter", lambda key: place(page, text, key))
    for kind in ("phase", "week", "day"):
        if number := getattr(front, kind):
            try:
                told = outline.place(kind, number)
            except BadParameter as error:
                raise BadParameter(
                    f"{place(page, text, kind)}: the front matter: {error}"
                ) from None
            front = replace(front, **{key: getattr(front, key) or told[key] for key in told})
    return front


def read_all(pages: Iterable[Page]) -> tuple[dict[str, Front], list[str]]:
    """Front matter by source, in the order of the pages, and all that is wrong with it."""
    found, wrong = {}, []
    for page, text in pages:
        try:
            found[page] = read(page, text)
        except BadParameter as error:
            wrong.append(str(error))
    return dict(sorted(found.items(), key=lambda each: (each[1].order, each[0]))), wrong


def in_folder(docs: Path) -> dict[str, Front]:
    """Front matter of all pages in a folder, in their order; AnatomyError if any is wrong."""
    found, wrong = read_all(pages_in(docs))
    if wrong:
        raise AnatomyError("\n".join(wrong))
    return found


def pages_in(docs: Path) -> Iterator[Page]:
    """All pages of a folder by name; raises as `page_of` does."""
    return (page_of(path, docs) for path in files_in(docs))


def files_in(docs: Path) -> list[Path]:
    """The files of all pages of a folder, labs among them."""
    return sorted([*docs.rglob("*.md"), *(docs / labs.FOLDER).glob(f"*{labs.ENDING}")])


def page_of(path: Path, docs: Path) -> Page:
    """A page by its file; AnatomyError if it can't be read."""
    try:
        name = path.resolve().relative_to(docs.resolve()).as_posix()
    except ValueError:
        name = path.name
    try:
        text = path.read_text(encoding="utf-8-sig")
        return name, labs.as_page(name, text) if labs.is_lab(name) else text
    except OSError as error:
        raise AnatomyError(f"The page {name} can't be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise AnatomyError(f"The page {name} is not UTF-8 text.") from None


def of_site(showing: Showing) -> Fronts:
    """Front matter of the pages of the site that is being built, else of this checkout's."""
    if showing.fronts is None:
        return in_folder(signatures.PACKAGE.parent / "docs")
    return showing.fronts


def place(page: str, text: str, key: str) -> str:
    """`page.md:line` of a key in the front matter; line 1 where it is not there."""
    block = _BLOCK.match(text)
    before, found, _ = f"\n{block['yaml'] if block else ''}".partition(f"\n{key}:")
    return f"{page}:{before.count(chr(10)) + 2 if found else 1}"


def _record(kind: type, said: Any, where: str, at: Callable[[str], str] | None = None) -> Any:
    """A dataclass of this module from a mapping; `where` begins what is said of a mistake."""
    if not isinstance(said, dict):
        raise BadParameter(f"{where} must be lines `key: value`.")
    known = {each.name: each for each in fields(kind)}
    values = {}
    for key, value in said.items():
        begin = f"{at(str(key))}: the front matter" if at else where
        if key not in known:
            raise BadParameter(f"{begin}: {UnknownName('key', key, known)}")
        try:
            values[key] = _READERS[key](value)
        except BadParameter as error:
            raise BadParameter(f"{begin}: {key} {error}") from None
    needed = (name for name, each in known.items() if each.default is MISSING)
    if lacks := [name for name in needed if name not in values]:
        raise BadParameter(f"{where} lacks {' and '.join(lacks)}.")
    return kind(**values)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise BadParameter(f"must be a text, and {value!r} is none: put it in quotes.")
    return value.strip()


def _markdown(value: Any) -> str:
    if "[[" in _text(value):
        raise BadParameter("holds a reference: figures belong on the page itself.")
    return _text(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise BadParameter("must be a list, such as [toc].")
    return tuple(map(_text, value))


def _path(value: Any) -> tuple[str, ...]:
    """`Benchmarks / Sync points` as its parts; `/` has none."""
    parts = tuple(part.strip() for part in _text(value).split("/"))
    if parts == ("", ""):
        return ()
    if not all(parts):
        problem = "has a part without a name. `/` alone is beside all sections."
        raise BadParameter(f"{value!r} {problem}")
    return parts


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadParameter(f"must be a whole number from 1, and is {value!r}.")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadParameter(f"must be true or false, and is {value!r}.")
    return value


def _cells(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        raise BadParameter("must be lines `column: cell`.")
    cells = {_text(column): _markdown(cell) for column, cell in value.items()}
    if any("|" in text or "\n" in text for text in (*cells, *cells.values())):
        raise BadParameter("has a cell with a bar or a second line, which a table can't hold.")
    return cells


def _techniques(value: Any) -> tuple[Technique, ...]:
    if not isinstance(value, list) or not value:
        raise BadParameter("must be a list of techniques.")
    return tuple(_record(Technique, each, f"number {n}") for n, each in enumerate(value, 1))


_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("title", "description", "nav", "name", "memory"), _text),
    **dict.fromkeys(("claim", "control", "once"), _text),
    **dict.fromkeys(("hide", "reads", "variants", "needs"), _texts),
    "section": _path,
    **dict.fromkeys(("order", "phase", "week", "day"), _number),
    "several": _flag,
    **dict.fromkeys(("index", "advice"), _cells),
    "techniques": _techniques,
}
