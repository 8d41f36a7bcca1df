"""What is wrong with a day's page ends the build with its place; a right one gets head and foot."""

import re
from pathlib import Path

import pytest

from anatomy.record.showing import Showing
from anatomy.site import lessons
from tests.fakes import toy_day
from tests.fakes.toy_day import DAY

TOY = Showing(Path("."), "toy-gpu", page="curriculum/day_02.md")
# What is changed on the day's page, and what the build then says; {line} is that of the change.
MISTAKES = {
    "too little time": ('{ data-minutes="20" }', '{ data-minutes="10" }', "take 140 minutes"),
    "no name": ('    { #d02-slice data-unit="×" }\n', "", "ends with a name"),
    "another day's name": ("#d02-time", "#d03-time", "begins with d02- and is no other box's"),
    "a name twice": ("#d02-time", "#d02-slice", "begins with d02- and is no other box's"),
    "no unit": (' data-unit="ms"', "", "a data-unit, or a list of choices"),
    "a wrong unit": (
        'data-unit="ms"',
        'data-unit="TB/s"',
        "reads '343 µs', which is no number of TB/s",
    ),
    "a typed answer": ("        It is [[", "        It is twice. <!-- [[", "no measured figure"),
    "no right choice": ("**a**{ .right }", "**a**", "names the right choice once"),
    "an unknown choice": ("**a**{ .right }", "**c**{ .right }", "names the right choice once"),
    "no fold": ('    ??? answer "One solution"', "    One solution:", "has its answer folded"),
    "a takeaway by itself": (
        "Slices cost. [[claim:slice-doubles-fp16 | verdict]]",
        "It is so.",
        "bound to a claim",
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_ends_the_build(tmp_path, what):
    right, mistaken, says = MISTAKES[what]
    assert right in DAY
    mistaken_day = DAY.replace(right, mistaken, 1)
    if what == "a typed answer":
        mistaken_day = mistaken_day.replace("| speed]].", "| speed]] -->", 1)
    built = toy_day.project(tmp_path, mistaken_day).build()
    assert built.status != 0 and "Traceback" not in built.said
    assert re.search(rf"curriculum/day_02\.md:\d+: .*{re.escape(says)}", built.said), built.said


def test_a_day_has_its_place_its_time_and_tomorrow(tmp_path):
    built = toy_day.project(tmp_path).build()
    assert built.status == 0, built.said
    html = built.read("curriculum/day_02/index.html")
    above = re.search(r'<p class="day-of".*?</p>\s*<h1', html)[0]
    assert "Phase I · " in above and '<a href="../week_1/">Week 1</a>' in above
    assert "Day 2 of 70 · up to 2.5 hours" in above
    spent = re.search(r'<ol class="spent".*?</ol>', html)[0]
    assert re.findall(r'flex-grow:(\d+)"><a href="#([\w-]+)">(\w+) <b>\1</b>', spent) == [
        ("10", "what-do-you-remember", "recall"),
        ("20", "predict-first", "predict"),
        ("60", "the-experiment", "experiment"),
        ("60", "exercises", "exercises"),
    ]
    assert '<a href="#predict-first">3 guesses first</a>' in html.partition('class="lead"')[0]
    tags = r'class="admonition takeaway">.*?</div>\s*<p class="said-once"'
    assert re.search(tags, html, re.DOTALL)
    assert html.index('class="lead"') < html.index('class="spent"') < html.index("outcomes")
    tomorrow = re.search(r'<aside class="tomorrow".*?</aside>', html)[0]
    assert "Day 3: Kernels and launches" in tomorrow and "not written yet" in tomorrow
    assert "Tomorrow" not in built.read("search/search_index.json")


def test_the_bar_of_a_day_joins_the_sections_of_a_part():
    sections = {
        "What do you remember?": 10,
        "Why?": 5,
        "Predict first": 15,
        "What is an SM?": 20,
        "And a warp?": 10,
        "The experiment: all of it": 20,
        "Break it": 10,
        "Exercises": 30,
        "The project": 20,
        "Misconception": 5,
        "Key takeaways": 5,
    }
    html = "".join(
        f'<h2 data-minutes="{minutes}" id="s{at}">{title}<a class="headerlink"></a></h2>'
        for at, (title, minutes) in enumerate(sections.items())
    )
    bar = re.findall(r'href="#(\w+)">(\w+) <b>(\d+)</b>', lessons.framed(html, 2, TOY))
    assert bar == [
        ("s0", "recall", "15"),
        ("s2", "predict", "15"),
        ("s3", "ideas", "30"),
        ("s5", "experiment", "30"),
        ("s7", "exercises", "30"),
        ("s8", "project", "20"),
        ("s9", "close", "10"),
    ]


@pytest.mark.parametrize(
    ("question", "answer", "says"),
    [
        ("<p>One?</p>", "<p>Yes.</p>", "ends with a name"),
        ('<p id="d14-x">One?</p>', "<p>Yes.</p>", "a data-unit, or a list of choices"),
        ('<p id="d14-x" data-unit="ms">One?</p>', "<p>Yes.</p>", "no measured figure"),
        ('<p id="d14-x" data-unit="ms">One?</p>', '<span class="measured">3 ms</span>', ""),
    ],
)
def test_a_quiz_asks_as_a_guess_does(question, answer, says):
    box = f'<div class="admonition quiz"><p class="admonition-title">1.</p>{question}'
    fold = f'<details class="answer"><summary>Answer</summary>{answer}</details></div>'
    minutes = (
        f'<h2 data-minutes="{lessons.MINUTES}" id="all">The quiz<a class="headerlink"></a></h2>'
    )
    found = [said for _, said in lessons.problems(minutes + box + fold, 14)]
    assert len(found) == bool(says) and all(says in each for each in found)
