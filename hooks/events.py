"""MkDocs events, each handed on to `anatomy.site.building`; nothing is decided here.

Pages are checked and collected before anything is written, the recorder runs before the pages are
rendered, and whatever is wrong on a page is raised as one error that names page.md:line. Failing
blocks never get as far as a warning, so neither --strict nor -q changes what a failure is.
"""

import gc
import logging
import os
import re
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urljoin

import markdown_exec
from markdown import Markdown
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel, get_files
from mkdocs.structure.nav import get_navigation
from mkdocs.utils import get_relative_url
from mkdocs.utils.meta import get_data
from pymdownx.snippets import SnippetMissingError

CHECKOUT = Path(__file__).resolve().parent.parent
log = logging.getLogger("mkdocs.plugins.anatomy")

MOST_TOLD = 50  # of what is wrong
QUIET_S = 5.0  # longest that a build goes on without saying what it does
SNIPPETS = "pymdownx.snippets"
# How MkDocs tells of a link that leads nowhere.
_DEAD = re.compile(r"Doc file '(?P<page>[^']+)' contains an? [\w ]*link '(?P<link>.+?)', ")

_command, _dirty = "build", False
_lock = None
_building = None
_wrong: list[str] = []
_pages: dict[str, str] = {}  # Markdown of each, front matter included, of every edition
_navigations = {}  # of each edition but that at the root of the site, by its folder
_seen = None  # how the files beside the pages were at the build before
_said_at = 0.0


def on_startup(command, dirty):
    """Remember whether this is a preview, which writes nothing that another build reads."""
    global _command, _dirty, _said_at
    _command, _dirty, _said_at = command, dirty, time.monotonic()
    if command == "serve":
        # A file edited twice within a second would be taken for its older bytecode.
        sys.dont_write_bytecode = True
    gc.disable()  # looking for cycles of garbage would take a tenth of the first build's time


def on_shutdown():
    """Let the next build begin, and this process end."""
    gc.freeze()  # else all that a build holds is looked through once more as it ends
    if _lock is not None:
        _lock.release()


def on_config(config):
    """Let only one build write to this project, and run its Python blocks by our own runner."""
    global _lock
    if _command != "serve":
        _lock = _called(lambda: _processes().lock(Path(config.config_file_path).parent))
    markdown_exec.formatters["python"] = _format
    if os.environ.get("ANATOMY_DRAFTS"):
        config.draft_docs = None
    return config


def on_pre_build(config):
    """Find what the pages show and measure what is missing, before the old site is removed."""
    global _building, _seen
    _wrong.clear()
    if _command == "serve":
        seen_before, _seen = _seen, _stamps(config)
        if _seen != seen_before:  # what was drawn is no good, even where this build fails
            _building = None
            _anatomy().forget_modules()
    files = get_files(config).documentation_pages(inclusion=_inclusion())
    _pages.clear()
    _navigations.clear()
    _pages.update((file.src_uri, file.content_string) for file in files)
    _say(f"Reading what {len(files)} pages show", at_once=_command == "serve")
    _building = _called(
        lambda: _anatomy().prepare(
            list(_pages.items()),
            addresses={file.src_uri: file.url for file in files},
            checkout=CHECKOUT,
            project=Path(config.config_file_path).parent,
            shown_machine=config.extra.get("machine"),
            published=config.extra.get("machines") or [],
            several=_command != "serve",
            here=_here,
            record=_record,
            navigate=config.nav is None,
            before=_building,
        )
    )


def on_files(files, config):
    """Publish the raw recordings and the ledger with the site, lay out its navigation, and have its
    pages once more for each further edition."""
    config.nav = config.nav or _building.navigation
    own = [file for file in files if file.src_dir == config.docs_dir and _shown(file)]
    if len(_building.editions) > 1:
        config.extra["alternate"] = True  # has the theme's header hold our switch
    for edition in _building.editions[1:]:
        _add_edition(edition, own, files, config)
    for file in files.documentation_pages(inclusion=_inclusion()):  # `mkdocs serve --dirty` asks
        source = _building.edition(file.src_uri)[1]
        file.is_modified = partial(_building.unpublished.__contains__, source)
    texts = {name: _body(source) for name, source in _pages.items()}
    _called(lambda: _building.draw_ahead(texts))
    for address, content in _called(_building.published):
        files.append(File.generated(config, address, content=content))
    return files


