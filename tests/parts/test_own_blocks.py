"""Blocks that an experiment took by itself are judged as those of a comparison."""

import pytest

from anatomy.measure import stopwatch_for
from anatomy.parts import own_blocks

SECONDS = {"a": [1e-3, 1.01e-3] * 6, "b": [2e-3, 2.02e-3] * 6, "a (again)": [1e-3, 1.01e-3] * 6}


def test_the_first_is_the_control_and_its_duplicate_ends_the_comparison():
    columns = {"a": {"samples": 12, "way": "x"}, "b": {"samples": 24}}
    table = own_blocks.compared(SECONDS, columns, op="it", quantity="step_wall", device="cpu")
    assert list(table.role) == ["control", "variant", "again"] and set(table.op) == {"it"}
    assert list(table.control)[1:] == ["a", "a"] and list(table.samples) == [12, 24, 12]
    assert table.ratio[1] == pytest.approx(2) and table.verdict[1] == "slower"
    assert table.noise_floor[0] == 0


def test_what_a_subtraction_left_below_zero_is_the_least_time():
    table = own_blocks.compared(SECONDS | {"b": [-1e-9] * 12}, {}, op="it", quantity="step_wall")
    assert table.median_s[1] == own_blocks.LEAST_S


def test_ways_take_turns_in_balanced_order_the_first_of_them_twice():
    asked = []
    ways = {name: lambda name=name: asked.append(name) or 1e-3 for name in ("a", "b", "c")}
    taken = own_blocks.in_turn(ways, 4, stopwatch_for("cpu"))
    assert taken == dict.fromkeys(("a", "b", "c", "a (again)"), [1e-3] * 4)
    blocks = [asked[at : at + 4] for at in range(0, 16, 4)]
    assert all(sorted(block) == ["a", "a", "b", "c"] for block in blocks)
    assert len({tuple(block) for block in blocks}) > 1


@pytest.mark.parametrize(("budget_s", "fewest", "taken"), [(0.0, 2, 2), (0.0, 0, 0), (60.0, 0, 4)])
def test_a_spent_budget_ends_the_blocks_but_for_the_fewest(budget_s, fewest, taken):
    how = {"budget_s": budget_s, "fewest": fewest}
    found = own_blocks.in_turn({"a": lambda: 1e-3}, 4, stopwatch_for("cpu"), **how)
    assert [len(each) for each in found.values()] == [taken, taken]
