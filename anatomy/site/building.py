"""A build of the site, step by step, for the hooks to call: no MkDocs and no torch in here.

`prepare` finds what the pages show and has it measured where that is to be done; `page` and
`block` render. The hooks hand over what MkDocs knows and raise what comes back.
"""

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from anatomy.claims import ledger
from anatomy.figures.text import fences, frontmatter, inline, listings
from anatomy.record import loading, recording, signatures
from anatomy.record.showing import PUBLISHED, Asked, Found, PageError, Showing, unique
from anatomy.site import collecting
from anatomy.table.errors import AnatomyError, BadParameter, Busy, RecordingError

MODES = ("auto", "replay", "remeasure")
LOCK = Path(".cache") / "anatomy" / "build.lock"
# Statuses of the recorder that end a build: another one measures, and Ctrl-C.
BUSY, INTERRUPTED = 5, 130
GRACE_S = 15.0  # for an interrupted recorder to end what it started

Here = dict[str, Any] | None


@dataclass
class Building:
    """One build."""

    root: Path  # of all recordings
    machine: str  # slug of the machine whose recordings are shown
    here: Here = None  # what this GPU host is, or None
    asked: dict[str, list[Asked]] = field(default_factory=dict)  # what the pages show, by page
    pages: Mapping[str, str] = field(default_factory=dict)  # page -> address relative to the site
    fronts: frontmatter.Fronts = field(default_factory=dict)  # in the pages' order
    navigation: list[dict] = field(default_factory=list)  # empty where mkdocs.yml has its own `nav`
    gaps: dict[str, None] = field(default_factory=dict)  # what is missing or not current, as told
    broken: list[str] = field(default_factory=list)  # what is wrong with files to be published
    _showing: Showing | None = None
    _blocks: dict[str, fences.Fence] = field(default_factory=dict)  # of the page begun last
    _ran: set[str] = field(default_factory=set)  # places of those
    _found: dict[tuple, Found] = field(default_factory=dict)

    def page(self, name: str, url: str, text: str, offset: int) -> tuple[str, list[str]]:
        """Begin a page: its Markdown with places of blocks and with figures, and what is wrong."""
        mine = {"page": name, "url": url, "shown": self.asked.get(name, [])}
        self._showing = self._shown(**mine, pages=self.pages, fronts=self.fronts)
        wrong = [f"{name}:{line + offset}: {problem}" for line, problem in fences.problems(text)]
        text = fences.with_places(text, name, offset)
        text, failed = inline.replace(self._showing, text, offset)
        self._blocks = {f.options.get("id", ""): f for f in fences.find(text) if f.executes}
        self._ran.clear()
        return text, wrong + failed

    def block(self, code: str, place: str, session: str = "") -> str:
        """Run one block of the page begun last; `place` is the id that `page` gave it. PageError
        where it fails, prints nothing, or prints where this project lies."""
        if place not in self._blocks:
            raise PageError(f"{self._showing.page}: a block that is printed can't be executed.")
        self._ran.add(place)
        printed = self._showing.run(code, int(place.rpartition(":")[2]), session)
        if not printed and not session and "source" not in self._blocks[place].options:
            raise PageError(
                f"{place}: the block prints nothing, so no figure stands there. Print what the "
                "function returns, or name a session for the blocks that use what it defines."
            )
        for folder in {str(signatures.PACKAGE.parent), os.getcwd(), str(Path.home()), sys.prefix}:
            if re.search(rf"(?<![\w./-]){re.escape(folder)}(?![\w.-])", unescape(printed)):
                raise PageError(f"{place}: the block prints a path of this machine, {folder}.")
        return printed

    def page_done(self, html: str) -> list[str]:
        """Remember what of the page was missing or not current; tell which blocks were not run."""
        left = [
            f"{place}: the block was not run: Markdown takes it for ordinary text here."
            for place in self._blocks
            if place not in self._ran or re.search(rf"{re.escape(place)}(\"|&quot;) idprefix", html)
        ]
        for found in self._showing.looked_up() if self._showing else ():
            if not found.freshness.current:
                gap = f"{found.name}: {found.freshness.state}. {found.freshness.reason}"
                self.gaps[f"{gap} Mend it: {found.command}"] = None
        return left

    def published(self) -> list[tuple[str, str]]:
        """The raw recordings, and the ledger if it has a page: address in the site, and content."""
        made = []
        for file in loading.files(self.root):
            try:
                made.append(("/".join((PUBLISHED, *file.parts[-3:])), loading.published(file)))
            except RecordingError as error:
                self.broken.append(str(error))
        if ledger.PAGE in self.pages:
            found = ledger.results(self._shown())
            texts = (ledger.as_csv(found), ledger.as_json(found))
            made += zip(ledger.DOWNLOADS, texts, strict=True)
        return made

    def _shown(self, **page: Any) -> Showing:
        return Showing(self.root, self.machine, self.here, found=self._found, **page)


