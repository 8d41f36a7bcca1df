"""The switch between machines in headless Chromium: to the same section of the same page and back,
with and without a script, by mouse and by keyboard, and remembered. The pages are made up, and so
are the machines."""

from shutil import copytree

import pytest

from tests.fakes import second_machine, synthetic
from tests.fakes.second_machine import GPU, SLUG
from tests.fakes.sites import Project

FIRST, BENCH = "Toy GPU", "contiguity.bench"
SCREEN = "\n\n".join(["Some words for a reader."] * 40)
PAGE = f"[home](index.md)\n\n## Above\n\n{SCREEN}\n\n## Here\n\n{SCREEN}\n\n## Below\n\n{SCREEN}\n"
PATHS = ["", "one/"]
SHOWN = "document.querySelector('.machines summary').innerText.replace(/\\s+/g, ' ').trim()"
TOP = "id => document.getElementById(id).getBoundingClientRect().top"


@pytest.fixture(scope="module")
def address(tmp_path_factory, serve):
    root = copytree(synthetic.shared(), tmp_path_factory.mktemp("two"), dirs_exist_ok=True)
    second_machine.copied(root, synthetic.MACHINE, root, lambda name: name == BENCH)
    project = Project(tmp_path_factory.mktemp("site"), root, machines=(SLUG,))
    built = project.write(index=f"# Home\n\n{PAGE}", one=f"# One\n\n{PAGE}").build()
    assert built.status == 0, built.said
    return serve(built.site)


def inside(page, address: str) -> str:
    """Where the reader is within the site."""
    page.wait_for_load_state("load")
    return page.url.removeprefix(address)


def choose(page, name: str) -> None:
    page.locator(".machines summary").click()
    page.locator(".machines a", has_text=name).click()


@pytest.mark.parametrize("path", PATHS)
def test_a_script_keeps_the_section_there_and_back(opened, address, path):
    page, section = opened(path), "here"
    page.evaluate("id => document.getElementById(id).scrollIntoView()", section)
    page.wait_for_function("scrollY > 0")
    choose(page, GPU)
    page.wait_for_url(f"{address}{SLUG}/{path}#{section}")
    page.wait_for_function(f"Math.abs(({TOP})('{section}')) < innerHeight / 2")
    assert page.evaluate(SHOWN).endswith(GPU)
    choose(page, FIRST)
    page.wait_for_url(f"{address}{path}#{section}")
    assert page.evaluate(SHOWN).endswith(FIRST)


@pytest.mark.parametrize("path", PATHS)
def test_without_a_script_they_are_plain_links_to_the_same_page(opened, address, path):
    page = opened(path, "no script")
    assert not page.locator(".machines a").first.is_visible()
    choose(page, GPU)
    assert inside(page, address) == f"{SLUG}/{path}"
    assert GPU in page.locator(".machines summary").inner_text()
    choose(page, FIRST)
    assert inside(page, address) == path


def test_a_choice_is_remembered_and_leads_nobody_in_a_circle(opened, address):
    page = opened("one/")
    choose(page, GPU)
    page.wait_for_url(f"{address}{SLUG}/one/")
    page.goto(f"{address}one/#below", wait_until="load")
    assert inside(page, address) == f"{SLUG}/one/#below"
    page.locator(".md-content a", has_text="home").click()
    page.wait_for_url(f"{address}{SLUG}/")
    choose(page, FIRST)
    page.wait_for_url(address)
    page.goto(f"{address}one/", wait_until="load")
    assert inside(page, address) == "one/"


def test_at_the_top_of_a_page_no_section_is_named(opened, address):
    page = opened("one/")
    choose(page, GPU)
    page.wait_for_url(f"{address}{SLUG}/one/")


def test_by_keyboard_it_opens_closes_and_leads(opened, address):
    page = opened("one/")
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
    page.wait_for_url(f"{address}{SLUG}/one/")


@pytest.mark.parametrize("path", ["", f"{SLUG}/one/"])
def test_on_a_phone_the_switch_fits_and_opens_within_the_screen(opened, path):
    page = opened(path, "phone")
    page.locator(".machines summary").click()
    box = page.locator(".machines ul").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 360
    assert page.evaluate("document.documentElement.scrollWidth") == 360
