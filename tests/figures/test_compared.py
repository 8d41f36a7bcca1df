"""The page of two machines: without a second one, with one, and what it says of each."""

import re
from html import unescape

import pytest

from anatomy import page
from anatomy.claims import differences
from anatomy.figures.charts import clouds, grammar
from anatomy.figures.compared import agreement
from anatomy.record.showing import using
from anatomy.table.errors import UnknownName
from tests.fakes import synthetic, two_machines
from tests.site.test_page import Balance

PARTS = ("answer", "verdicts", "ratios", "limits")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return two_machines.made(tmp_path_factory.mktemp("two"))


def shown(part, root=None, heading=None, **given):
    with using(synthetic.showing(root=root, **given)):
        return page.compared(part, heading=heading, caption="See `this`.")


def test_without_a_second_machine_there_is_one_sentence_and_nothing_else():
    said = [shown(part, heading="Heading") for part in PARTS]
    assert said[0].startswith("A second machine is not recorded yet") and "import FILE" in said[0]
    assert said[1:] == [""] * 3


def test_while_pages_are_collected_nothing_is_shown(root):
    assert shown("ratios", root, collecting=True) == ""


def test_the_answer_counts_what_differs(root):
    text = shown("answer", root)
    assert text.count("`toy-gpu` and `other-gpu`") == 1 and "turned round" in text
    assert len(re.findall(r"\b\d+\b", text)) == 3, "no more are read at a glance"


def test_each_part_is_under_its_heading_and_whole(root):
    for part in PARTS[1:]:
        text = shown(part, root, heading="Which?")
        assert text.startswith("\n## Which?\n\n<figure") and "See <code>this</code>" in text
        Balance(text)


def test_verdicts_stand_side_by_side_with_their_cause(root, monkeypatch):
    told = {"other-gpu and toy-gpu": {"slice-doubles-fp16": "Its `kernels` differ."}}
    monkeypatch.setattr(differences, "causes", lambda: told)
    text = shown("verdicts", root)
    row = next(line for line in text.split("<tr>") if "slice-doubles-fp16" in line)
    assert "Cause: Its <code>kernels</code> differ." in row
    assert "holds" in row and "fails" in row
    assert differences.NOT_KNOWN_YET in text


def test_ratios_of_both_are_drawn_and_listed_by_experiment(root):
    text = shown("ratios", root)
    assert "<svg" in text and "contiguity.bench" in text and agreement.PANELS[""] in text


def test_limits_predict_times_beside_the_measured_ones(root):
    text = unescape(shown("limits", root))
    copy = next(line for line in text.split("<tr>") if ">copy<" in line)
    assert copy.count("1.50×") >= 2  # what follows from the ceilings, and what was measured
    assert "asking for one small addition" in text


def test_another_machine_can_be_named(root):
    with using(synthetic.showing(root=root)):
        assert "other-gpu" in page.compared(against="other-gpu")
        with pytest.raises(UnknownName):
            page.compared(against="nonesuch")
        with pytest.raises(UnknownName):
            page.compared("nonesuch")


def test_intervals_that_no_reader_would_see_are_not_drawn():
    point = {"x": 1.0, "value": 1.2, "series": "a", "hover": "one"}
    wide = point | {"x_low": 0.5, "x_high": 2.0, "low": 0.6, "high": 2.4}
    narrow = point | {"x_low": 0.999, "x_high": 1.001, "low": 1.199, "high": 1.201}

    def rules(*points):
        spec = clouds.pairs([*points, point | {"x": 30.0}], ["a"], ("x", "y"), width=328)
        return [each for each in spec["layer"] if each["mark"]["type"] == "rule"]

    assert rules(narrow) == [] and len(rules(wide)) == 2
    assert grammar.members([wide]) == ["a"]
