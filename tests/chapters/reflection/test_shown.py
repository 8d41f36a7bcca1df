"""What day 14 shows: the concept map, drawn from recordings and where none is, and the quiz's keys,
which are what a learner finds on paper for two machines."""

import json
import re
from html import unescape

import pytest

from anatomy.chapters.reflection import concepts, keys, references
from anatomy.figures.curriculum import lists, outline
from anatomy.figures.diagrams import canvas
from anatomy.judge import limits
from anatomy.record.showing import Showing, using
from anatomy.table.errors import AnatomyError
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT

PAGE = "curriculum/day_14.md"
SHOWN = Showing(CHECKOUT / "recordings", "nvidia-h100-80gb-hbm3", page=PAGE)
DAYS = outline.parts("day")[:13]
# By hand, from round numbers: 2 TB/s and 300 TFLOP/s; 4 TB/s and 800 TFLOP/s.
SMALL = {"copy": 2e12, "read": 2e12, "bf16": 300e12, "fp32": 20e12}
LARGE = {"copy": 4e12, "read": 4.5e12, "bf16": 800e12, "fp32": 50e12}
RIGHT = {
    "bf16-ridge": ("150 FLOP/B", "200 FLOP/B"),
    "fp32-ridge": ("10.0 FLOP/B", "12.5 FLOP/B"),
    "chain-saved": ("0.805 ms", "0.403 ms"),
    "read-share": ("53.7%", "23.9%"),
    "relu-busy": ("1.25%", "1.00%"),
}


def test_every_arrow_has_a_recorded_number_and_a_sense_and_boxes_lead_to_their_days():
    with using(SHOWN):
        html = concepts.concept_map()
    picture, _, table = unescape(html).partition("<details")
    wide, narrow = re.findall(r"<svg.*?</svg>", picture, re.S)
    assert 'role="group"' in html and "aria-hidden" not in wide
    numbers = [concepts._said(SHOWN, arrow) for arrow in concepts.ARROWS]
    assert len(numbers) == 15 and "?" not in numbers
    written = {lists.address(SHOWN, day) for day in DAYS} - {None}
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


def test_what_nobody_recorded_is_a_question_mark_and_no_page_no_link(tmp_path, monkeypatch):
    monkeypatch.setattr(lists, "address", lambda showing, day: None)
    with using(synthetic.showing(tmp_path)):
        html = concepts.concept_map()
    assert html.count(">?<") >= 2 * 15 and "recordings are missing" in html
    assert "<a " not in html.partition("<details")[0].partition("<svg")[2]


@pytest.mark.parametrize("name", keys.KEYS)
def test_a_key_is_what_paper_says_for_two_machines_and_stands_on_the_page(name):
    assert tuple(keys.KEYS[name].of(numbers) for numbers in (SMALL, LARGE)) == RIGHT[name]
    page = (CHECKOUT / "docs" / PAGE).read_text(encoding="utf-8")
    (formula,) = re.findall(rf"\| (.*) \| \[\[key:{name}\]\] \| \[\[key:{name} \| cited", page)
    over, _, under = formula.rpartition(" / ")
    said = dict.fromkeys(re.findall(r"bf16|fp32|copy|read", over.rpartition("|")[2]), 1)
    said |= dict.fromkeys(re.findall(r"bf16|fp32|copy|read", under), -1)
    assert said == keys.KEYS[name].powers, "the table's formula is the key's"


def test_on_the_page_stand_the_machines_key_that_of_an_a100_and_a_formula_for_the_readers_own():
    shown, cited = (references.key(SHOWN, "bf16-ridge", spec) for spec in ("", "cited"))
    by_hand = SHOWN.ceilings.get("matmul bf16").value / SHOWN.ceilings.get("copy").value
    printed = float(re.search(r'class="measured"[^>]*>([\d.]+) FLOP/B<', shown)[1])
    assert printed == pytest.approx(by_hand, rel=0.005)
    told = json.loads(unescape(re.search(r'data-formula="([^"]*)"', shown)[1]))
    assert told == [1, {"bf16": 1, "copy": -1}]
    assert 'class="cited"' in cited and ">153 FLOP/B<" in cited and "datasheet" in cited


def test_a_machine_without_ceilings_shows_a_gap(tmp_path):
    nowhere = Showing(tmp_path, "toy-gpu", page=PAGE)
    assert "gap-inline" in references.key(nowhere, "bf16-ridge", "")
    assert keys.KEYS["bf16-ridge"].of({"bf16": 300e12}) is None


@pytest.mark.parametrize(("name", "spec"), [("bf16-rigde", ""), ("bf16-ridge", "B200")])
def test_an_unknown_key_or_format_is_named(name, spec):
    with pytest.raises(AnatomyError, match=r"bf16-ridge|cited"):
        references.key(SHOWN, name, spec)


def test_readers_type_constants_of_the_keys_which_the_command_machine_prints():
    own = keys.own_numbers()
    assert "need JavaScript" in own and own.count("TFLOP/s") == 2
    assert {each.limit for each in keys.CONSTANTS.values()} <= set(limits.known_names())
    assert {name for key in keys.KEYS.values() for name in key.powers} == {*keys.CONSTANTS}
