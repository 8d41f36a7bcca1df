"""One headless Chromium for the tests of a process, the site, and a server for what they open."""

import functools
import http.server
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.fakes.sites import CHECKOUT, Built, Project

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
# The machine whose recordings the site shows.
RECORDED = "nvidia-h200"
SETTINGS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 360, "height": 780}, "is_mobile": True, "has_touch": True},
    "no script": {"java_script_enabled": False, "viewport": {"width": 1280, "height": 900}},
}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


@pytest.fixture(scope="session")
def chromium():
    if CHROMIUM is None:
        pytest.skip("needs Chromium, and there is none here")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Built:
    """The site itself, with the recordings of its own machine."""
    if ready := os.environ.get("BUILT_SITE"):  # `make.py test` has just built these pages
        return Built(0, "", Path(ready))
    folder = tmp_path_factory.mktemp("site")
    project = Project(folder, CHECKOUT / "recordings", RECORDED).copy_site()
    found = project.build("--strict", ANATOMY_DRAFTS="1")
    assert found.status == 0, found.said
    return found


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Unsearched(Quiet):
    """Nothing to search: to take up all words again for each page that a test opens, which the
    theme does in the background, would take as long as all else of it."""

    def do_GET(self):
        if not self.path.endswith("/search_index.json"):
            return super().do_GET()
        index = json.loads(Path(self.translate_path(self.path)).read_text(encoding="utf-8"))
        sent = json.dumps(index | {"docs": index["docs"][:1]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[..., str]]:
    """Serves a folder, `search` with what can be searched for; returns its address."""
    with ExitStack() as served:
        yield lambda folder, search=False: served.enter_context(_served(folder, search))


@contextmanager
def _served(folder: Path, search: bool) -> Iterator[str]:
    handler = functools.partial(Quiet if search else Unsearched, directory=str(folder))
    # Its threads are waited for by nobody: a browser leaves connections open that it never uses.
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="session")
def tabs(chromium) -> dict[str, list]:
    """Pages that no test has, by setting: to make one takes longer than most that is done in it."""
    return {setting: [] for setting in SETTINGS}


@pytest.fixture
def new_page(chromium, tabs):
    """A page as somebody has it who was never here, under one of `SETTINGS`. Its `trouble` is what
    it complained of, and what it asked of others than `page.site`."""
    lent = []

    def borrow(setting: str, site: str):
        page = tabs[setting].pop() if tabs[setting] else _made(chromium, setting)
        lent.append((setting, page))
        page.site, page.trouble = site, []
        return page

    yield borrow
    for setting, page in lent:
        page.unroute_all()
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
        page.context.clear_cookies()
        page.goto("about:blank")
        page.emulate_media(media="null")
        page.set_viewport_size(SETTINGS[setting]["viewport"])
        page.mouse.move(0, 0)
        tabs[setting].append(page)


def _made(chromium, setting: str):
    page = chromium.new_context(**SETTINGS[setting]).new_page()

    def tell(what: str) -> None:
        page.trouble.append(what)

    page.on("console", lambda said: said.type in ("error", "warning") and tell(said.text))
    page.on("pageerror", lambda error: tell(str(error)))
    # What is given up because the reader goes on to another page is no trouble.
    page.on("requestfailed", lambda r: r.failure == "net::ERR_ABORTED" or tell(r.url))
    page.on("request", lambda r: r.url.startswith((page.site, "data:")) or tell(r.url))
    return page


@pytest.fixture
def opened(new_page, address):
    """Opens a page of the site; at the end none had trouble."""
    pages = []

    def open_page(path: str, setting: str = "light"):
        pages.append(new_page(setting, address))
        pages[-1].goto(address + path, wait_until="load")
        return pages[-1]

    yield open_page
    assert [each.trouble for each in pages] == [[]] * len(pages)
