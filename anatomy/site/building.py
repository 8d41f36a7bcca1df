"""A build of the site, step by step, for the hooks to call: no MkDocs and no torch in here.

`prepare` finds what the pages show and has it measured where that is to be done; `page` and
`block` render. The hooks hand over what MkDocs knows and raise what comes back.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

from anatomy.claims import ledger
from anatomy.figures.charts import strips
from anatomy.figures.text import fences, frontmatter, glossary, inline, listings, spans
from anatomy.record import loading, recording, signatures
from anatomy.record.showing import PUBLISHED, Asked, Found, PageError, Showing, unique
from anatomy.site import cards, collecting, editions, lessons, reading, ways
from anatomy.site.drawing import Ahead, Heard
from anatomy.site.editions import Edition
from anatomy.site.kept import Kept
from anatomy.table.errors import AnatomyError, BadParameter, RecordingError

MODES = ("auto", "replay", "remeasure")

Here = dict[str, Any] | None
Text = tuple[str, int]  # of a page, and the lines of front matter above it
# What neither Markdown nor the search has to read: a figure without targets of links, and else its
# pictures. Then what stands in its place until the page is published.
_UNREAD = re.compile(r"<figure [^<>]*data-search-exclude>.*?</figure>|<svg .*?</svg>", re.DOTALL)
_ID = re.compile(r'\sid="')
_PICTURE = re.compile(r"<svg .*?</svg>", re.DOTALL)
# A page's heading and the lead under it, which its badge follows.
_HEAD = re.compile(r"^# [^\n]+(?:\n\n(?:[^\n]+\n)+?\{ \.lead \})?$", re.MULTILINE)
_PLACE = re.compile(r"<!--picture (\d+)-->")


@dataclass(frozen=True)
class Drawn:
    """A page with all that its references and blocks came to."""

    text: str  # Markdown, with places of blocks and with figures
    printed: dict[str, str]  # what each of its blocks printed, by place, without its pictures
    pictures: list[str]  # left out there, so that neither Markdown nor the search reads them
    wrong: list[str]  # a sentence with `page.md:line` for each thing
    gaps: list[str]  # what is missing or not current, as told


@dataclass
class Building:
    """One build."""

    root: Path  # of all recordings
    machine: str  # slug of the one that is shown at the root of the site
    here: Here = None  # what this GPU host is, or None
    asked: dict[str, list[Asked]] = field(default_factory=dict)  # what the pages show, by page
    pages: Mapping[str, str] = field(default_factory=dict)  # page -> address relative to the site
    fronts: frontmatter.Fronts = field(default_factory=dict)  # in the pages' order
    navigation: list[dict] = field(default_factory=list)  # empty where mkdocs.yml has its own `nav`
    gaps: dict[str, None] = field(default_factory=dict)  # what is missing or not current, as told
    broken: list[str] = field(default_factory=list)  # what is wrong with files to be published
    texts: Mapping[str, str] = field(default_factory=dict)  # of all pages, front matter included
    unpublished: set[str] = field(default_factory=set)  # pages that the site has not, or not so
    editions: tuple[Edition, ...] = ()  # the root's, and those whose pages begin with their folder
    stand_in: tuple[str, ...] = ()  # slugs: their figures are shown where a machine lacks its own
    kept: Kept | None = None  # what earlier builds came to; None where a GPU host may measure
    _sources: signatures.Sources = field(
        default_factory=lambda: signatures.sources(signatures.PACKAGE)
    )
    _known: dict[tuple, Any] = field(default_factory=dict)  # what pages share
    _published: list[tuple[str, str]] = field(default_factory=list)
    _texts: Mapping[str, Text] = field(default_factory=dict)  # of the pages drawn ahead
    _drawn: dict[str, Drawn] = field(default_factory=dict)  # of these, those that are there
    _ahead: Ahead | None = None
    _page: str = ""  # the one begun last
    _printed: dict[str, str] = field(default_factory=dict)  # by its blocks
    _pictures: dict[str, list[str]] = field(default_factory=dict)  # by page
    _ran: set[str] = field(default_factory=set)  # places of those that Markdown came to

    def __post_init__(self) -> None:
        self.editions = self.editions or (Edition(self.machine, self.machine),)

    def edition(self, page: str) -> tuple[Edition, str]:
        """The edition that a page belongs to, and its name there."""
        return editions.among(self.editions, page)

    def addresses(self, page: str) -> list[tuple[Edition, str]]:
        """Each edition with the address of a page in it; the page may be of any of them."""
        there = self.pages[self.edition(page)[1]]
        return [(each, each.inside(there)) for each in self.editions]

    def draw(self, page: str, text: str, offset: int, begun: Heard = lambda place: None) -> Drawn:
        """Run a page's references and blocks, in their order; `begun` hears of each block."""
        edition, name = self.edition(page)
        with signatures.unchanging(self._sources), loading.unchanging(self._known):
            pages = {each: edition.inside(address) for each, address in self.pages.items()}
            showing = self._shown(
                edition,
                page=name,
                url=pages.get(name, ""),
                shown=self.asked.get(name, []),
                pages=pages,
                fronts=self.fronts,
            )
            wrong = [f"{name}:{line + offset}: {told}" for line, told in fences.problems(text)]
            text = glossary.with_anchors(text) if name == glossary.PAGE else text
            text = fences.with_places(text, name, offset)
            text, failed = inline.replace(showing, text, offset)
            wrong += failed
            printed, pictures, marked = {}, [], set()

            def put_by(found: re.Match) -> str:
                whole = found[0].startswith("<figure")
                if whole and _ID.search(_PICTURE.sub("", found[0])):  # may be a link's target
                    return _PICTURE.sub(put_by, found[0])
                pictures.append(found[0])
                return f"<!--picture {len(pictures) - 1}-->"

            for fence in fences.find(text):
                if fence.executes and (place := fence.options.get("id")):
                    begun(place)
                    try:
                        html = self._run(showing, fence, place)
                        marked |= {place} if spans.STALE in html else set()
                        printed[place] = _UNREAD.sub(put_by, html)
                    except AnatomyError as error:
                        wrong.append(str(error))
                        printed[place] = ""
            if sources := strips.sources(showing):  # last: it is of all that came before
                pictures.append(sources)
                opening = f'<details class="sources" id="{strips.SOURCES}" data-search-exclude>'
                text += f"\n\n{opening}<!--picture {len(pictures) - 1}--></details>\n"
            if aged := strips.aged(showing):
                pictures.append(aged)
                opening = f'<div class="notice badge" id="{strips.AGED}" data-search-exclude>'
                badge = f"{opening}<!--picture {len(pictures) - 1}--></div>"
                there = marked if spans.STALE not in text else None
                mostly = strips.mostly_aged(showing)
                after = None if mostly else fences.first_figure(text, printed, there or None)
                if after is None:
                    text = _HEAD.sub(lambda head: f"{head[0]}\n\n{badge}\n", text, count=1)
                else:
                    lines = text.split("\n")
                    text = "\n".join([*lines[:after], "", badge, "", *lines[after:]])
        on = f" on {edition.machine}" if edition.folder else ""
        told = [_gap(each, on) for each in showing.looked_up()]
        return Drawn(text, printed, pictures, wrong, list(filter(None, told)))

    def draw_ahead(self, texts: Mapping[str, Text]) -> None:
        """Begin to draw these pages, in this order."""
        self._texts = texts
        self._drawn = self.kept.known(texts, self._behind()) if self.kept else {}
        names = [name for name in texts if name not in self._drawn]
        if names and not self._before():
            self._ledger()  # of all recordings: once, not in each process
        self._ahead = Ahead(lambda name, begun: self.draw(name, *texts[name], begun), names)

    def page(self, page: str, text: str, offset: int) -> tuple[str, list[str]]:
        """Begin a page: its Markdown with places of blocks and with figures, and what is wrong."""
        if self._ahead and self._texts.get(page) == (text, offset):
            drawn = self._drawn[page] = self._drawn.get(page) or self._ahead[page]
        else:
            drawn = self.draw(page, text, offset)
        self._page, self._printed = page, drawn.printed
        self._pictures[page] = drawn.pictures
        self._ran.clear()
        self.gaps |= dict.fromkeys(drawn.gaps)
        return drawn.text, drawn.wrong

    def block(self, place: str) -> str:
        """What a block of the page begun last printed; `place` is the id that `draw` gave it."""
        if place not in self._printed:
            raise PageError(f"{self._page}: a block that is printed can't be executed.")
        self._ran.add(place)
        return self._printed[place]

    def page_done(self, html: str) -> list[str]:
        """Which blocks of the page begun last are text in it, and what is wrong with its boxes."""
        name = self.edition(self._page)[1]
        front, text = self.fronts.get(name), self.texts.get(name, "")
        boxes = lessons.problems(html, front.day) if front and front.day else ()
        return [
            f"{name}:{text.partition(place)[0].count(chr(10)) + 1 if place in text else 1}: {wrong}"
            for place, wrong in boxes
        ] + [
            f"{place}: the block was not run: Markdown takes it for ordinary text here."
            for place in self._printed
            if place not in self._ran or re.search(rf"{re.escape(place)}(\"|&quot;) idprefix", html)
        ]

    def finished(self, page: str, html: str) -> str:
        """A page's HTML with the words of the field explained where a section first uses them, its
        ways to write one thing in sight, and with what it takes to read it."""
        name, html = self.edition(page)[1], cards.named(ways.in_sight(html))
        if name != glossary.PAGE:
            html = glossary.of(self.texts.get(glossary.PAGE, "")).explained(html)
        front = self.fronts.get(name)
        if front and front.day:
            where = {"page": name, "url": self.pages[name], "pages": self.pages}
            html = lessons.framed(
                html, front.day, Showing(self.root, self.machine, **where, fronts=self.fronts)
            )
        whole = self.with_pictures(page, html)
        return reading.with_line(html, front.needs if front else (), whole)

    def with_pictures(self, page: str, html: str) -> str:
        """A page as it is published: its pictures in their places."""
        pictures = self._pictures.get(page, [])
        return _PLACE.sub(lambda at: "".join(pictures[int(at[1]) :][:1]), html)

    def keep(self) -> None:
        """Have the next build know what this one, in which nothing was wrong, came to."""
        if self.kept:
            self.kept.keep(self._drawn, self._texts, self._behind())
            self.kept.keep({PUBLISHED: self.published()}, {PUBLISHED: ""}, self._behind())
            self.kept.write()

    def _behind(self) -> tuple:
        """What all pages are made of, beside the files that `Kept` reads."""
        return self.machine, self.editions, self.stand_in, self.pages, self.fronts

    def stop(self) -> None:
        """End what is still drawn ahead."""
        if self._ahead:
            self._ahead.stop()

    def _run(self, showing: Showing, fence: fences.Fence, place: str) -> str:
        """What a block prints. PageError where it fails, prints nothing, or prints where this
        project lies."""
        session = fence.options.get("session", "")
        printed = showing.run(fence.code, int(place.rpartition(":")[2]), session)
        if not printed and not session and "source" not in fence.options:
            raise PageError(
                f"{place}: the block prints nothing, so no figure stands there. Print what the "
                "function returns, or name a session for the blocks that use what it defines."
            )
        text = unescape(printed)
        for folder in {str(signatures.PACKAGE.parent), os.getcwd(), str(Path.home()), sys.prefix}:
            path = rf"(?<![\w./-]){re.escape(folder)}(?![\w.-])"
            if folder in text and re.search(path, text):
                raise PageError(f"{place}: the block prints a path of this machine, {folder}.")
        return printed

    def published(self) -> list[tuple[str, str]]:
        """The raw recordings, and the ledger if it has a page: address in the site, and content."""
        if made := self._before():
            return made
        with signatures.unchanging(self._sources), loading.unchanging(self._known):
            for file in loading.files(self.root):
                try:
                    made.append(("/".join((PUBLISHED, *file.parts[-3:])), loading.published(file)))
                except RecordingError as error:
                    self.broken.append(str(error))
        if ledger.PAGE in self.pages:
            found = self._ledger()
            texts = (ledger.as_csv(found), ledger.as_json(found))
            made.extend(zip(ledger.DOWNLOADS, texts, strict=True))
        return made

    def _before(self) -> list[tuple[str, str]]:
        """What `published` came to before; empty where it did not."""
        if self.kept and not self._published:
            self._published = self.kept.known({PUBLISHED: ""}, self._behind()).get(PUBLISHED, [])
        return self._published

    def _ledger(self) -> list[ledger.Result]:
        """The verdicts, if there is a page of them."""
        if ledger.PAGE not in self.pages:
            return []
        with signatures.unchanging(self._sources), loading.unchanging(self._known):
            return ledger.results(self._shown(self.editions[0]))

    def _shown(self, edition: Edition, **page: Any) -> Showing:
        here = self.here if edition == self.editions[0] else None
        there = tuple(slug for slug in self.stand_in if slug != edition.machine)
        return Showing(self.root, edition.machine, here, there, known=self._known, **page)


