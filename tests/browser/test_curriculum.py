"""A day of the curriculum in headless Chromium: a guess is kept, shown beside what was measured and
scored, with a mouse and with the keyboard alone; and all is there without a script. The day is
made up, and so is the machine."""

import math
import re

import pytest

from tests.browser.conftest import SETTINGS
from tests.browser.contrast import LEAST, contrasts
from tests.browser.test_browser import SEEN
from tests.fakes import toy_day

DAY, WEEK = "curriculum/day_02/", "curriculum/week_1/"
PATHS = ["", DAY, WEEK]


@pytest.fixture(scope="module")
def address(tmp_path_factory, serve):
    built = toy_day.project(tmp_path_factory.mktemp("day")).build()
    assert built.status == 0, built.said
    return serve(built.site)


def box(page, name: str):
    """The box of one question."""
    return page.locator(".admonition", has=page.locator(f"#{name}"))


def guess(page, name: str, said: str) -> None:
    if box(page, name).locator("input[type=number]").count():
        box(page, name).locator("input").fill(said)
    else:
        box(page, name).locator(f"input[value={said}]").check()
    box(page, name).locator("form.guess button").click()


def told(page, name: str) -> str:
    return box(page, name).locator("output").inner_text()


def unfold(page, name: str) -> None:
    box(page, name).locator("details.answer summary").click()
    page.wait_for_function("name => document.getElementsByName(name)[0].disabled", arg=name)


def measured(page, name: str) -> float:
    text = box(page, name).locator("details.answer .measured").first.text_content()
    return float(re.match(r"[\d.]+", text)[0])


def test_a_guess_is_kept_shown_beside_the_measurement_and_scored(opened, address):
    page = opened(DAY)
    guess(page, "d02-slice", "4")
    guess(page, "d02-time", "0.04")
    guess(page, "d02-holds", "b")
    assert "of 10" not in told(page, "d02-slice"), "the score would tell before the answer does"
    page.reload()
    assert box(page, "d02-slice").locator("input").input_value() == "4"
    assert box(page, "d02-holds").locator("input[value=b]").is_checked()
    for name in ("d02-slice", "d02-time", "d02-holds"):
        unfold(page, name)
    factor = 4 / measured(page, "d02-slice")
    points = round(10 * (1 - math.log10(factor)))
    assert points == 7, "a factor of 2 is worth seven points"
    said = f"You said 4×, measured 2.0× slower: {points} of 10 points."
    assert told(page, "d02-slice") == said
    assert page.locator("a.guess").locator("..").inner_text() == f"Your guess: {said}"
    # The box asks for milliseconds, and the page prints microseconds.
    more = round(10 * (1 - abs(math.log10(40 / measured(page, "d02-time")))))
    assert 0 < more < 10 and told(page, "d02-time").endswith(f": {more} of 10 points.")
    assert told(page, "d02-holds") == "You said b, measured a: 0 of 10 points."
    page.goto(address + WEEK)
    sum_of_all = f"{points + more} of 30 points"
    assert f"Your score: {sum_of_all}, from 3 guesses." in page.inner_text(".week-score")
    assert page.inner_text("li[data-day='2'] .score") == sum_of_all
    page.click(".week-score button")
    assert "no guesses" in page.inner_text(".week-score")
    assert page.locator(".score").count() == 0


def test_a_guess_on_the_wrong_side_of_1_has_no_points(opened):
    page = opened(DAY)
    assert measured(page, "d02-slice") > 1.2
    guess(page, "d02-slice", "1")
    unfold(page, "d02-slice")
    assert told(page, "d02-slice").endswith(": 0 of 10 points, for the wrong side of 1.")


def test_who_looks_first_is_not_scored(opened):
    page = opened(DAY)
    unfold(page, "d02-slice")
    assert told(page, "d02-slice") == "You looked first, so this one is not scored."
    assert not box(page, "d02-slice").locator("button").is_visible()
    page.reload()
    assert box(page, "d02-slice").locator("input").is_disabled()


def test_what_the_recording_does_not_settle_has_no_points(opened):
    page = opened(DAY)
    right = box(page, "d02-holds").locator(".right")
    right.evaluate("each => each.className = 'open'")
    box(page, "d02-holds").locator("input").first.check()
    box(page, "d02-holds").locator("button").click()
    unfold(page, "d02-holds")
    said = "not settled by this machine, so without points."
    assert told(page, "d02-holds").endswith(said)
    assert "points, from" not in page.locator("article").inner_text()


def test_exercises_say_whether_a_figure_is_right(opened):
    page = opened(DAY)
    exact = measured(page, "d02-two")
    for said, answer in ((exact, "Right."), (exact / 2, "Too small"), (exact * 2, "Too large")):
        guess(page, "d02-two", f"{said:.0f}")
        assert told(page, "d02-two").startswith(answer)
    guess(page, "d02-two", f"{exact * 1000:.0f}")
    assert "by a factor of 1000: a prefix" in told(page, "d02-two")
    # Within the range that stands in the fold, which is wider than the interval.
    low, high = (
        float(n)
        for n in re.findall(r"\d+", box(page, "d02-mine").locator(".measured").text_content())
    )
    assert low < exact / 1.1 and high > exact * 1.1
    for said, answer in ((low + 1, "Right."), (low - 1, "Too small"), (high + 1, "Too large")):
        guess(page, "d02-mine", f"{said:.0f}")
        assert told(page, "d02-mine").startswith(answer)


def test_the_keyboard_is_enough(opened):
    page = opened(DAY)
    box(page, "d02-slice").locator("input").focus()
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    assert told(page, "d02-slice").startswith("Kept: 2×.")
    page.keyboard.press("Tab")  # to the button
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # unfolds the answer
    # Not until it is open: what is told then is written by an event that comes after.
    page.wait_for_function("document.getElementsByName('d02-slice')[0].disabled")
    assert told(page, "d02-slice").endswith("10 of 10 points.")
    box(page, "d02-holds").locator("input").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert told(page, "d02-holds").startswith("Kept: b.")


def test_without_a_script_every_answer_is_there_and_nothing_asks_for_input(opened):
    page = opened(DAY, "no script")
    assert page.locator("form.guess, .admonition input, .admonition button").count() == 0
    for fold in page.locator("details.answer, details.recall").all():
        assert not fold.locator("p").first.is_visible()
        fold.locator("summary").click()
        assert fold.locator("p").first.is_visible()
    assert page.locator(".predict ul li").all_inner_texts() == ["a it does", "b it does not"]
    assert page.locator("a.guess").get_attribute("href") == "#d02-slice"


@pytest.mark.parametrize("setting", ["light", "dark", "phone"])
@pytest.mark.parametrize("path", PATHS)
def test_pages_fit_and_text_stands_out(opened, path, setting):
    page = opened(path, setting)
    seen = page.evaluate(SEEN)
    assert seen["width"] == SETTINGS[setting]["viewport"]["width"] and seen["heading"]
    texts = ".day-of, .spent *, .admonition-title, form.guess button, output, .tomorrow p, .days *"
    assert [each for each in contrasts(page, f"{texts}, h2[data-minutes]") if each[1] < LEAST] == []
