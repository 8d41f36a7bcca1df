"""One headless Chromium for the tests of a process, the site, and a server for what they open."""

import functools
import http.server
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
    "phone": {"viewport": {"width": 360, "height": 780}, "is_mobile": True},
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


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[[Path], str]]:
    """Serves a folder; returns its address."""
    with ExitStack() as served:
        yield lambda folder: served.enter_context(_served(folder))


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(folder))
    # Its threads are waited for by nobody: a browser leaves connections open that it never uses.
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture
def opened(chromium, address):
    """Opens a page as somebody who was never here; the setting is one of `SETTINGS`."""
    contexts = []

    def open_page(path: str, setting: str = "light"):
        contexts.append(chromium.new_context(**SETTINGS[setting]))
        page = contexts[-1].new_page()
        page.trouble = []
        page.on("pageerror", lambda error: page.trouble.append(str(error)))
        page.on("request", lambda r: r.url.startswith(address) or page.trouble.append(r.url))
        page.goto(address + path, wait_until="load")
        return page

    yield open_page
    for context in contexts:
        assert [each.trouble for each in context.pages] == [[]]
        context.close()
