"""The concept map: drawn from recordings, and where none is."""

import re
from html import unescape

import pytest

from anatomy.chapters.reflection import concepts
from anatomy.figures.curriculum import lists, outline
from anatomy.figures.diagrams import canvas
from anatomy.record.showing import Showing, using
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT

DAYS = outline.parts("day")[:13]


@pytest.mark.parametrize("machine", ["nvidia-h100-80gb-hbm3", "nvidia-h200"])
def test_every_arrow_has_a_recorded_number_and_a_sense_and_boxes_lead_to_their_days(machine):
    shown = Showing(CHECKOUT / "recordings", machine, page="curriculum/day_14.md")
    with using(shown):
        html = concepts.concept_map()
    picture, _, table = unescape(html).partition("<details")
    wide, narrow = re.findall(r"<svg.*?</svg>", picture, re.S)
    assert 'role="group"' in html and "aria-hidden" not in wide
    numbers = [concepts._said(shown, arrow) for arrow in concepts.ARROWS]
    assert len(numbers) == 15 and "?" not in numbers
    written = {lists.address(shown, day) for day in DAYS} - {None}
    assert len(written) >= 7
    for drawn in (wide, narrow):
        assert all(f">{number.partition(' (')[0]}</text>" in drawn for number in numbers)
        assert set(re.findall('<a href="([^"]*)"><rect', drawn)) == written
    assert all(told in table for arrow in concepts.ARROWS for told in (arrow.sense, *numbers))


def test_every_day_before_the_last_is_a_concept_and_is_reached_from_above():
    row = {day: concept[2] for day, concept in concepts.CONCEPTS.items()}
    assert {*row} == {day.number for day in DAYS}
    assert {arrow.end for arrow in concepts.ARROWS} | {1, 8} == {*row}
    assert all(row[arrow.start] < row[arrow.end] for arrow in concepts.ARROWS)
    names, *places = zip(*concepts.CONCEPTS.values(), strict=True)
    assert len(set(zip(*places, strict=True))) == 13, "two concepts lie on each other"
    assert all(canvas.wide(name, 11, bold=True) <= concepts.BOX for name in names)


def test_a_number_that_nobody_recorded_is_a_question_mark_and_no_page_no_link(tmp_path, monkeypatch):
    monkeypatch.setattr(lists, "address", lambda showing, day: None)
    with using(synthetic.showing(tmp_path)):
        html = concepts.concept_map()
    assert html.count(">?<") >= 2 * 15 and "recordings are missing" in html
    assert "<a " not in html.partition("<details")[0].partition("<svg")[2]
