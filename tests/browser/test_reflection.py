"""The site's own day 14 in headless Chromium: the quiz is answered, kept, held against how sure one
was, and saved; keys follow a reader's own numbers; and all can be read without a script."""

import json
import re

import pytest

from anatomy.chapters.reflection import keys
from anatomy.judge import limits
from tests.browser.contrast import LEAST, contrasts
from tests.browser.test_browser import SEEN
from tests.browser.test_curriculum import box, told, unfold

PAGE = "curriculum/day_14/"
QUIZ = ".admonition.quiz"
TALLEST, HEAVIEST = 8900, 500_000  # pixels at 1280 with all folds closed; bytes of HTML


@pytest.fixture(scope="module")
def address(built, serve):
    return serve(built.site)


@pytest.fixture
def opened(opened):
    """As `opened`, and whatever is looked for is there soon or never."""

    def open_page(*where):
        page = opened(*where)
        page.set_default_timeout(4000)
        return page

    return open_page


def names(page) -> list[str]:
    return page.locator(f"{QUIZ} > p[id]").evaluate_all("all => all.map(each => each.id)")


def right_one(page, name: str) -> str:
    """What the fold says is right: a letter, or a number in the question's unit."""
    fold = box(page, name).locator("details.answer")
    if fold.locator(".right").count():
        return fold.locator(".right").first.text_content()
    if not fold.locator(".yours").count():
        return ""  # a choice that a recording still has to make
    return re.match(r"[\d.]+", fold.locator(".measured").first.text_content())[0]


def say(page, name: str, said: str, sure: int) -> None:
    form = box(page, name).locator("form")
    if form.locator("input[type=number]").count():
        form.locator("input[type=number]").fill(said)
    else:
        form.locator(f"input[value={said}][name={name}]").check()
    form.locator(f"input[name={name}-sure][value='{sure}']").check()
    form.locator("button").click()


def test_ten_questions_are_asked_answered_and_kept(opened):
    page = opened(PAGE)
    asked = names(page)
    assert len(asked) == 10
    decided = [name for name in asked if right_one(page, name)]
    assert len(decided) >= 9, "one key may wait for a recording"
    for at, name in enumerate(decided):
        unit = page.locator(f"#{name}").get_attribute("data-unit")
        right = right_one(page, name)
        wrong = f"{2 * float(right)}" if unit else min({"a", "b", "c"} - {right})
        say(page, name, right if at % 2 else wrong, 5 if at < 4 else 2)
        assert told(page, name).startswith("Kept: ")
    page.reload()
    for at, name in enumerate(decided):
        assert box(page, name).locator(f"input[value='{5 if at < 4 else 2}']:checked").count() == 1
        unfold(page, name)
        verdict = "right." if at % 2 else f"wrong, it is {right_one(page, name)}"
        assert verdict in told(page, name), name
    good = len(decided) // 2
    status = page.locator(".calibration [role=status]").text_content()
    assert status.startswith(f"{good} of {len(decided)} right, and ")
    rows = page.locator(".calibration tbody tr").all()
    cells = [row.locator("td.n").all_text_contents() for row in rows]
    assert cells[4] == ["5", "4", "2"] and cells[1][1] == str(len(decided) - 4)


def test_keys_follow_a_readers_own_numbers(opened):
    page = opened(PAGE)
    name = names(page)[0]
    say(page, name, "153", 4)
    page.locator("summary", has_text="Use your own machine").click()
    own = page.locator(".own-numbers")
    known = limits.from_datasheet(keys.A100)
    rows = [
        {"limit": each.name, "unit": each.unit, "measured": None, "datasheet": each.value}
        for each in known.values()
    ]
    own.locator("textarea").fill("no JSON")
    assert "not what the command prints" in own.locator("output").text_content()
    own.locator("textarea").fill(json.dumps({"machine": {}, "limits": rows}))
    pasted = follow(page, known)
    own.locator("button").click()
    assert page.locator(".yours:not([hidden])").count() == 0
    for key, constant in keys.CONSTANTS.items():
        value = known[constant.limit].value / 1e12
        own.locator(f"input[name={key}]").fill(f"{value:g}")
    assert follow(page, known) == pasted
    unfold(page, name)
    assert "right." in told(page, name), "153 FLOP/B is right for an A100"
    page.reload()
    assert page.locator(".yours b").all_text_contents()[0] == pasted[0]
    page.locator("summary", has_text="Use your own machine").click()
    own.locator("button").click()
    assert "wrong, it is" in told(page, name), "and wrong for the machine shown"


