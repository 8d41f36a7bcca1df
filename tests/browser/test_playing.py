"""Charts that are played, in headless Chromium: a pointer, a finger and the arrow keys find marks,
a shape is chosen under a pay-off map, and without a script nothing of it is missed or in the way.
The page and the recordings are made up."""

import re
from shutil import copytree

import pytest

from tests.fakes import payoff_rows, synthetic
from tests.fakes.sites import Project, block

MAP = block(
    "from anatomy.page import payoff\n"
    f"print(payoff({payoff_rows.EXPERIMENT!r}, x='width', y='tokens',"
    " variant=['compiled', 'graphed']))"
)
ROOFLINE = block(
    "from anatomy.page import placed\n"
    "BENCH = dict(experiment='contiguity.bench', op='matmul', quantity='gpu_warm')\n"
    "print(placed({'sound': BENCH | dict(variant='contiguous'),"
    " 'sliced': BENCH | dict(variant='sliced_offset_view')}))"
)
PAGE = f"# Home\n\nWords.\n\n{MAP}\n\n## Roofline\n\n{ROOFLINE}\n\n## End\n\nWords.\n"
CHART = ".chart:has(+ .choose)"
READ = ".choose li"


@pytest.fixture(scope="module")
def address(tmp_path_factory, serve):
    root = copytree(synthetic.shared(), tmp_path_factory.mktemp("play"), dirs_exist_ok=True)
    payoff_rows.recorded(root)
    built = Project(tmp_path_factory.mktemp("site"), root).write(index=PAGE).build()
    assert built.status == 0, built.said
    return serve(built.site)


@pytest.fixture
def opened(opened):
    """Opens the page, ready to be played with."""

    def open_page(setting: str = "light"):
        page = opened("", setting)
        if setting != "no script":
            page.locator(".chart[role='group']").first.wait_for(state="attached")
        return page

    return open_page


def told(page) -> str:
    return page.locator(".chart .told:visible").inner_text()


def roofline(page):
    return page.locator("figure:has(.chart):not(:has(.choose)) .chart")


def test_a_mark_that_is_pointed_at_tells_what_it_is_and_finds_its_row(opened):
    page = opened()
    chart = roofline(page)
    chart.focus()
    page.keyboard.press("End")
    dot = chart.locator(".ring").bounding_box()
    page.keyboard.press("Escape")
    assert page.locator(".told:visible").count() == 0
    page.mouse.move(dot["x"] - 3, dot["y"] - 3)  # beside it is near enough
    said = told(page)
    name = said.partition(" ")[0]
    assert name in ("sound", "sliced") and "FLOP/B" in said and re.search(r"% of", said)
    row = page.locator("tr.at")
    assert row.count() == 1 and row.inner_text().partition(". ")[2].startswith(name)
    page.mouse.move(2, 2)
    assert page.locator(".told:visible, .ring:visible, tr.at").count() == 0
    assert page.trouble == []


def test_arrow_keys_go_from_mark_to_mark_and_escape_ends_it(opened):
    page = opened()
    chart = page.locator(CHART)
    chart.focus()
    page.keyboard.press("Home")
    first = told(page)
    page.keyboard.press("ArrowRight")
    second = told(page)
    assert first != second and first.startswith("compiled, width 256")
    page.keyboard.press("ArrowLeft")
    assert told(page) == first
    page.keyboard.press("End")
    assert told(page).startswith("graphed, width 4096")
    page.keyboard.press("Escape")
    assert page.locator(".told:visible").count() == 0
    assert chart.get_attribute("role") == "group" and page.trouble == []


@pytest.mark.parametrize("setting", ["light", "phone"])
def test_the_arrows_reach_every_cell_of_a_map(opened, setting):
    page = opened(setting)
    page.locator(CHART).focus()
    seen = set()
    page.keyboard.press("Home")
    while told(page) not in seen:
        row = []
        while not row or told(page) != row[-1]:
            row.append(told(page))
            page.keyboard.press("ArrowRight")
        seen |= set(row)
        for _ in row:
            page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowUp")
    cells = len(payoff_rows.WIDTHS) * len(payoff_rows.TOKENS)
    assert len([each for each in seen if each.startswith("compiled")]) == cells


def test_a_shape_is_chosen_by_list_or_in_the_map_and_read_of_all_variants(opened):
    page = opened()
    page.locator(".choose select").nth(0).select_option("1024")
    lines = page.locator(READ).all_inner_texts()
    assert [line.partition(" ")[0] for line in lines] == ["compiled", "graphed"]
    tokens = page.locator(".choose select").nth(1).input_value()
    table = page.locator("details.twin table").first
    for line in lines:
        variant, ratio = line.replace("×", "").split()[:2]
        cells = table.locator("tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.cells].map(cell =>"
            " cell.querySelector('[title]:not(.chip)')?.title || cell.textContent))"
        )
        row = next(c for c in cells if c[:3] == ["1024", tokens, variant])
        assert any(cell.startswith(ratio) for cell in row), "what the table says"
    assert page.locator("svg[data-wide] .chosen, svg[data-both] .chosen").count() == 2
    page.locator(CHART).focus()
    for key in ("End", "Enter"):
        page.keyboard.press(key)
    shape = [each.input_value() for each in page.locator(".choose select").all()]
    assert f"graphed, width {shape[0]}, tokens {shape[1]}" in told(page)
    assert page.locator(READ).all_inner_texts() != lines and page.trouble == []


def test_on_a_phone_a_finger_does_what_a_pointer_does(opened):
    page = opened("phone")
    page.locator(CHART).scroll_into_view_if_needed()
    page.locator(CHART).focus()
    page.keyboard.press("Home")
    cell = page.locator(f"{CHART} .ring").bounding_box()
    page.keyboard.press("Escape")
    page.touchscreen.tap(cell["x"] + 9, cell["y"] + 9)
    said = told(page)
    assert said.startswith("compiled, width 256")
    assert page.locator(READ).first.inner_text().split()[1] in said
    box = page.locator(".told:visible").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 360
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.locator("h2").first.tap()
    assert page.locator(".told:visible").count() == 0


@pytest.mark.parametrize("setting", ["light", "phone"])
def test_nothing_moves_when_the_script_comes_and_when_a_shape_is_chosen(new_page, address, setting):
    page = new_page(setting, address)
    page.route("**/play.js", lambda route: route.abort())
    page.goto(address, wait_until="load")
    height = "document.documentElement.scrollHeight"
    before = page.evaluate(height)
    page.unroute("**/play.js")
    page.goto(address, wait_until="load")
    page.locator(".choose select").first.wait_for(state="attached")
    assert page.evaluate(height) == before
    for choice in page.locator(".choose select").first.locator("option").all_inner_texts():
        page.locator(".choose select").first.select_option(choice)
        assert page.evaluate(height) == before


def test_without_a_script_the_browser_tells_and_the_table_has_it_all(opened):
    page = opened("no script")
    assert page.locator(".choose").first.is_hidden()
    titles = page.locator(f"{CHART} svg title").all_text_contents()
    table = page.locator("details.twin").first
    table.locator("summary").click()
    assert len(titles) == table.locator("tbody tr").count() > 10
    assert table.is_visible() and "compiled, width 256" in titles[0]


def test_what_is_played_is_not_printed(opened):
    page = opened()
    page.locator(CHART).focus()
    page.keyboard.press("Home")
    page.emulate_media(media="print")
    assert page.locator(".told:visible, .ring:visible, .choose:visible").count() == 0
    assert page.locator(f"{CHART} svg:visible").count() == 2
