"""Diagrams of the method: they draw at both widths, within the sheet, and say what the rows say."""

from types import SimpleNamespace

import pytest

from anatomy import claims
from anatomy.chapters.harnesses import interleaved
from anatomy.figures.diagrams.topics import OTHERS, topics
from anatomy.record.showing import using
from anatomy.table.errors import BadParameter
from tests.chapters.harnesses import contests
from tests.chapters.sync_points.test_drawings import drawn
from tests.fakes import synthetic
from tests.fakes.later import again


@pytest.fixture
def shown(tmp_path):
    contests.example(tmp_path)
    with using(synthetic.showing(tmp_path)) as showing:
        yield showing


def test_blocks_are_drawn_with_the_ratios_the_interval_and_the_verdict(shown):
    found = shown.find("worked_example.kernel").recording.rows
    table = [row for row in found if row["quantity"] == "gpu_cold"]
    trio = interleaved.recorded(table)
    html = interleaved.interleaved("worked_example.kernel", quantity="gpu_cold")
    for picture in drawn(html):
        assert interleaved._interval(trio.variant) in picture
        assert f">{trio.variant['verdict']}<" in picture and "noise floor" in picture
        assert f">{trio.count}<" in picture, "each block has its number"
    ratios = trio.ratios(trio.again)
    assert len(ratios) == trio.count
    assert ratios[0] == trio.again["blocks_s"][0] / trio.control["blocks_s"][0]


def test_what_several_occasions_leave_open_stands_beside_this_occasions_verdict(shown):
    found = shown.find("worked_example.kernel")
    again(found.recording.path, lambda row: 1.2 if row["role"] == "variant" else 1.0)
    with using(synthetic.showing(found.recording.path.parents[2])) as later:
        html = interleaved.interleaved("worked_example.kernel", quantity="gpu_cold")
        table = later.find("worked_example.kernel").recording.rows
    (wide,) = (r for r in table if (r["role"], r["quantity"]) == ("variant", "gpu_cold"))
    for picture in drawn(html):
        assert ", now:<" in picture and ">c. an earlier day:<" in picture
        assert ">d. on these pages:<" in picture
        assert interleaved._interval(wide) in picture


def test_two_variants_at_once_are_not_drawn(shown):
    with pytest.raises(BadParameter, match="one variant beside them"):
        interleaved.recorded(shown.find("worked_example.kernel").recording.rows)


def test_topics_are_parted_by_verdict_and_small_ones_drawn_together():
    words = {
        "fusion": [claims.HOLDS] * 3 + [claims.FAILS] * 2,
        "learning": [claims.INCONCLUSIVE],
        "attention": [claims.HOLDS, claims.NOT_MEASURABLE],
    }
    found = [
        SimpleNamespace(word=word, claim=SimpleNamespace(topic=topic))
        for topic, each in words.items()
        for word in each
    ]
    html = topics(found)
    assert f"fusion: 3 {claims.HOLDS}, 2 {claims.FAILS}; {OTHERS}: 1 {claims.HOLDS}" in html
    for picture in drawn(html):
        assert picture.index(">fusion<") < picture.index(f">{OTHERS}<")
    assert topics([]) == ""
