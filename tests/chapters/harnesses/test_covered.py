"""The picture of our intervals beside the kernels' record."""

import pandas as pd

from anatomy.chapters.harnesses import covered
from anatomy.chapters.harnesses.contest import standings
from tests.chapters.sync_points.test_drawings import drawn


def asked(*ends, kind=standings.OVER_PROCESSES, quantity="gpu_cold"):
    rows = [(kind, f"W{n}", quantity, *each, 1.0) for n, each in enumerate(ends, start=1)]
    columns = ["kind", "op", "quantity", "low_s", "high_s", "truth_s"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(held=table.truth_s.between(table.low_s, table.high_s))


def test_intervals_stand_beside_the_record_and_what_misses_it_is_named():
    html = covered.covered(asked((0.99, 1.01), (1.01, 1.02), (1.5, 1.6)))
    assert "1 of 3 intervals hold the kernels" in html and "Missed: W2 gpu_cold, W3" in html
    for picture in drawn(html):
        assert ">W1<" in picture and ">the record<" in picture
        assert picture.count(">→<") == 1, "the third lies beyond the axis"


def test_walls_and_intervals_over_blocks_are_not_drawn():
    assert covered.covered(asked((0.9, 1.1), kind=standings.LONG)) == ""
    walls = asked((0.9, 1.1), quantity="step_wall")
    assert ">W1<" not in covered.covered(pd.concat([walls, asked((0.9, 1.1)).assign(op="W2")]))
    assert covered.covered(walls) == ""
