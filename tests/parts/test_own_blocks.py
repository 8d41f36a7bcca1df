"""Blocks that an experiment took by itself are judged as those of a comparison."""

import pytest

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