def prepare(
    pages: Iterable[collecting.Page],
    *,
    addresses: Mapping[str, str],
    checkout: Path,
    shown_machine: str | None,
    here: Callable[[], Here],
    record: Callable[[list[Asked], Path, str], None],
    navigate: bool = False,
) -> Building:
    """Find what the pages show, measure it if that is to be done here, and be ready to render.

    Where pages are wrong, PageProblems is raised before anything is measured or written.

    Args:
        pages: Name and Markdown of every page, front matter included.
        addresses: Address, relative to the site, of every page by its name.
        checkout: Folder with the package, and with recordings/ unless ANATOMY_RECORDINGS is set.
        shown_machine: Machine to show where there is no GPU.
        here: Tells what this GPU host is, None without a GPU; asked only if it matters.
        record: Measures what is not current; see `run_recorder`.
        navigate: Whether the navigation is made from front matter, which then must be whole.
    """
    mode = os.environ.get("ANATOMY_MODE") or "auto"
    if mode not in MODES:
        raise BadParameter(f"ANATOMY_MODE={mode!r}: it must be one of {', '.join(MODES)}.")
    given = os.environ.get("ANATOMY_RECORDINGS")
    root = Path(given).absolute() if given else checkout / "recordings"
    asked, navigation, texts = {}, [], dict(pages)
    fronts, wrong = frontmatter.read_all(texts.items())
    if navigate and not wrong:
        navigation, wrong = listings.navigation(texts, fronts)
        wrong += listings.unlisted(texts, fronts)
    if wrong:  # what follows would only repeat it
        raise collecting.PageProblems(wrong)
    for name, text in texts.items():
        asked[name], problems = collecting.on_page(name, text, fronts=fronts)
        wrong += problems
    if wrong:
        raise collecting.PageProblems(wrong)
    this = here() if mode != "replay" else None
    everything = unique([each for found in asked.values() for each in found])
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
    return Building(root, machine, this, asked, addresses, fronts, navigation)


def run_recorder(asked: Sequence[Asked], root: Path, mode: str, checkout: Path) -> str:
    """Have one recorder measure what is not current, and say whether single experiments failed."""
    order = json.dumps({"shown": asked, "root": str(root), "mode": mode})
    path = os.pathsep.join(filter(None, (str(checkout), os.environ.get("PYTHONPATH"))))
    command, env = [sys.executable, "-m", "anatomy.record.recorder"], {"PYTHONPATH": path}
    how = {"stdin": subprocess.PIPE, "text": True, "cwd": checkout, "env": os.environ | env}
    recorder = subprocess.Popen(command, **how)
    try:
        recorder.communicate(order)
        status = recorder.returncode
    except KeyboardInterrupt:  # a terminal interrupts the recorder too; it ends its own process
        status = INTERRUPTED
        try:
            recorder.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            recorder.kill()
    if status == BUSY:
        raise Busy("Another recorder is measuring on this machine. Wait for it, or end it.")
    if status < 0 or status >= INTERRUPTED:
        raise AnatomyError("Measuring was interrupted. What was finished is kept; build again.")
    if status > 1:
        raise AnatomyError("The recorder could not begin; its message stands above.")
    return "Not everything could be measured; the pages show gaps there." if status else ""


def lock(project: Path) -> FileLock:
    """Keep other builds of the project in this folder out until the lock is released."""
    held = FileLock(project / LOCK)
    try:
        (project / LOCK).parent.mkdir(parents=True, exist_ok=True)
        held.acquire(timeout=0)
    except Timeout:
        raise Busy(
            "Another `mkdocs build` is at work in this checkout, and two would write the same "
            "files. Wait for it, or end it."
        ) from None
    except OSError as error:
        # Nobody can write to this checkout, so no two builds can meet in it.
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise AnatomyError(f"{LOCK.parent} can't be written: {error.strerror}.") from None
    return held


def forget_modules() -> None:
    """Have the package's code read anew, so that `mkdocs serve` follows what is edited in it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "anatomy"]:
        del sys.modules[name]
