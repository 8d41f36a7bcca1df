"""What the functions that pages call know without being told: page and line, machine, and whether
the page is rendered or only asked what it will show. Its blocks are run here, for both."""

import io
import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from anatomy.judge import limits
from anatomy.record import failures, recording, signatures
from anatomy.record.bounded import bounded, in_words, line_of
from anatomy.record.provenance.freshness import Freshness, freshness
from anatomy.table.errors import AnatomyError, UnknownName

# Folder of the built site that holds the raw files, laid out as the folder of recordings.
PUBLISHED = "recordings"
T = TypeVar("T")


class PageError(AnatomyError):
    """Something on a page is wrong; the message begins with `page.md:line`."""


class Asked(NamedTuple):
    """One recording that a page shows: experiment, all its parameters, and `page.md:line`."""

    name: str
    params: dict[str, Any]
    place: str


@dataclass(frozen=True)
class Found:
    """A recording that a page asked for, None where it is missing, and how that stands."""

    name: str
    params: dict[str, Any]
    recording: recording.Recording | None
    freshness: Freshness
    failure: failures.Failure | None = None  # why the code as it is could not measure it
    # Where the recording is a published machine's: how it stands on the machine that is shown.
    instead_of: "Found | None" = None

    @property
    def lacking(self) -> bool:
        """Whether the machine that is shown has no such recording."""
        return (self.instead_of or self).recording is None

    @property
    def on_cpu(self) -> bool:
        """Whether it measures a CPU; no ceilings are known of one."""
        return recording.on_cpu(self.params)

    @property
    def command(self) -> str:
        """The command that makes the recording, or makes it anew."""
        return record_command(self.name, self.params)