def _gap(found: Found, on: str) -> str:
    """What is told of a recording that is missing or not current `on` a machine; else nothing."""
    mine = found.instead_of or found
    if mine.freshness.current:
        return ""
    state = f"{found.name}: {mine.freshness.state}{on}. {mine.freshness.reason}"
    return f"{state} Mend it: {found.command}"


def prepare(
    pages: Iterable[collecting.Page],
    *,
    addresses: Mapping[str, str],
    checkout: Path,
    project: Path | None = None,
    shown_machine: str | None,
    published: Sequence[str] = (),
    several: bool = True,
    here: Callable[[], Here],
    record: Callable[[list[Asked], Path, str], None],
    navigate: bool = False,
    before: Building | None = None,
) -> Building:
    """Find what the pages show, measure it if that is to be done here, and be ready to render.

    Where pages are wrong, PageProblems is raised before anything is measured or written.

    Args:
        pages: Name and Markdown of every page, front matter included.
        addresses: Address, relative to the site, of every page by its name.
        checkout: Folder with the package, and with recordings/ unless ANATOMY_RECORDINGS is set.
        project: Folder with mkdocs.yml, by default the same; what was drawn is kept there.
        shown_machine: Machine to show where there is no GPU.
        published: Machines that have an edition where they have recordings, and whose figures
            stand, under their names, where the one shown lacks its own; in this order.
        several: Whether they have editions; a preview shows the first machine's pages alone.
        here: Tells what this GPU host is, None without a GPU; asked only if it matters.
        record: Measures what is not current; see `processes.run_recorder`.
        navigate: Whether the navigation is made from front matter, which then must be whole.
        before: An earlier build since which nothing but pages was edited.
    """
    mode = os.environ.get("ANATOMY_MODE") or "auto"
    if mode not in MODES:
        raise BadParameter(f"ANATOMY_MODE={mode!r}: it must be one of {', '.join(MODES)}.")
    given = os.environ.get("ANATOMY_RECORDINGS")
    root = Path(given).absolute() if given else checkout / "recordings"
    navigation: list[dict] = []
    texts = dict(pages)
    fronts, wrong = frontmatter.read_all(texts.items())
    if navigate and not wrong:
        _, wrong = listings.navigation(texts, fronts)
        wrong += listings.unlisted(texts, fronts)
    if wrong:  # what follows would only repeat it
        raise collecting.PageProblems(wrong)
    if before and fronts == before.fronts:
        edited = {page: text for page, text in texts.items() if text != before.texts.get(page)}
    else:
        edited, before = texts, None
    this = here() if mode != "replay" else None
    kept = Kept(project or checkout, checkout, root) if this is None else None
    known = kept.known(edited, fronts) if kept else {}
    asked, wrong = collecting.on_pages({p: edited[p] for p in edited if p not in known}, fronts)
    if wrong:
        raise collecting.PageProblems(wrong)
    if kept:
        kept.keep(asked, edited, fronts)
    asked = (before.asked if before else {}) | known | asked
    asked = {page: asked.get(page, []) for page in texts}
    in_order = dict.fromkeys((*fronts, *asked))  # what a reader comes to first is measured first
    everything = unique([each for page in in_order for each in asked.get(page, [])])
    if mode == "remeasure" and this is None:
        raise AnatomyError(
            "ANATOMY_MODE=remeasure measures, and there is no GPU here that PyTorch would see. "
            "Use replay, which shows what is recorded, or run it on the GPU host."
        )
    if this is not None and everything:
        record(everything, root, mode)
    if given and everything and not os.path.isdir(root):
        problem = "there is no such folder. Name the folder of recordings."
        raise RecordingError(f"ANATOMY_RECORDINGS={given}: {problem}")
    machine = os.environ.get("ANATOMY_MACHINE") or (this["slug"] if this else shown_machine)
    if not machine:
        raise AnatomyError(
            "Nothing says which machine's recordings to show. Name it in ANATOMY_MACHINE, such "
            "as nvidia-h200, or as extra.machine in mkdocs.yml."
        )
    if this is None or machine != this["slug"]:
        recording.known_machine(root, machine)
    published = tuple(dict.fromkeys(filter(None, (shown_machine, *published))))
    wanted = editions.of_site(root, machine, published)
    shown = {"editions": wanted if several else wanted[:1], "stand_in": published}
    if navigate:  # some pages are in the menu only where there are several machines
        navigation = listings.navigation(texts, fronts, len(shown["editions"]))[0]
    site = asked, addresses, fronts, navigation
    building = Building(root, machine, this, *site, texts=texts, **shown)
    building.unpublished, building.kept = set(edited), kept
    if before:
        building.unpublished |= before.unpublished & set(texts)
        if this is None:  # and nothing was measured
            building._known, building._published = before._known, before._published
            building.broken = before.broken
    return building


def forget_modules() -> None:
    """Have the package's code read anew, so that `mkdocs serve` follows what is edited in it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "anatomy"]:
        del sys.modules[name]
