"""How far off the inherited numbers are: what is counted, what is drawn, and what is left out."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from anatomy import claims, page
from anatomy.claims import ledger
from anatomy.figures.charts import diagonals, labels, loglog
from anatomy.figures.charts.tradeoffs import Scale
from anatomy.figures.ledger import chart
from anatomy.record.showing import using
from tests.fakes import synthetic
from tests.site.test_page import Balance

SHOWING = synthetic.Showing(root=synthetic.shared(), machine="toy-gpu")


def result(claimed, *ends, word="holds", unit="x", cases=1, name="c", row=1) -> claims.Result:
    """A claim on a number or a range, with the median and the ends that were measured."""
    seen = claims.Measured(*ends, unit, cases) if ends else None
    claim = claims.Claim(
        name, f"Is {name}.", "", row, claimed=claimed, unit=unit, number=f"{claimed}"
    )
    return claims.Result(claim, word, "", (), seen, machine="toy-gpu")


def drawn(*results: claims.Result, width=680, unit="x") -> dict:
    words = list(dict.fromkeys(each.word for each in results))
    points = [chart.point(each) for each in results]
    return diagonals.against(points, words, unit, [1.25, 2.0], width=width)


def layers(spec: dict, kind: str) -> list[dict]:
    return [each for each in spec["layer"] if each["mark"]["type"] == kind]


def marks(spec: dict) -> dict[str, dict]:
    """The mark of each claim by the number of its row."""
    large = [each for each in layers(spec, "point") if each["mark"]["size"] == 62]
    assert len(large) == 1
    return {row["hover"].partition(" ")[0]: row for row in large[0]["data"]["values"]}


def said(*results: claims.Result) -> str:
    return re.sub("<.*?>", "", chart.accuracy(SHOWING, results))


def test_the_sentence_counts_what_is_close_near_and_far():
    found = [
        result((2.0, 2.0), 2.4, 2.3, 2.5),  # by 1.2
        result((2.0, 4.0), 3.0, 1.9, 4.1),  # within the range
        result((2.0, 2.0), 1.25, 1.2, 1.3),  # by 1.6
        result((2.0, 4.0), 0.9, 0.8, 1.0),  # less, by 2.2 from the near end
        result((2.0, 4.0), 9.0, 8.0, 10.0),  # more, by 2.25
        result((2.0, 4.0), 12.0, 8.0, 15.0),
    ]
    told = said(*found)
    assert "Of 6 inherited numbers" in told
    assert "2 are within a factor of 1.25 of the claim, and 1 more within a factor of 2." in told
    assert "Further off are 3: 1 below the claim, 2 above it." in told
    assert "several cases" not in told
    assert "1 more" not in said(*(each for each in found if each is not found[2]))


def test_a_median_that_is_right_does_not_hide_single_cases():
    right = result((2.0, 2.0), 2.0, 1.9, 2.2, cases=9)
    high = result((2.0, 4.0), 3.0, 1.9, 8.1, cases=9)
    low = result((2.0, 4.0), 3.0, 0.9, 4.0, cases=9)
    assert "0 of these 1 are off" in said(right)
    assert "2 of these 3 are off" in said(right, high, low)


def test_only_inherited_numbers_of_this_machine_are_counted():
    ours = result((2.0, 2.0), 9.0, 8.0, 10.0, row=None)
    theirs = replace(result((2.0, 2.0), 9.0, 8.0, 10.0), machine="other-gpu")
    assert "Of 1 inherited" in said(result((2.0, 2.0), 2.0, 1.9, 2.1), ours, theirs)
    assert "has a measured one beside it yet" in said(ours, theirs)


def test_a_claim_without_a_number_is_left_out_and_counted():
    found = [
        result((2.0, 2.0), 2.0, 1.9, 2.1, name="a"),
        result(None, 2.0, 1.9, 2.1, name="b"),
        result((2.0, 2.0), 2.0, 1.9, 2.1, word=claims.NOT_MEASURABLE, name="c"),
        result((2.0, 2.0), word=claims.NOT_RECORDED, name="d"),
        result((2.0, 2.0), word=claims.NOT_RECORDED, name="e"),
        result((0.0, 0.0), 2.0, 1.9, 2.1, name="f"),  # no place on a logarithmic axis
    ]
    reckoned = result((2.0, 2.0), 9.0, 9.0, 9.0, name="g")
    sheet = replace(reckoned.measured, recorded=False)
    found.append(replace(reckoned, measured=sheet))  # by a datasheet: nothing was measured
    assert [each.claim.name for each in chart.comparable(found)] == ["a"]
    assert list(chart.left_out(found).values()) == [1, 2, 2, 1]
    html = chart.chart(SHOWING, found)
    assert "1 of 7 inherited statements are drawn" in html
    assert "1 state no number, 2 can't be put to the test on this machine, 2 wait" in html


def test_every_inherited_statement_is_drawn_or_counted():
    found = chart.inherited(SHOWING, ledger.results(synthetic.showing()))
    kept = chart.comparable(found)
    assert kept and len(found) == 158
    assert len(kept) + sum(chart.left_out(found).values()) == len(found)
    with using(synthetic.showing()):
        html = page.ledger("chart")
    Balance(html)
    assert f"{len(kept)} of 158 inherited statements are drawn" in html
    for each in kept:
        assert each.claim.statement.split(" ")[0] in html
        assert chart.described(each).rpartition(" Verdict: ")[2] == f"{each.word}."


def test_a_claimed_range_is_a_bar_and_its_mark_stands_at_the_end_that_is_nearest():
    spec = drawn(
        result((2.0, 4.0), 3.0, 2.9, 3.1, row=1),
        result((2.0, 4.0), 8.0, 7.9, 8.1, row=2),
        result((2.0, 4.0), 0.5, 0.4, 0.6, row=3),
        result((9.0, 9.0), 9.0, 8.9, 9.1, row=4),
    )
    at = {row: point["x"] for row, point in marks(spec).items()}
    assert at == pytest.approx({"1": 3.0, "2": 4.0, "3": 2.0, "4": 9.0})
    bars = next(
        each
        for each in layers(spec, "rule")
        if each["encoding"].get("x2", {}).get("field") == "claimed_high"
    )
    assert {row["hover"][0] for row in bars["data"]["values"]} == {"1", "2", "3"}


def test_both_axes_have_the_same_ends_so_that_the_diagonal_is_one():
    spec = drawn(result((2.0, 4.0), 40.0, 30.0, 50.0), result((0.5, 0.5), 1.0, 0.9, 1.1))
    point = next(each for each in layers(spec, "point") if each["mark"]["size"] == 62)
    x, y = (point["encoding"][axis]["scale"] for axis in "xy")
    assert x == y and x["type"] == "log"
    assert x["domain"][0] < 0.5 and x["domain"][1] > 50
    ends = layers(spec, "line")[0]["data"]["values"]
    assert all(end["x"] == end["value"] for end in ends)
    assert [end["x"] for end in ends] == x["domain"]
    bands = [each["data"]["values"][0] for each in layers(spec, "area")]
    assert [band["upper"] / band["x"] for band in bands] == [2.0, 1.25]


def test_a_verdict_is_told_by_colour_and_by_shape():
    spec = drawn(*(result((2.0, 2.0), 2.0 + n, 1.9, 9.0, word=word, row=n)
                   for n, word in enumerate(claims.WORDS)))  # fmt: skip
    point = next(each for each in layers(spec, "point") if each["mark"]["size"] == 62)
    for channel, at in (("color", 0), ("shape", 1)):
        drawn_as = point["encoding"][channel]
        scale = drawn_as["scale"]
        assert drawn_as["field"] == "verdict"
        assert dict(zip(scale["domain"], scale["range"], strict=True)) == {
            word: kind[at] for word, kind in loglog.VERDICTS.items()
        }
        assert drawn_as["legend"]["values"] == list(claims.WORDS)


def test_the_words_on_the_diagonal_and_beside_it_stand_there():
    spec = drawn(result((2.0, 2.0), 2.0, 1.9, 2.1))
    texts = [row["text"] for each in layers(spec, "text") for row in each["data"]["values"]]
    assert {"the claim was right", "more than claimed", "less than claimed"} <= set(texts)


def test_what_goes_on_beyond_the_chart_ends_in_an_arrow():
    far = result((2.0, 2.0), 3.0, 2.0, 4000.0, cases=9, row=1)
    below = result((2.0, 2.0), 1.0, -1.0, 2.5, row=2)
    spec = drawn(far, below, result((2.0, 2.0), 2.0, 1.9, 2.1, row=3))
    arrows = [each for each in layers(spec, "point") if each["mark"]["size"] == 26]
    shapes = {each["data"]["values"][0]["hover"][0]: each["mark"]["shape"] for each in arrows}
    assert shapes == {"1": "triangle-up", "2": "triangle-down"}
    assert "4000" in chart.described(far).replace(",", "")
    assert all(point["low"] > 0 for point in marks(spec).values())


def test_bars_over_the_same_number_stand_side_by_side_and_near_it():
    found = [result((2.0, 2.0), 2.0, 1.0, 4.0, cases=9, row=n) for n in range(3)]
    spec = drawn(*found, result((9.0, 9.0), 9.0, 8.0, 10.0, row=9))
    domain = layers(spec, "line")[0]["data"]["values"]
    scale = Scale(domain[0]["x"], domain[1]["x"], True, spec["width"])
    pixels = sorted(scale.at(point["x"]) for row, point in marks(spec).items() if row != "9")
    assert all(b - a >= 4 for a, b in pairwise(pixels))
    assert max(abs(each - scale.at(2.0)) for each in pixels) <= diagonals.NUDGE[True]


@pytest.mark.parametrize("width", [680, 330])
def test_names_cover_neither_marks_nor_each_other(width):
    found = chart.comparable(
        [result((1.0 + n / 9,) * 2, 3.0 + n / 3, 1.0, 9.0, cases=5, name=f"a-claim-{n}", row=n)
         for n in range(12)]
    )  # fmt: skip
    spec = drawn(*found, width=width)
    scale = Scale(*marks_domain(spec), True, spec["width"])
    up = Scale(*marks_domain(spec), True, spec["height"])
    boxes = []
    for each in layers(spec, "text"):
        if each["mark"].get("fontStyle"):
            continue
        for row in each["data"]["values"]:
            long, at = labels.width(row["text"]), scale.at(row["x"])
            left = {"left": 0, "center": long / 2, "right": long}[each["mark"]["align"]]
            level = spec["height"] - up.at(row["value"])
            half = labels.HEIGHT / 2
            boxes.append(labels.Box(at - left, level - half, at - left + long, level + half))
    assert boxes
    spots = [
        labels.Box(*(scale.at(p["x"]) - 3, spec["height"] - up.at(p["value"]) - 3),
                   *(scale.at(p["x"]) + 3, spec["height"] - up.at(p["value"]) + 3))
        for p in marks(spec).values()
    ]  # fmt: skip
    for index, box in enumerate(boxes):
        assert not any(box.covers(other) > 0.1 for other in [*boxes[:index], *spots])


def marks_domain(spec: dict) -> list[float]:
    return [end["x"] for end in layers(spec, "line")[0]["data"]["values"]]


def test_numbers_with_a_unit_have_a_panel_of_their_own():
    found = [
        result((2.0, 2.0), 2.0, 1.9, 2.1, name="a"),
        result((1.0, 1.0), 1.0, 1.0, 24.0, unit="count", name="b"),
        result((1e-5, 1e-5), 2e-5, 1e-5, 3e-5, unit="s", name="c"),
        result((0.5, 0.5), 0.6, 0.5, 0.7, unit="share", name="d"),
    ]
    html = chart.chart(SHOWING, found)
    assert re.findall(r'<p class="panel">(.*?)</p>', html) == [
        "Ratios and counts", "Times", "Shares of a whole"]  # fmt: skip
    assert "10 µs" in html and "50%" in html
    assert set(chart.PLAIN) | set(chart.TITLES) == set(claims.findings.UNITS)