@dataclass
class Showing:
    """One page (or none, in a plain Python session) and the recordings it draws on."""

    root: Path  # of all recordings
    machine: str  # slug of the one whose recordings are shown
    here: dict[str, Any] | None = None  # this GPU host, for freshness
    published: tuple[str, ...] = ()  # slugs of those whose figures stand where it lacks its own
    page: str = ""  # source relative to docs/, such as `benchmarks/summary.md`
    url: str = ""  # address relative to the site, such as `benchmarks/summary/`
    line: int = 0  # where the block or reference being rendered starts
    collecting: bool = False  # functions only note what they would show
    asked: list[Asked] = field(default_factory=list)  # what has been noted
    shown: list[Asked] = field(default_factory=list)  # all of it, known before rendering
    pages: Mapping[str, str] = field(default_factory=dict)  # address of every page by its source
    fronts: Mapping[str, Any] | None = None  # front matter by page, in order; None outside a build
    drafts: Mapping[str, Any] = field(default_factory=dict)  # that of pages left out of this build
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)  # variables of blocks
    _used: Counter = field(default_factory=Counter)
    known: dict[tuple, Any] = field(default_factory=dict)  # by `once`, for all pages of a build
    said_once: set[str] = field(default_factory=set)  # commands that mend, and what a word means
    borrowing: str = ""  # slug of a published machine whose figures stand in for all; see `rowwise`
    _looked_up: dict[tuple, Found] = field(default_factory=dict)
    _cited: dict[Path, tuple[str, Found]] = field(default_factory=dict)  # by file, with its id

    @property
    def place(self) -> str:
        """`page.md:line` of what is being rendered."""
        return f"{self.page}:{self.line}" if self.page else "here"

    def find(self, name: str, /, **params: Any) -> Found:
        """The recording of one call, of the shown machine or else of the first published one that
        has it; while collecting, it is only noted. A call on a CPU has it from a CPU: this host's
        where a GPU host builds and has one, else the first that has. Raises what `recording.find`
        does."""
        return self.find_together([(name, params)])[0]

    def find_together(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Found]:
        """As `find`, of calls whose figures are held against each other: all that GPUs made are of
        one machine, the first that has most of them."""
        wanted = [(name, _signature(name).bind(**params)) for name, params in calls]
        self.asked += [Asked(*call, self.place) for call in wanted]
        if self.collecting:
            noted = Freshness("missing", "Only noted so far.")
            return [Found(*call, None, noted) for call in wanted]
        mine = best = [self._on(self.machine, *call) for call in wanted]
        if self.borrowing:
            best = [self._on(self.borrowing, *call) for call in wanted]
        for slug in () if self.borrowing else self.published:
            if not any(each.lacking and not each.on_cpu for each in best):
                break
            there = [self._on(slug, *call) for call in wanted]
            if _count(there) > _count(best):
                best = there
        if best is not mine:
            pairs = zip(best, mine, strict=True)
            best = [own if own.on_cpu else replace(it, instead_of=own) for it, own in pairs]
        for call, each in zip(wanted, best, strict=True):
            self._note(call, each)
        return best

    def _note(self, call: tuple[str, dict[str, Any]], found: Found) -> None:
        self._looked_up[_key(*call), found.recording and found.recording.machine] = found

    def _on(self, machine: str, name: str, wanted: dict[str, Any]) -> Found:
        here = self.here if machine == self.machine else None

        def read() -> Found:
            failure = None
            if recording.on_cpu(wanted):
                cpu = (here or {}).get("cpu")
                there = recording.find_on_cpu(self.root, cpu, name, **wanted)
                fresh = freshness(there)
            else:
                there = recording.find(self.root, machine, name, **wanted)
                fresh = freshness(there, here)
                if not fresh.current:
                    failure = failures.find(self.root, machine, name, **wanted)
            if failure and there is None:
                fresh = replace(fresh, reason=f"It could not be measured: {failure.reason}")
            return Found(name, wanted, there, fresh, failure)

        # An edition of another machine has nothing of this host.
        return self.once((machine, *_key(name, wanted), *(["here"] if here else [])), read)

    def has(self, name: str, params: Mapping[str, Any]) -> bool:
        """Whether the GPU that is shown has a recording itself."""
        there = self._on(self.borrowing or self.machine, name, _signature(name).bind(**params))
        return not there.on_cpu and not there.lacking

    def rowwise(self, draw: Callable[[], T]) -> T:
        """What `draw` returns. Where it names a row that the recordings of the machine shown lack,
        as rows that are as large as a cache do, all its figures are of the first published machine
        that has the row; where none has, its own UnknownName is raised."""
        if self.borrowing or self.collecting:
            return draw()
        before = dict(self._looked_up)
        try:
            return draw()
        except UnknownName:
            self._looked_up = before  # what lacks the row is no source
            for slug in self.published:
                with suppress(UnknownName), self._borrowing(slug):
                    return draw()
            raise

    def of_one_machine(self, draw: Callable[[], T]) -> T:
        """What `draw` returns: figures that are read together, as those of one paragraph. Where
        some are the shown machine's and some another's, all are of the first published machine
        that lacks none of them, for a sentence would else compare two machines. Where there is
        none, each is of the machine that has it."""
        if self.borrowing or self.collecting:
            return draw()
        before, self._looked_up = self._looked_up, {}
        try:
            drawn, seen = draw(), self.looked_up()
            borrowed = any(each.instead_of for each in seen)
            mixed = borrowed and not all(each.instead_of or each.on_cpu for each in seen)
            of_one = (self._all_of(slug, draw) for slug in self.published if mixed)
            return next((each for each in of_one if each is not None), drawn)
        finally:
            self._looked_up = before | self._looked_up

    def beside(self, found: Iterable[Found], draw: Callable[[], T]) -> T:
        """What `draw` returns, such as a caption, of the machine that these figures are of."""
        there = {each.recording.machine for each in found if each.recording and not each.on_cpu}
        slug = there.pop() if len(there) == 1 else self.machine
        if slug == self.machine or self.borrowing or self.collecting:
            return draw()
        before, again = self._looked_up, self._all_of(slug, draw)
        self._looked_up = before | self._looked_up
        return draw() if again is None else again

    def _all_of(self, slug: str, draw: Callable[[], T]) -> T | None:
        """What `draw` returns of one published machine; None where that lacks some of it."""
        before, self._looked_up = self._looked_up, {}
        with suppress(Exception), self._borrowing(slug):  # told where the one shown has it
            drawn = draw()
            if all(each.recording for each in self.looked_up()):
                return drawn
        self._looked_up = before
        return None

    @contextmanager
    def _borrowing(self, slug: str) -> Iterator[None]:
        self.borrowing = slug
        try:
            yield
        finally:
            self.borrowing = ""

    def on(self, slug: str) -> "Showing":
        """The same page with the recordings of one machine alone and nothing in place of others;
        this host says nothing of another machine's."""
        alone = replace(self, published=(), borrowing="")
        if slug == self.machine:
            return alone
        return replace(alone, machine=slug, here=None, asked=[], _looked_up={})

    def cite(self, found: Found) -> str:
        """The id, on this page, of the one place that says all about a recording."""
        path = found.recording.path
        if path not in self._cited:
            name = re.sub(r"[^a-z0-9]+", "-", found.name.lower())
            self._cited[path] = self.unique(f"from-{name}"), found
        return self._cited[path][0]

    def cited(self) -> list[tuple[str, Found]]:
        """All recordings behind the page so far, each once with its id: those of its figures, then
        those that references, verdicts and ceilings come from."""
        for each in self.looked_up():
            if each.recording is not None:
                self.cite(each)
        return list(self._cited.values())

    def once(self, key: tuple, make: Callable[[], T]) -> T:
        """What `make` returned when this key was asked for first in this build."""
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def looked_up(self) -> list[Found]:
        """The recordings that this page looked up so far, each once."""
        return list(self._looked_up.values())

    def ceilings_of(self, found: Found) -> limits.Ceilings | None:
        """What shares of a recording's rows are of: the ceilings of its machine; None of a CPU's,
        and while collecting. Whoever asks shows them, so their recording is noted as the page's."""
        if self.collecting or found.on_cpu:
            self.asked.append(Asked(*_limits(), self.place))
            return None
        slug = found.recording.machine if found.recording else self.machine
        mine = there = self._on(self.machine, *_limits())
        if slug != self.machine:
            there = replace(self._on(slug, *_limits()), instead_of=mine)
        self._note(_limits(), there if there.recording else mine)
        return self.once(("ceilings", slug), lambda: recording.ceilings(self.root, slug))

    @property
    def ceilings(self) -> limits.Ceilings | None:
        """The ceilings that are shown themselves; None while collecting."""
        return self.ceilings_of(self.find(limits.EXPERIMENT))

    def unique(self, name: str) -> str:
        """`name`, or `name-2` and so on where this page has used it for another element."""
        self._used[name] += 1
        return name if self._used[name] == 1 else f"{name}-{self._used[name]}"

    def raw_link(self, found: recording.Recording) -> str:
        """Address of a recording's file, relative to the page."""
        return self._relative(posixpath.join(PUBLISHED, *found.path.parts[-3:]))

    def page_link(self, target: str) -> str:
        """Address of another page, relative to this one, for a target such as `other.md#part`;
        UnknownName where there is no such page."""
        source, _, part = target.partition("#")
        source = posixpath.normpath(posixpath.join(posixpath.dirname(self.page), source))
        if not self.pages:  # in a plain Python session, or while collecting
            return target
        if source not in self.pages:
            raise UnknownName("page", source, self.pages)
        address = self.pages[source]
        slash = "/" if address.endswith("/") else ""
        return self._relative(address) + slash + (f"#{part}" if part else "")

    def link_to(self, page: str) -> str:
        """Address of a page that is named relative to docs/, from wherever this one is."""
        return self.page_link(posixpath.relpath(page, posixpath.dirname(self.page) or "."))

    def _relative(self, inside: str) -> str:
        return posixpath.relpath(inside or ".", posixpath.dirname(self.url) or ".")

    def run(self, code: str, line: int, session: str = "") -> str:
        """Run one block of the page, whose fence opens at `line`, and return what it printed;
        blocks of one `session` share their variables. PageError where it fails."""
        self.line = line
        filename = f"<{self.page}:{line}>"
        names = self.sessions.setdefault(session, {}) if session else {}
        printed = io.StringIO()

        def execute() -> None:
            printed.seek(0)
            printed.truncate()
            exec(compile(code, filename, "exec"), names)

        # Only the block's own print is caught: what a package prints belongs to the build's log.
        names |= {"__name__": "__page__", "print": partial(print, file=printed)}
        try:
            with using(self), bounded():
                self.rowwise(execute)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            at = line + line_of(error, filename)
            raise PageError(f"{self.page}:{at}: {in_words(error, 'the block')}") from error
        return printed.getvalue()