def follow(page, known: dict[str, limits.Ceiling]) -> list[str]:
    """What the keys say now, each as it is calculated from an A100's numbers."""
    assert "follow 4 of 4" in page.locator(".own-numbers output").text_content()
    numbers = keys.numbers(limits.Ceilings(keys.A100, known))
    table = page.locator("details", has_text="All keys that are numbers")
    mine = table.locator(".yours b").all_text_contents()
    cited = table.locator(".cited").all_text_contents()
    assert len(mine) == len(keys.KEYS)
    for said, key in zip(mine, keys.KEYS.values(), strict=True):
        seen, exact = (float(re.match(r"[\d.]+", each)[0]) for each in (said, key.of(numbers)))
        assert seen == pytest.approx(exact, rel=0.006)
    units = [[re.sub(r"[\d.]+", "", each) for each in all_] for all_ in (mine, cited)]
    assert units[0] == units[1]
    return page.locator(".yours b").all_text_contents()


def test_what_is_checked_and_written_is_kept_and_saved_as_markdown(opened):
    page = opened(PAGE)
    first, second, third = names(page)[:3]
    box(page, first).locator("input[type=number]").fill("3")
    box(page, first).locator("form button").click()
    assert told(page, first) == "", "the browser asks how sure"
    unfold(page, third)
    assert told(page, third) == "You looked first, so this one is not scored."
    assert page.locator(".calibration table").count() == 0

    boxes = page.locator(".checklist input[type=checkbox]")
    assert boxes.count() == 10 and boxes.first.is_enabled()
    assert page.locator(".checklist tr[aria-current] td").first.text_content() == "0 to 4"
    for at in range(8):
        page.locator(f"label[for=checked-{at}]").click(position={"x": 60, "y": 6})
    assert page.locator(".checklist output").text_content() == "8 of 10 checked."
    assert page.locator(".checklist tr[aria-current] td").first.text_content() == "8 to 9"

    areas = page.locator(".reflections textarea")
    assert areas.count() == 5
    areas.nth(1).fill("First Python,\nthen the dispatcher.")
    say(page, second, "b", 3)
    unfold(page, second)
    page.reload()
    assert page.locator(".checklist output").text_content() == "8 of 10 checked."
    page.get_by_role("checkbox", name=re.compile("memory ladder")).focus()
    page.keyboard.press("Space")
    assert page.locator(".checklist tr[aria-current] td").first.text_content() == "5 to 7"
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save all of it as Markdown").click()
    text = saved.value.path().read_text(encoding="utf-8")
    assert saved.value.suggested_filename == "reflection-1.md"
    assert text.startswith("# What do you know after two weeks?\n")
    assert "First Python,\nthen the dispatcher." in text and text.count("(nothing yet)") == 4
    assert text.count("- [x] ") == 7 and text.count("- [ ] ") == 3
    assert re.search(r"- 2\. .*You said b, sure 3 of 5: right\.", text)
    assert text.count("Not answered.") == 8


def test_without_a_script_all_of_it_is_there(opened):
    page = opened(PAGE, "no script")
    assert page.locator(".md-content :is(form, textarea)").count() == 0
    for fold in page.locator(f"{QUIZ} > details.answer").all():
        fold.locator("> summary").click()
        assert fold.locator(":not(summary)").first.is_visible()
    assert page.locator(".yours:visible").count() == 0
    assert (
        page.locator(".checklist li").count() == 10 and page.locator(".reflections li").count() == 5
    )
    assert "JavaScript" in page.locator(".calibration").text_content()


def test_the_page_is_not_too_long_nor_too_heavy_and_its_map_leads_to_its_days(opened, built):
    page = opened(PAGE)
    assert len((built.site / PAGE / "index.html").read_bytes()) < HEAVIEST
    page.evaluate("document.querySelector('#out-of-date')?.closest('.notice, div')?.remove()")
    assert page.evaluate("document.documentElement.scrollHeight") < TALLEST
    links = page.locator("svg[data-wide] a:visible")
    assert links.count() >= 7
    links.first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/curriculum/day_01/")


def test_it_fits_and_its_text_stands_out(opened):
    page = opened(PAGE, "phone")
    name = names(page)[0]
    say(page, name, "150", 3)
    unfold(page, name)
    assert page.locator(".calibration table").is_visible()
    page.locator("summary", has_text="Use your own machine").click()
    texts = (
        ".quiz .sure *, .quiz button, .own-numbers *, .calibration *, output, .reflections button"
    )
    for scheme, width in (("default", 360), ("slate", 1280)):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(f"document.body.dataset.mdColorScheme = '{scheme}'")
        # Not at once: what unfolds at one width moves to its place at the other.
        page.wait_for_function(f"width => ({SEEN})().width === width", arg=width)
        assert [each for each in contrasts(page, texts) if each[1] < LEAST] == []
