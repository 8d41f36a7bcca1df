"""Where a line of pay-off crosses even."""

import pytest

from anatomy.figures.tradeoffs import breakeven


def test_break_even_is_interpolated_along_the_logarithms_of_both():
    def cell(x: float, value: float, word: str) -> breakeven.Cell:
        return breakeven.Cell("a", x, None, {}, None, value, value, value, word, "")

    # A quarter of the way from 1/2 to 8 in logarithms, and so of the way from 100 to 1600.
    (found,) = breakeven.crossings([cell(1600, 8.0, "slower"), cell(100, 0.5, "faster")])
    assert found.at == pytest.approx(200)
    assert breakeven.crossings([cell(100, 0.5, "undecided"), cell(200, 2.0, "slower")]) == []
    # An undecided point between bends the line, and the break-even stays on what is drawn.
    ends = cell(100, 0.5, "faster"), cell(1600, 8.0, "slower")
    (found,) = breakeven.crossings([ends[0], cell(800, 0.5, "undecided"), ends[1]])
    assert found.at == pytest.approx(800 * 2**0.25) and (found.before, found.after) == ends
    wavers = [cell(200, 1.25, "undecided"), cell(400, 0.8, "undecided")]
    (found,) = breakeven.crossings([ends[0], *wavers, ends[1]])
    assert found.at == pytest.approx(200 * 2**0.5), "the middle one of three"
