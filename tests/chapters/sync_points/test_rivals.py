"""Three explanations of what a wait adds: each reckoned from its own parts, beside the measured."""

import re

import pytest

from anatomy.chapters.sync_points.rivals import (
    EXPLANATIONS,
    added,
    nearer,
    once_and_again,
    rivals,
    together,
)
from anatomy.record.showing import using
from anatomy.table import units
from anatomy.table.errors import UnknownName
from tests.chapters.sync_points import sync_points_rows
from tests.fakes import synthetic

# Seconds as each part takes them alone: the line with nothing to wait for, and by side of the
# matmul its kernel and the host's time to queue it. Only at side 8 the kernel is the shorter one.
READING, KERNEL, QUEUE = 10e-6, {8: 2e-6, 64: 50e-6}, 5e-6


def parts(line: str = "t.item()") -> list[dict]:
    found = [{"op": "idle", "variant": line} | times(READING)]
    for side, kernel in KERNEL.items():
        found.append({"op": f"product {side}", "variant": "product"} | times(kernel))
        found.append({"op": f"behind {side}", "variant": "queue"} | times(QUEUE))
    return found


def times(seconds: float) -> dict:
    return {"median_s": seconds, "low_s": seconds / 2, "high_s": seconds * 2}


def test_each_explanation_is_reckoned_from_its_own_parts():
    assert [each[0] for each in added(parts(), 8, "t.item()")] == [READING, 2e-6, READING + 2e-6]
    reading, kernel, turns = added(parts(), 64, "t.item()")
    assert (reading[0], kernel[0]) == (READING, 50e-6)
    least, most = (READING + QUEUE) / 2, (READING + QUEUE) * 2
    assert turns == pytest.approx((READING + QUEUE, least, most)), "it queues while that runs"


def test_a_part_that_was_not_timed_is_named():
    with pytest.raises(UnknownName, match="idle"):
        added(parts()[1:], 8, "t.item()")


def test_the_table_holds_the_explanations_against_what_was_measured(tmp_path):
    sync_points_rows.bench(tmp_path)
    sides = [512, 4096]
    with using(synthetic.showing(tmp_path)) as showing:
        html = rivals("sync_points.bench", sides=sides, caption="Who is right?")
        table = showing.find("sync_points.bench").recording.rows
    lines = [
        [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<(?:td|th)\b.*?</t[dh]>", line)]
        for line in re.findall(r"<tr>.*?</tr>", html, re.DOTALL)
        if "<td" in line
    ]
    assert [line[0][:3] for line in lines] == [*(each[:3] for each in EXPLANATIONS), "mea"]
    for column, side in enumerate(sides, start=1):
        found = added(table, side, "t.item()")
        (seen,) = (r for r in table if (r["op"], r["variant"]) == (f"loop {side}", "t.item()"))
        waits = [seen[name] for name in ("wait_s", "wait_low_s", "wait_high_s")]
        told = [units.seconds_range(*times) for times in (*found, waits)]
        assert [line[column] for line in lines] == told
    bold = [re.findall("<b>", line) for line in re.findall(r"<tr>.*?</tr>", html, re.DOTALL)]
    assert sum(map(len, bold)) == len(sides), "one explanation is nearest at each size"


def test_rows_are_set_against_each_other_on_each_occasion_that_timed_all():
    once = {"median_s": 4.0, "occasion_medians_s": [2.0, None, 4.0]}
    again = {"median_s": 5.0, "occasion_medians_s": [3.0, 7.0, 5.0]}
    assert together(once, again) == [(2.0, 3.0), (4.0, 5.0)], "one that timed one says nothing"
    assert together({"median_s": 4.0}, {"median_s": 5.0}) == [(4.0, 5.0)]


@pytest.mark.parametrize(
    ("found", "overlapped", "told"),
    [
        ([0.99, 0.98], [0.7, 0.8], "E3"),
        ([0.72, 0.81], [0.7, 0.8], "E1"),
        ([0.99, 0.81], [0.7, 0.8], "can't tell"),  # they disagree
        ([0.99, 0.98], [0.93, 0.8], "can't tell"),  # E1 says nearly what E3 does
        ([], [], "can't tell"),
    ],
)
def test_what_comes_nearer_is_named_only_where_it_can_be_told(found, overlapped, told):
    assert nearer(found, overlapped) == told


def test_the_two_lines_once_stand_beside_the_loop_and_what_overlapping_predicts(tmp_path):
    sync_points_rows.bench(tmp_path)
    with using(synthetic.showing(tmp_path)) as showing:
        html = once_and_again("sync_points.bench", sides=[4096])
        table = showing.find("sync_points.bench").recording.rows
    times = {(row["op"], row["variant"]): row["median_s"] for row in table}
    once = times["behind 4096", "queue, item"]
    share = times["loop 4096", "t.item()"] / once
    longer = max(times["behind 4096", "queue"], times["product 4096", "product"])
    overlapped = (longer + times["idle", "t.item()"]) / once
    assert units.significant(share) in html
    assert units.significant(overlapped) in html
    assert nearer([share], [overlapped]) in html
