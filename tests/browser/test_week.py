"""The site's own days in headless Chromium: each guess is made, changed, kept over a reload
and scored, exercises know right from wrong, and the sliders say what the recordings and the count
of sectors say."""

import math
import re

import pytest

from anatomy.chapters.coalescing.sectors import sectors, useful_share
from tests.browser.test_curriculum import box, guess, told, unfold
from tests.fakes.sites import CHECKOUT

PAGES = sorted((CHECKOUT / "docs" / "curriculum").glob("day_*.md"))
# A day that looks back predicts nothing: test_reflection.py.
DAYS = [path.stem for path in PAGES if "!!! predict" in path.read_text(encoding="utf-8")]
POINTS = {1.0: 10, 2.0: 7, 0.5: 7, 30.0: 0}  # by the factor that a guess is off
BASES = r"(?:FLOP/s|B/s|FLOP/B|B|s)"
SIZES = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20}


@pytest.fixture(scope="module")
def address(built, serve):
    return serve(built.site)


def size(unit: str) -> float:
    found = re.fullmatch(rf"(\w*?){BASES}", unit)
    return SIZES.get(found[1], 1.0) if found else 1.0


def number(printed: str, unit: str) -> float:
    """A printed figure in the unit that its question asks for."""
    digits, own = re.match(r"([\d.,]+)\s?(\S*)", printed).groups()
    return float(digits.replace(",", "")) * size(own) / size(unit)


def boxes(page, kinds: str) -> dict[str, str | None]:
    """Names of the boxes that ask, each with its unit; a choice has none."""
    found = page.locator(f".admonition:is({kinds}):has(form.guess) > p[id]").all()
    return {each.get_attribute("id"): each.get_attribute("data-unit") for each in found}


def answers(page, name: str) -> list[str]:
    return (
        box(page, name).locator("details.answer :is(.measured, .right, .open)").all_text_contents()
    )


def recorded(built, day: str) -> bool:
    """Whether no figure of a day waits for a recording that has still to be made."""
    return "gap-inline" not in built.read(f"curriculum/{day}/index.html")


def test_weeks_are_guessed_kept_and_scored(opened, address, built):
    page = opened(f"curriculum/{DAYS[0]}/")
    expected, factors = {}, [*POINTS]
    for day in (day for day in DAYS if recorded(built, day)):
        page.goto(f"{address}curriculum/{day}/", wait_until="load")
        said, points = {}, {}
        for at, (name, unit) in enumerate(boxes(page, ".predict").items()):
            first = answers(page, name)[0]
            if unit:
                factor = factors[(at + len(expected)) % len(factors)]
                measured = number(first, unit)
                said[name] = f"{measured * factor:.6f}"
                sided = unit == "×" and abs(measured - 1) > 0.05
                across = sided and (measured * factor - 1) * (measured - 1) <= 0
                points[name] = 0 if across else POINTS[factor]
                guess(page, name, "1")
            else:
                named = box(page, name).locator("details.answer :is(.right, .open)")
                right, open_ = named.text_content(), "open" in named.get_attribute("class")
                letters = (
                    box(page, name).locator("input").evaluate_all("all => all.map(e => e.value)")
                )
                said[name] = right if len(expected) % 2 else min({*letters} - {right})
                points[name] = None if open_ else 10 * (said[name] == right)
                guess(page, name, letters[0])
            guess(page, name, said[name])  # it can be changed until the answer is unfolded
        page.reload()
        for name, kept in said.items():
            value = (
                "document.forms[0] && new FormData(document.getElementsByName(%r)[0].form).get(%r)"
            )
            assert page.evaluate(value % (name, name)) == kept, "what was kept before the reload"
            assert told(page, name).startswith("Kept: ") and "points" not in told(page, name)
            unfold(page, name)
            scored = "without" if points[name] is None else f": {points[name]} of 10"
            assert f"{scored} points" in told(page, name), name
            for beside in page.locator(f"a.guess[href='#{name}'] + span").all():
                assert told(page, name) in beside.text_content()
        assert len(said) >= 2
        known = [each for each in points.values() if each is not None]
        expected[int(day[-2:])] = sum(known), 10 * len(known)
    assert len(expected) >= 7
    other = 'localStorage.setItem(\'anatomy-guess d15-next\', \'{"said": "1", "points": 10}\')'
    page.evaluate(other)
    for week in {math.ceil(day / 7) for day in expected}:
        page.goto(f"{address}curriculum/week_{week}/", wait_until="load")
        mine = {day: each for day, each in expected.items() if math.ceil(day / 7) == week}
        for day, (total, most) in mine.items():
            shown = page.locator(f"li[data-day='{day}'] .score").text_content()
            assert shown == f"{total} of {most} points"
        total, most = (sum(each) for each in zip(*mine.values(), strict=True))
        assert 0 < total < most
        shown = page.inner_text(".week-score")
        assert f"Your score: {total} of {most} points, from {most // 10} guesses." in shown


@pytest.mark.parametrize("day", DAYS)
def test_an_exercise_knows_the_answer_that_it_folds_away(opened, built, day):
    if not recorded(built, day):
        pytest.skip("it is not recorded there yet")
    page = opened(f"curriculum/{day}/")
    for name, unit in boxes(page, ".calculate, .measure").items():
        low, _, high = answers(page, name)[0].partition(" to ")
        least, most = number(low, unit), number(high or low, unit)
        for said, verdict in ((most, "Right."), (least / 3, "Too small"), (3 * most, "Too large")):
            guess(page, name, f"{said:.9f}")
            assert told(page, name).startswith(verdict), (name, said)


