"""Whether unfused attention takes four times as long over twice the length."""

import pytest

from anatomy import claims
from anatomy.chapters.attention.claims import unfused_attention_quadruples
from anatomy.claims.table import Table


@pytest.mark.parametrize(
    ("longer_s", "word"),
    [(4e-3, claims.HOLDS), (2.7e-3, claims.FAILS), (None, claims.NOT_MEASURABLE)],
)
def test_twice_the_length_takes_four_times_as_long_or_not(longer_s, word):
    def row(length: int, time: float) -> dict:
        ends = {"median_s": time, "low_s": 0.99 * time, "high_s": 1.01 * time}
        return {"variant": "manual", "op": f"forward N={length}", **ends}

    rows = [row(8192, 1e-3), *([row(16384, longer_s)] if longer_s else [])]
    assert unfused_attention_quadruples(Table(rows, {})).word == word
