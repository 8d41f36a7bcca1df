"""The concept map, drawn from recordings and where none is; and the table of keys."""

import re
from html import unescape

import pytest

from anatomy.chapters.reflection import concepts, figures
from anatomy.figures.curriculum import outline
from anatomy.figures.diagrams.canvas import Canvas
from anatomy.record.showing import Showing, using
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT


@pytest.fixture(scope="module")
def shown() -> Showing:
    return Showing(CHECKOUT / "recordings", "nvidia-h100-80gb-hbm3", page="curriculum/day_14.md")


def test_every_arrow_of_the_map_has_a_recorded_number_and_a_sense(shown):
    with using(shown):
        html = concepts.concept_map()
    pictures = re.findall(r"<svg.*?</svg>", html, re.S)
    assert len(pictures) == 2 and 'role="group"' in html and "aria-hidden" not in pictures[0]
    numbers = [concepts._said(shown, arrow) for arrow in concepts.ARROWS]
    assert len(numbers) == 15 and "?" not in numbers
    for picture in pictures:
        assert all(concepts._short(number) in unescape(picture) for number in numbers)
    table = html.partition("<details")[2]
    assert all(arrow.sense in unescape(table) for arrow in concepts.ARROWS)
    written = {day for day in concepts.CONCEPTS if concepts._address(shown, day)}
    assert {1, 7} <= written
    linked = set(re.findall(r'<a href="([^"]*)">', pictures[0]))
    assert linked == {concepts._address(shown, day) for day in written}


def test_every_day_before_the_last_is_a_concept_and_is_reached(shown):
    days = {each.number for each in outline.parts("day")[:13]}
    assert set(concepts.CONCEPTS) == days
    reached = {arrow.end for arrow in concepts.ARROWS} | {1, 8}
    assert reached == days and {arrow.start for arrow in concepts.ARROWS} <= days
    places = {concept[1:] for concept in concepts.CONCEPTS.values()}
    assert len(places) == len(days), "two concepts lie on each other"


def test_a_number_that_nobody_recorded_is_a_question_mark(tmp_path):
    with using(synthetic.showing(tmp_path)):
        html = concepts.concept_map()
    assert html.count(">?<") >= 2 * 15 and "recordings are missing" in html


def test_what_is_drawn_inside_a_link_leads_there_and_without_an_address_nowhere():
    sheet = Canvas(100)
    with sheet.link("../day_02/"):
        sheet.box(0, 0, 10, 10)
    with sheet.link(None):
        sheet.words(0, 20, "plain")
    drawn = sheet.svg("wide")
    assert '<a href="../day_02/"><rect' in drawn and drawn.count("<a ") == 1
    assert "aria-hidden" not in drawn and sheet.height == 24


def test_all_keys_stand_in_a_table_beside_those_of_an_a100(shown):
    with using(shown):
        html = figures.all_keys()
    assert html.count('class="measured"') == html.count('class="cited"') == len(figures.keys.KEYS)
    own = figures.own_numbers()
    assert "need JavaScript" in own and own.count("TFLOP/s") == 2
