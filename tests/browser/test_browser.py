"""The site in headless Chromium: light, dark, on a phone and without JavaScript.

The pages and the recordings are the site's own: prose names rows that were measured, and what a
reader sees is what must fit. What has not been measured yet is a gap here as well.
"""

import json
import os
import re

import pytest

from anatomy.claims import all_claims, ledger
from anatomy.figures.text import frontmatter
from anatomy.site import reading
from tests.browser.conftest import RECORDED, SETTINGS
from tests.browser.contrast import LEAST, contrasts
from tests.fakes.sites import CHECKOUT
from tests.site import links

DOCS = CHECKOUT / "docs"
# Addresses of all pages, in the order of the navigation.
PAGES = [
    re.sub(r"(^|/)index/$", r"\1", page.rpartition(".")[0] + "/")
    for page in frontmatter.in_folder(DOCS)
]
CHARTS = "benchmarks/c01_tensor_semantics/"  # a page with charts and their tables
# Every page is opened on a phone, which is then as wide as a desk: that is another layout. Settings
# differ beside that in colours and in what scripts add, so that a page of each kind stands for all,
# but for THOROUGH=1.
FEW = PAGES if os.environ.get("THOROUGH") else ("", CHARTS, "ledger/")
# What can be seen of an open page: its heading, how often it has each id, of each chart the
# pictures that show, how wide it is, and which words of pictures are cut or on one another.
SEEN = """() => {
  const shows = e => e.checkVisibility({visibilityProperty: true})
    && e.getBoundingClientRect().height > 0;
  const ids = {};
  for (const e of document.querySelectorAll('[id]')) ids[e.id] = (ids[e.id] || 0) + 1;
  const charts = '.tabbed-block:first-child .chart, .md-content > * > figure .chart';
  return {
    heading: shows(document.querySelector('h1')),
    ids,
    charts: [...document.querySelectorAll(charts)]
      .filter(chart => !chart.closest('details:not([open])')).map(chart =>
      [...chart.querySelectorAll('svg')].filter(shows)
        .map(svg => ['both' in svg.dataset ? null : 'wide' in svg.dataset,
                     svg.getBoundingClientRect().height])),
    width: document.documentElement.scrollWidth,
    small: [...document.querySelectorAll('.chart svg[data-narrow] text')]
      .filter(t => t.getBoundingClientRect().width > 0)
      .map(t => parseFloat(getComputedStyle(t).fontSize)
                * t.ownerSVGElement.getBoundingClientRect().width
                / t.ownerSVGElement.viewBox.baseVal.width)
      .filter(size => size < 10),
    words: [...document.querySelectorAll('.chart svg')].flatMap(svg => {
      const all = svg.getBoundingClientRect();
      if (!all.width) return [];
      const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim())
        .map(t => [t.textContent, t.getBoundingClientRect(), t.getScreenCTM().b !== 0]);
      const cut = texts.filter(([, box]) => box.left < all.left - 2 || box.right > all.right + 2
        || box.top < all.top - 2 || box.bottom > all.bottom + 2).map(([text]) => `cut: ${text}`);
      // The box of slanted words is larger than they are.
      const upright = texts.filter(([, , slanted]) => !slanted);
      const shared = (a, b, low, high) => Math.min(a[high], b[high]) - Math.max(a[low], b[low]);
      const covered = upright.flatMap(([text, box], at) => upright.slice(at + 1)
        .filter(([, other]) => shared(box, other, 'left', 'right') > 4
                               && shared(box, other, 'top', 'bottom') > 5)
        .map(([other]) => `${text} on ${other}`));
      return [...cut, ...covered];
    }),
  };
}"""


@pytest.fixture(scope="module")
def address(built, serve):
    return serve(built.site)


@pytest.fixture
def opened(opened):
    """Opens a page, and waits for what the theme asks for afterwards."""

    def open_page(path: str, setting: str):
        page = opened(path, setting)
        page.wait_for_timeout(200)
        return page

    return open_page


@pytest.mark.parametrize("path", PAGES)
def test_a_page_opens_on_a_phone_and_is_as_good_when_it_is_wide(opened, path):
    page = opened(path, "phone")
    seen = looked_at(page, wide=False)
    assert seen["width"] == 360, "something runs off the phone"
    assert seen["small"] == [], "text of a chart is too small to read"
    page.set_viewport_size(SETTINGS["light"]["viewport"])
    looked_at(page, wide=True)