def on_page_markdown(markdown, page, config, files):
    """Check a page's blocks, give them their places, and replace its references."""
    _, offset = _body(page.file.content_string)
    _say(f"Drawing page {list(_pages).index(page.file.src_uri) + 1} of {len(_pages)}")
    if _building.edition(page.file.src_uri)[0].folder:
        page.meta["search"] = {"exclude": True}
    elif lacks := [
        f"{page.file.src_uri}:{line + offset}: {why}" for line, why in _missing(markdown, config)
    ]:
        raise _failure([*_wrong, *lacks])
    text, wrong = _called(lambda: _building.page(page.file.src_uri, markdown, offset))
    _wrong.extend(wrong)
    return text


def on_page_content(html, page, config, files):
    """Remember what the page lacks, and finish it."""
    _wrong.extend(_building.page_done(html))
    return _called(lambda: _building.finished(page.file.src_uri, html))


def on_env(env, config, files):
    """Fail if a page or a recording is wrong, before any page is written; tell what is missing."""
    broken = [file for file in _building.broken if not any(file in page for page in _wrong)]
    if _wrong or broken:
        raise _failure([*_wrong, *broken])
    for gap in _building.gaps:
        log.info(gap)
    return env


def on_page_context(context, page, config, nav):
    """Have the footer name topic and page, the pages of an edition lead to its own, and each page
    to the same in the others."""
    page.previous_page, page.next_page = map(_in_footer, (page.previous_page, page.next_page))
    addresses = _building.addresses(page.file.src_uri)
    if len(addresses) == 1:
        return context
    mine, _ = _building.edition(page.file.src_uri)
    links = [get_relative_url(address, page.url) for _, address in addresses]
    context["editions"] = [
        {"machine": each.machine, "name": each.name, "url": link, "shown": each == mine}
        for (each, _), link in zip(addresses, links, strict=True)
    ]
    if mine.folder:
        context["nav"] = _navigations[mine.folder]
        root = addresses[0][1]
        page.canonical_url = urljoin(config.site_url, root) if config.site_url else links[0]
    return context


def on_post_page(output, page, config):
    """Put the pictures in their places."""
    return _building.with_pictures(page.file.src_uri, output)


def on_post_build(config):
    """Let the next build know what this one came to, and leave nothing at work."""
    if _command != "serve":
        _building.keep()
    _building.unpublished.clear()
    _building.stop()
    gc.enable()  # a preview goes on


def on_build_error(error):
    """Leave nothing at work."""
    if _building is not None:
        _building.stop()


def on_serve(server, config, builder):
    """Have the server go on after an error, with the last good pages."""
    from anatomy.site.preview import Preview

    preview = Preview(Path(server.root), whole=not _dirty)

    def build():
        if wrong := preview.build(builder):
            log.error("%s\nThe last good pages are shown, with this error on them.", wrong)

    server.builder = build
    server.set_app(preview.around(server.get_app()))
    return server


def _in_footer(page):
    """What the theme shows of the page before, or after, another: `Sync points › Guide`."""
    if page is None or page.parent is None:
        return page
    return SimpleNamespace(url=page.url, title=f"{page.parent.title} › {page.title}")


def _add_edition(edition, own, files, config):
    """The files of one more edition: pages of its own, and what is beside them where it is."""
    pages = []
    for file in own:
        there, beside = edition.inside(file.src_uri), InclusionLevel.NOT_IN_NAV
        if not file.is_documentation_page():
            copy = File.generated(config, there, abs_src_path=file.abs_src_path, inclusion=beside)
            copy.dest_uri = file.dest_uri  # all editions share it
        else:
            _pages[there] = _pages[file.src_uri]
            copy = File.generated(config, there, content=_pages[there], inclusion=beside)
            pages.append(copy)
        files.append(copy)
    nav, config.nav = config.nav, edition.navigation(config.nav)
    found = _navigations[edition.folder] = get_navigation(Files(pages), config)
    config.nav = nav
    at_top = (each for each in found.pages if each.file.dest_uri == f"{edition.folder}/index.html")
    found.homepage = next(at_top, None)


