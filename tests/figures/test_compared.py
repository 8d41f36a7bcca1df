"""The page of two machines: without a second one, with one, and what it says of each."""

import re
from html import unescape
from types import SimpleNamespace

import pytest

from anatomy import page
from anatomy.claims import differences
from anatomy.figures.charts import clouds
from anatomy.figures.compared import agreement, predictions
from anatomy.judge import limits
from anatomy.judge.pace import GPU
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
    assert "On the Toy GPU copies" in text and "as on the Other GPU" in text
    assert "of them the opposite one" in text
    sentences = text.split(". ")
    numbers = [len(re.findall(r"\b\d[\d.]*×?(?= )", each)) for each in sentences]
    assert len(sentences) == 3 and max(numbers) <= 3, "no more are read at a glance"
    assert "measure a host-bound one" in sentences[-1], "and says what to do"


def test_speeds_within_a_twentieth_are_alike():
    assert predictions._beside(1.04) == "as fast" and predictions._beside(1.4) == "1.4× as fast"


def test_each_part_is_under_its_heading_and_whole(root):
    for part in PARTS[1:]:
        text = shown(part, root, heading="Which?")
        assert text.startswith("\n## Which?\n\n") and "See <code>this</code>" in text
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
    assert "<svg" in text and "contiguity.bench" in text and agreement.PANELS[GPU] in text
    before = text.partition("<figure")[0]
    assert re.search(
        r"Of GPU-bound ratios half differ by [\d.]+% at most, 95% by [\d.]+%\.", before
    )


def test_limits_predict_times_beside_the_measured_ones(root):
    text = unescape(shown("limits", root))
    copy = next(line for line in text.split("<tr>")[1:] if ">copy<" in line)
    assert copy.count("1.50×") >= 2  # what follows from the ceilings, and what was measured
    assert text.count("one small addition") == 1 and "predicted" in text.partition("<table")[0]


def test_another_machine_can_be_named(root):
    with using(synthetic.showing(root=root)):
        assert "Other GPU" in page.compared(against="other-gpu")
        with pytest.raises(UnknownName):
            page.compared(against="nonesuch")
        with pytest.raises(UnknownName):
            page.compared("nonesuch")


def test_only_rows_near_their_limit_on_both_machines_say_what_follows_from_it():
    def figure(old, new):
        before, now = ({"limit": "copy", "bytes": 1e12 * s, "median_s": 1.0} for s in (old, new))
        return SimpleNamespace(shift=SimpleNamespace(old_row=before, row=now))

    known = limits.Ceilings("toy", {"copy": limits.Ceiling("copy", 1e12, "B/s", "measured", "")})
    shares = ((0.9, 0.85), (0.9, 0.5), (0.5, 0.9), (1.5, 0.9))
    near = [predictions._near(figure(*both), (known, known)) for both in shares]
    assert near == [True, False, False, False], "the last has its data in a cache"


def test_one_cause_of_several_claims_is_told_once(root, monkeypatch):
    names = re.findall(r'" title="([a-z0-9-]+)">', shown("verdicts", root))
    told = {"other-gpu and toy-gpu": dict.fromkeys(names[:2], "Its kernels differ.")}
    monkeypatch.setattr(differences, "causes", lambda: told)
    text = shown("verdicts", root)
    assert len(names) > 1 and text.count("Its kernels differ.") == 1
    assert text.count("Cause: as above.") == 1


def test_a_chart_of_what_moved_reaches_from_half_to_twice_and_farther_if_need_be():
    def ends(*values, reach=1.0):
        points = [{"x": 1.0, "value": value, "series": "a"} for value in values]
        spec = clouds.moved(points, {"a": ("black", "circle")}, ("x", "y"), reach, width=328)
        return spec["layer"][-1]["encoding"]["y"]["scale"]["domain"]

    low, high = ends(1.01)
    assert low < 0.5 and high > 2 and ends(8.0)[1] > 8 and ends(1.0, reach=5.0)[0] < 0.2