def test_a_part_of_a_wave_is_not_taken_for_an_answer(opened):
    page = opened("curriculum/day_02/")
    waves = number(answers(page, "d02-thousand")[0], "waves")
    guess(page, "d02-thousand", f"{waves - 0.3}")
    assert told(page, "d02-thousand") == "Too small: a part of a wave takes as long as a whole one."
    guess(page, "d02-thousand", f"{waves:.0f}")
    assert told(page, "d02-thousand") == "Right."


@pytest.mark.parametrize("day", DAYS)
def test_without_a_script_every_box_of_a_day_folds_its_answer(opened, day):
    page = opened(f"curriculum/{day}/", "no script")
    asking = page.locator(".admonition:is(.predict, .calculate, .measure, .build)")
    assert asking.count() >= 5 and page.locator("form.guess, input[type=range]").count() == 0
    folds = asking.locator("> details.answer")
    assert folds.count() == asking.count()
    folds.first.locator("> summary").click()
    assert folds.first.locator(":not(summary)").first.is_visible()
    opens = """all => all.map(fold => {
      fold.open = true;
      return fold.querySelector(':scope > :not(summary)').checkVisibility() && fold.innerText;
    })"""
    assert all(len(text or "") > 20 for text in folds.evaluate_all(opens))


def test_the_staircase_is_climbed_by_keyboard(opened):
    page = opened("curriculum/day_02/")
    figure = page.locator(".waves")
    places, fixed, wave = (
        float(figure.get_attribute(f"data-{name}")) for name in ("at-once", "fixed-s", "wave-s")
    )
    told_before = figure.locator("p").text_content()
    assert f"{places + 1:.0f} blocks: 2 waves" in told_before
    slider = figure.get_by_label("Blocks in the launch")
    slider.focus()
    for key, blocks in (("ArrowLeft", places), ("End", 4 * places), ("Home", 1), ("ArrowUp", 2)):
        page.keyboard.press(key)
        assert slider.input_value() == f"{blocks:.0f}"
        waves = math.ceil(blocks / places)
        last = blocks - (waves - 1) * places
        said = figure.get_by_role("status").text_content()
        assert f"{blocks:.0f} blocks: {waves} waves, about " in said
        assert f"fills {last:.0f} of {places:.0f} places" in said
        assert f"{blocks / waves / places:.0%} are used" in said
        took = re.search(r"about ([\d.]+) µs", said)[1]
        assert float(took) == pytest.approx(1e6 * (fixed + waves * wave), rel=0.01)
        label = figure.locator("[role=img]").get_attribute("aria-label")
        assert label.endswith(f"wave {waves} of {blocks:.0f} blocks fills {last:.0f}.")
        for picture in figure.locator("svg").all():
            assert picture.locator("rect[fill='var(--chart-1)']").count() == last
    # What is calculated is what was measured, where the table has that number of blocks.
    page.keyboard.press("End")
    rows = page.locator("figure:has(.waves) details.twin tr")
    row = rows.filter(has=page.get_by_text(f"{4 * places:.0f} blocks", exact=True)).first
    measured = float(row.locator("span[title]").get_attribute("title").split()[0])
    said = figure.get_by_role("status").text_content()
    assert float(re.search(r"about ([\d.]+) µs", said)[1]) == pytest.approx(measured, rel=0.05)


def test_the_sectors_that_are_drawn_are_those_that_are_counted(opened):
    page = opened("curriculum/day_05/")
    place = page.locator("div.sectors")
    stride, offset = place.get_by_label("stride"), place.get_by_label("offset")
    said = place.locator("p[role=status]")
    chosen = [1, 0]
    stride.focus()
    for slider, at, key, value in (
        (stride, 0, "ArrowRight", 2), (stride, 0, "End", 32), (stride, 0, "Home", 1),
        (offset, 1, "ArrowRight", 4), (offset, 1, "End", 128),
    ):  # fmt: skip
        slider.focus()
        page.keyboard.press(key)
        chosen[at] = value
        moved, used = len(sectors(*chosen)), 100 * useful_share(*chosen)
        assert said.text_content().startswith(f"{moved} sectors ")
        assert float(re.search(r"([\d.]+)% of", said.text_content())[1]) == pytest.approx(
            used, 0.01
        )
        assert place.locator("rect.moved").count() == moved
        assert re.search(r"Measured from HBM: \d", said.text_content())
    assert place.locator("output").all_text_contents() == ["1 element", "128 bytes"]
    counted = place.evaluate(
        """place => {
          const [stride, offset] = place.querySelectorAll('input'), found = [];
          for (let s = 1; s <= 32; s++) for (let o = 0; o <= 128; o += 4) {
            [stride.value, offset.value] = [s, o];
            offset.dispatchEvent(new Event('input'));
            found.push([s, o, parseInt(place.querySelector('p').textContent)]);
          }
          return found;
        }"""
    )
    assert counted == [[s, o, len(sectors(s, o))] for s, o, _ in counted] and len(counted) == 1056
