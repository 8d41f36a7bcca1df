"""The switch between machines in headless Chromium: to the same section of the same page and back,
with and without a script, by mouse and by keyboard, and remembered.

The pages are the site's own. The second machine has some recordings of the first under its name,
with other times, so that the first one's figures stand in for the rest."""

import functools
import http.server
import re
import threading
from shutil import copytree

import pytest

from tests.browser.test_browser import CHROMIUM, FLAGS, RECORDED, SETTINGS, Quiet
from tests.fakes import second_machine
from tests.fakes.second_machine import SLUG
from tests.fakes.sites import CHECKOUT, Built, Project
from tests.site import links

# Page -> the section that the reader is at.
SECTIONS = {
    "": "how-to-read-a-figure",
    "limits/": "what-is-the-least-that-a-call-costs",
    "machines/": "what-does-each-give-at-best",
    "benchmarks/c01_tensor_semantics/": "when-does-a-transposed-view-cost-something",
    "axioms/precision/": "how-many-digits-are-lost",
}
OWN = ("limits.", "contiguity.", "tensor_layout.", "alignment.")
SHOWN = "document.querySelector('.machines summary').innerText.replace(/\\s+/g, ' ').trim()"
TOP = "id => document.getElementById(id).getBoundingClientRect().top"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, and there is none here")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Built:
    root = copytree(CHECKOUT / "recordings", tmp_path_factory.mktemp("two"), dirs_exist_ok=True)
    second_machine.copied(root, RECORDED, root, lambda name: name.startswith(OWN), 1.5)
    project = Project(tmp_path_factory.mktemp("site"), root, RECORDED, machines=(SLUG,))
    found = project.copy_site().build("--strict")
    assert found.status == 0, found.said
    return found


@pytest.fixture(scope="module")
def address(built):
    handler = functools.partial(Quiet, directory=str(built.site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium, address):
    """Opens a page as somebody who was never here; the setting is one of `SETTINGS`."""
    contexts = []

    def open_page(path: str, setting: str = "light"):
        contexts.append(chromium.new_context(**SETTINGS[setting]))
        page = contexts[-1].new_page()
        page.goto(address + path, wait_until="load")
        return page

    yield open_page
    for context in contexts:
        context.close()


def inside(page, address: str) -> str:
    """Where the reader is within the site."""
    page.wait_for_load_state("load")
    return page.url.removeprefix(address)


def choose(page, name: str) -> None:
    page.locator(".machines summary").click()
    page.locator(".machines a", has_text=name).click()


@pytest.mark.parametrize("path", SECTIONS)
def test_a_script_keeps_the_section_there_and_back(opened, address, path):
    page, section = opened(path), SECTIONS[path]
    page.evaluate("id => document.getElementById(id).scrollIntoView()", section)
    page.wait_for_function("scrollY > 0")
    choose(page, "Second GPU")
    page.wait_for_url(f"{address}{SLUG}/{path}#{section}")
    page.wait_for_function(f"Math.abs(({TOP})('{section}')) < innerHeight / 2")
    assert page.evaluate(SHOWN).endswith("NVIDIA Second GPU")
    choose(page, "NVIDIA H200")
    page.wait_for_url(f"{address}{path}#{section}")
    assert page.evaluate(SHOWN).endswith("NVIDIA H200")


@pytest.mark.parametrize("path", SECTIONS)
def test_without_a_script_they_are_plain_links_to_the_same_page(opened, address, path):
    page = opened(path, "no script")
    assert not page.locator(".machines a").first.is_visible()
    choose(page, "Second GPU")
    assert inside(page, address) == f"{SLUG}/{path}"
    shown = page.locator(".machines summary").inner_text()
    assert "Second GPU" in shown
    choose(page, "NVIDIA H200")
    assert inside(page, address) == path


def test_a_choice_is_remembered_and_leads_nobody_in_a_circle(opened, address):
    page = opened("limits/")
    choose(page, "Second GPU")
    page.wait_for_url(f"{address}{SLUG}/limits/")
    page.goto(f"{address}machines/#what-does-each-give-at-best", wait_until="load")
    assert inside(page, address) == f"{SLUG}/machines/#what-does-each-give-at-best"
    page.locator(".md-tabs a", has_text="Ledger").click()
    page.wait_for_url(f"{address}{SLUG}/ledger/")
    choose(page, "NVIDIA H200")
    page.wait_for_url(f"{address}ledger/")
    page.goto(f"{address}limits/", wait_until="load")
    assert inside(page, address) == "limits/"


def test_at_the_top_of_a_page_no_section_is_named(opened, address):
    page = opened("limits/")
    choose(page, "Second GPU")
    page.wait_for_url(f"{address}{SLUG}/limits/")


def test_by_keyboard_it_opens_closes_and_leads(opened, address):
    page = opened("limits/")
    page.locator(".machines summary").focus()
    page.keyboard.press("Enter")
    assert page.locator(".machines a").first.is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    assert not page.locator(".machines a").first.is_visible()
    assert page.evaluate("document.activeElement.localName") == "summary"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaCurrent") == "page"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}{SLUG}/limits/")


@pytest.mark.parametrize("path", ["", f"{SLUG}/limits/", f"{SLUG}/axioms/precision/"])
def test_on_a_phone_the_switch_fits_and_opens_within_the_screen(opened, path):
    page = opened(path, "phone")
    page.locator(".machines summary").click()
    box = page.locator(".machines ul").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 360
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_an_edition_has_its_own_figures_and_names_those_that_are_not(built):
    limits = [built.read(f"{folder}limits/index.html") for folder in ("", f"{SLUG}/")]
    copies = [re.search(r'title="copy, measured[^>]*>([\d.]+) TB', html)[1] for html in limits]
    assert float(copies[0]) == pytest.approx(1.5 * float(copies[1]), rel=0.01)
    assert "strip-elsewhere" not in "".join(limits)
    there = built.read(f"{SLUG}/axioms/precision/index.html")
    assert "<b>NVIDIA H200</b>: not measured on this machine yet" in there
    assert 'class="notice gap"' not in there and 'class="gap-inline"' not in there


def test_every_link_of_both_editions_leads_somewhere(built):
    assert links.broken(built.site) == []
