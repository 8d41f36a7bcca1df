"""Attention: what of it can't be measured, and that the rest is measured all the same."""

from anatomy.chapters.attention import attention
from anatomy.table.errors import MeasurementError
from tests.fakes.toys import TOY


def test_a_cell_that_cannot_be_timed_says_why_and_the_others_go_on(monkeypatch):
    real, asked = attention.compare, []

    def compare(calls, **given):
        asked.append(given["op"])
        if given["op"].startswith("forward and"):
            raise MeasurementError("a stream of its own")
        return real(calls, **given)

    monkeypatch.setattr(attention, "compare", compare)
    table = attention.backends(**TOY["attention.backends"])
    lost = table[table.op.str.startswith("forward and")]
    assert "not measured: a stream of its own" in set(lost.note) and lost.note.notna().all()
    assert table[~table.op.str.startswith("forward and")].median_s.notna().any()