def _key(name: str, wanted: Mapping[str, Any]) -> tuple:
    return name, *sorted(wanted.items())


def _count(found: Iterable[Found]) -> int:
    return sum(not each.lacking and not each.on_cpu for each in found)


_current: ContextVar[Showing | None] = ContextVar("anatomy_showing", default=None)
of_build = _current.get  # what is being shown; None outside of a build


def current() -> Showing:
    """What is being shown; outside of a build, the checkout's recordings of its site's machine."""
    if showing := _current.get():
        return showing
    root = recording.default_root()
    return Showing(root=root, machine=recording.known_machine(root, shown_machine()))


@contextmanager
def using(showing: Showing) -> Iterator[Showing]:
    """Have the functions of `anatomy.page` work for `showing`."""
    token = _current.set(showing)
    try:
        yield showing
    finally:
        _current.reset(token)


def shown_machine(checkout: Path | None = None) -> str:
    """Slug of the machine whose recordings are shown: ANATOMY_MACHINE, else mkdocs.yml's."""
    if given := os.environ.get("ANATOMY_MACHINE"):
        return given
    settings = (checkout or signatures.PACKAGE.parent) / "mkdocs.yml"
    # Not by a YAML parser: a GPU host that only measures has none.
    text = settings.read_text(encoding="utf-8") if settings.is_file() else ""
    if extra := re.search(r"^extra:\n(?:[ \t]+.*\n|\n)*?[ \t]+machine:[ \t]*([\w.-]+)", text, re.M):
        return extra[1]
    raise AnatomyError(
        "Nothing says which machine's recordings to show. Name it in ANATOMY_MACHINE, such as "
        "nvidia-h200, or as extra.machine in mkdocs.yml."
    )


def record_command(name: str, params: dict[str, Any]) -> str:
    """`pytorch-gpu-anatomy record ...` for one recording, with the parameters worth saying."""
    return f"pytorch-gpu-anatomy record {_signature(name).words(params)}"


def _limits() -> tuple[str, dict[str, Any]]:
    return limits.EXPERIMENT, _signature(limits.EXPERIMENT).bind()


@cache
def _signature(name: str) -> signatures.Signature:
    # A page asks a hundred times, and each time all sources would be read. `mkdocs serve` imports
    # this module anew when one of them changes.
    return signatures.signature(name)


def selectors(
    experiment: str, params: dict[str, Any], op: str | None, quantity: str | None
) -> dict[str, Any]:
    """Parameters, with those of the selectors op and quantity that the experiment has too."""
    known, given = _signature(experiment).defaults, {"op": op, "quantity": quantity}
    return params | {n: value for n, value in given.items() if value is not None and n in known}


def unique(asked: Iterable[Asked]) -> list[Asked]:
    """`asked` without repetition; the first place of each stands."""
    seen = {}
    for each in asked:
        seen.setdefault((each.name, *sorted(each.params.items())), each)
    return list(seen.values())
