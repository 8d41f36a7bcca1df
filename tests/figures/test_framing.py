"""Figures that draw the rows of one recording: their arguments, their frame, and their gaps."""

import pytest

from anatomy.figures.framing import drawn_from
from anatomy.record.showing import using
from anatomy.table.errors import AnatomyError
from tests.fakes import synthetic


def test_what_draws_rows_becomes_a_figure_of_a_page_or_a_gap_with_its_reason(tmp_path):
    rows = [{"variant": "one", "median_s": None, "note": None}]
    rows += [{"variant": "two", "median_s": None, "note": "no memory"}]
    synthetic.record(tmp_path, "dispatch.calls", rows)

    def draw(table, shout, *, end=""):
        return " ".join(row["variant"] for row in table) + shout + end

    with using(synthetic.showing(tmp_path)):
        drawn = drawn_from("dispatch.calls")(draw)("!", end="?", caption="Two rows.")
        gap = drawn_from("dispatch.calls", needs="median_s")(draw)("!")
        missing = drawn_from("dispatch.keys")(draw)("!")
        given = drawn_from()(draw)
        either = given("dispatch.calls", "!"), given(experiment="dispatch.calls", shout="!")
        with pytest.raises(AnatomyError, match="iter"):
            given("dispatch.calls", "!", itres=3)
    assert either[0] == either[1] and "one two!" in either[0]
    assert "one two!?" in drawn and "Two rows." in drawn and "dispatch.calls" in drawn
    assert "no memory" in gap and "one two" not in gap
    assert "one two" not in missing and "dispatch.keys" in missing