@pytest.mark.parametrize("setting", ["light", "dark", "no script"])
@pytest.mark.parametrize("path", FEW)
def test_a_page_opens_in_every_setting(opened, path, setting):
    looked_at(opened(path, setting), wide=True)


def looked_at(page, *, wide: bool) -> dict:
    """What can be seen of a page, which complains of nothing and asks nobody else."""
    assert page.trouble == []
    seen = page.evaluate(SEEN)
    assert seen["heading"], "no heading shows"
    assert [i for i, count in seen["ids"].items() if count > 1] == []
    assert seen["words"] == [], "words of a picture that nobody can read"
    for chart in seen["charts"]:
        assert chart, "neither the wide nor the narrow picture shows"
        assert {kind for kind, _ in chart} <= {wide, None}
        assert chart[0][1] > 24, "the height of a chart, or of the key that several share"
    return seen


@pytest.mark.parametrize("setting", ["light", "dark"])
def test_text_of_charts_and_strips_stands_out_from_the_page(opened, setting):
    page = opened(CHARTS, setting)
    found = contrasts(page, ".chart svg[data-wide] text", "fill")
    found += contrasts(page, "p.from, table.figures td, .ci")
    assert len(found) > 50
    assert [each for each in found if each[1] < LEAST] == []


def test_letters_of_pictures_are_the_pages_own_and_code_is_set_as_code(opened):
    page = opened(CHARTS, "light")
    found = page.evaluate(
        """() => [...document.querySelectorAll('.chart svg text')].map(text => {
          const style = getComputedStyle(text);
          return [style.fontFamily, style.paintOrder, text.textContent];
        })"""
    )
    body, code = (
        page.evaluate("name => getComputedStyle(document.body).getPropertyValue(name)", name)
        for name in ("--md-text-font-family", "--md-code-font-family")
    )
    families = {family.replace(" ", "") for family, *_ in found}
    assert families == {re.sub(r"\s", "", each) for each in (body, code)}
    assert {order.partition(" ")[0] for _, order, _ in found} == {"stroke"}
    assert any("sliced" in text for family, _, text in found if "mono" in family)


def test_a_folded_table_opens_without_a_script(opened):
    page = opened(CHARTS, "no script")
    fold = page.locator("details.twin").nth(
        page.locator("details.twin").evaluate_all("all => all.findIndex(each => !each.open)")
    )
    table = fold.locator("table")
    assert not table.is_visible()
    fold.locator("summary").click()
    assert table.is_visible()


@pytest.mark.parametrize("setting", ["light", "no script"])
def test_a_figure_leads_to_all_about_its_recording_and_that_to_the_raw_one(opened, setting):
    page = opened(CHARTS, setting)
    link = page.locator("figure.shown p.from a").first
    source = page.locator(f"details.sources {link.get_attribute('href')}")
    assert not source.is_visible()
    link.click()
    assert source.is_visible() and "driver" in page.locator("details.sources").inner_text()
    answer = page.request.get(source.locator("a.raw").evaluate("a => a.href"))
    assert answer.ok and answer.json()["machine"]["slug"] == RECORDED


@pytest.mark.parametrize("path", PAGES)
def test_a_page_tells_of_each_recording_once(built, path):
    html = (built.site / path / "index.html").read_text()
    assert html.count('id="numbers"') <= 1
    told = html.partition('id="numbers"')[2]
    links = re.findall(r'class="raw" href="([^"]+)">raw JSON', told)
    assert len(links) == len(set(links))
    assert set(re.findall(r'class="from"><a href="#(from-[^"]+)"', html)) <= set(
        re.findall(r'<li id="(from-[^"]+)"', told)
    )


@pytest.mark.parametrize("path", [CHARTS, "ladder/5_fastest/"])
def test_the_reading_time_is_that_of_the_words_which_the_browser_shows(opened, path):
    page = opened(path, "phone")  # where each set of tabs shows one
    said = int(page.inner_text(".reads").partition(" min")[0])
    words = page.evaluate("""() => {
      for (const picture of document.querySelectorAll('article svg')) picture.remove();
      return document.querySelector('article').innerText.split(/\\s+/).length;
    }""")
    assert said - 1.1 < words / reading.WORDS_A_MINUTE < said + 0.1