def _inclusion():
    """What tells of a file's inclusion whether it is built: drafts are in a preview."""
    return InclusionLevel.is_in_serve if _command == "serve" else InclusionLevel.is_included


def _shown(file):
    return _inclusion()(file.inclusion)


def _stamps(config):
    """What tells whether a file that is watched, other than a page, was edited."""
    watched = [Path(config.config_file_path), *map(Path, config.watch)]
    files = [file for each in watched for file in (each, *each.rglob("*")) if file.is_file()]
    return {file: (file.stat().st_mtime_ns, file.stat().st_size) for file in files}


def _body(source):
    """A page without its front matter, as MkDocs hands it on, and how many lines that took."""
    text, _ = get_data(source)
    return text, source[: source.rindex(text)].count("\n")


def _say(doing, *, at_once=False):
    global _said_at
    if at_once or time.monotonic() - _said_at > QUIET_S:
        _said_at = time.monotonic()
        log.info("%s ...", doing)


def _missing(markdown, config):
    """Line and reason of each snippet that is not there, which Markdown would tell without both."""
    if SNIPPETS not in config.markdown_extensions:
        return []
    reader = Markdown(extensions=[SNIPPETS], extension_configs=config.mdx_configs)
    lines = markdown.split("\n")
    marked = [at for at, line in enumerate(lines, 1) if "--8<--" in line]

    def wrong(at, text):
        try:
            reader.preprocessors["snippet"].run(text)
        except SnippetMissingError as error:
            return [(at, f"{error}.")]
        return []

    single = [each for at in marked for each in wrong(at, [lines[at - 1]])]
    # Only the whole page tells of one that is named on lines of its own.
    return single or (wrong(marked[0], lines) if marked else [])


class _Known(logging.Filter):
    """Leaves out MkDocs' warning of old pages in a preview: here each page that changes is new."""

    def filter(self, record):
        return "A 'dirty' build is being performed" not in str(record.msg)


class _Placed(logging.Filter):
    """Puts `page.md:line` before what MkDocs tells of a link."""

    def filter(self, record):
        dead = _DEAD.match(str(record.msg))
        lines = _pages.get(dead["page"], "").split("\n") if dead else []
        found = [at for at, line in enumerate(lines, 1) if dead["link"] in line]
        if found:
            record.msg = f"{dead['page']}:{found[0]}: {record.msg}"
        return True


logging.getLogger("mkdocs.structure.pages").addFilter(_Placed())
logging.getLogger("mkdocs.commands.build").addFilter(_Known())


def _format(**options):
    return markdown_exec.base_format(language="python", run=_run, **options)


def _run(code, returncode=None, session=None, id=None, **extra):
    """What markdown-exec calls for a block; its id is the place that `page` gave it."""
    try:
        return _building.block(id)
    except _errors().AnatomyError as error:
        _wrong.append(str(error))
        return ""


def _here():
    from anatomy.machine import host  # which asks the driver, and does not import torch

    return host.here()


def _record(asked, root, mode):
    if report := _processes().run_recorder(asked, root, mode, CHECKOUT):
        log.info(report)


def _called(call):
    """What `call` returns; its error without a traceback, as MkDocs wants one to be told."""
    try:
        return call()
    except _errors().AnatomyError as error:
        raise _failure(getattr(error, "problems", [str(error)])) from None


def _failure(wrong):
    once = list(dict.fromkeys(wrong))
    if len(once) == 1:
        return PluginError(once[0])
    more = [f"and {len(once) - MOST_TOLD} more."] if len(once) > MOST_TOLD else []
    told = [f"{len(once)} things are wrong on the pages:", *once[:MOST_TOLD], *more]
    return PluginError("\n  ".join(told))


def _anatomy():
    # Named at every call: `mkdocs serve` reads the package anew, and hooks may not add to the
    # path while they are loaded.
    if str(CHECKOUT) not in sys.path:
        sys.path.insert(0, str(CHECKOUT))
    from anatomy.site import building

    return building


def _processes():
    _anatomy()
    from anatomy.site import processes

    return processes


def _errors():
    _anatomy()
    from anatomy.table import errors

    return errors