def test_the_ledger_is_whole_without_a_script_and_filtered_and_sorted_with_one(opened):
    plain = opened("ledger/", "no script")
    machines = ledger.judged_machines(CHECKOUT / "recordings")
    rows, every = "table.claims-ledger tbody tr[id]", len(all_claims()) * len(machines)
    assert plain.locator(rows).count() == every
    assert plain.locator(f"{rows}:visible").count() == every
    assert plain.locator(".ledger-filter, table.claims-ledger button").count() == 0
    page = opened("ledger/", "light")
    assert page.locator(f"{rows}:visible").count() == every // len(machines), "of one machine"
    page.select_option("select[name=machine]", "")
    page.select_option("select[name=verdict]", "fails")
    left = page.locator(f"{rows}:visible").count()
    assert 0 < left < every and page.inner_text(".ledger-filter output") == f"{left} of {every}"
    words = page.locator(f"{rows}:visible .chip").all_inner_texts()
    assert all("fails" in word for word in words)
    page.select_option("select[name=verdict]", "")
    button = page.locator("table.claims-ledger thead button").nth(5)
    for direction, sign in (("ascending", 1), ("descending", -1)):
        button.click()
        assert page.locator("th[aria-sort]").get_attribute("aria-sort") == direction
        keys = page.evaluate(
            """[...document.querySelectorAll('table.claims-ledger tbody:first-of-type tr')]
               .map(row => row.cells[5].dataset.key).filter(Boolean).map(Number)"""
        )
        assert keys == sorted(keys, key=lambda key: sign * key) and len(keys) > 5
    with page.expect_download() as fetched:
        page.click(".downloads a >> nth=1")
    assert fetched.value.suggested_filename == "ledger.json"


def test_a_word_and_a_number_are_explained_by_the_tab_key(opened):
    page = opened("benchmarks/contiguity_summary/", "light")
    for each in ("abbr", ".measured"):
        one = page.locator(f".md-content {each}[tabindex='0']").first
        said = one.get_attribute("title")
        one.focus()
        shown = page.locator(".md-tooltip2--active")
        shown.wait_for()
        assert said and shown.inner_text() == said
        one.blur()
        shown.wait_for(state="detached")


def test_every_link_leads_somewhere(built):
    assert links.broken(built.site) == []


def test_search_finds_words_and_not_the_figures(new_page, serve, built):
    address = serve(built.site, search=True)
    page = new_page("light", address)
    page.goto(address)
    page.locator("input.md-search__input").fill("leading dimension")
    page.locator(".md-search-result__item a").first.click()
    page.wait_for_url(lambda url: url != address)
    assert "leading dimension" in page.locator("article").inner_text() and page.trouble == []
    index = json.loads(built.read("search/search_index.json"))["docs"]
    text = " ".join(entry["text"] for entry in index)
    assert "leading dimension" in text
    assert "Toy GPU ·" not in text and "raw JSON" not in text


def test_a_page_that_is_not_there_leads_to_those_that_are(opened, built):
    page = opened("404.html", "light")
    assert page.trouble == []
    links = page.locator(".md-content li a")
    # A page about several machines is in no menu while there is one.
    pages = [text for _, text in frontmatter.pages_in(DOCS)]
    one = not list(built.site.glob("nvidia-*"))  # no edition of another machine
    assert links.count() == sum(not (one and "\nseveral: true\n" in each) for each in pages)
    links.nth(1).click()
    assert page.locator("h1").first.inner_text() and "404" not in page.url


def test_the_stylesheets_name_every_colour_in_both_schemes():
    from anatomy.figures.charts import grammar, loglog, plain

    css = (DOCS / "assets" / "charts.css").read_text()
    used = {*grammar.SERIES, grammar.TEXT, grammar.MUTED, grammar.GRID, grammar.BAND}
    used |= {grammar.TONE}
    used |= {colour for colour, _ in (*plain.MARKS.values(), *loglog.VERDICTS.values())}
    for colour in used:
        name = colour.removeprefix("var(").removesuffix(")")
        assert css.count(f"{name}: ") == 2, f"{name} has no colour in light or in dark"
