"""Kernels of a profile, put into groups and added up."""

import pytest

from anatomy.measure import census

SLEEP = "void at::cuda::spin_kernel(long)"


def test_sleeps_part_the_calls():
    kernels = [(0, 1, "fill"), (1, 2, SLEEP), (2, 3, "a"), (3, 4, "b"), (5, 6, SLEEP), (6, 7, "a")]
    groups = census.split(kernels)
    assert [[name for *_, name in group] for group in groups] == [["fill"], ["a", "b"], ["a"]]


def test_kernels_side_by_side_are_busy_once_and_gaps_are_not():
    kernels = [(0.0, 2.0, "a"), (1.0, 3.0, "b"), (1.5, 1.6, "c"), (5.0, 6.0, "d")]
    assert census.busy(kernels) == 4.0
    assert census.span(kernels) == 6.0
    assert census.span([(0.0, 9.0, "long"), (1.0, 2.0, "short")]) == 9.0


def test_the_gap_is_the_share_of_the_span_in_which_nothing_ran():
    assert census.Census(("a", "b"), busy_s=4.0, span_s=5.0).gap_share == pytest.approx(0.2)
    assert census.Census((), busy_s=0.0, span_s=0.0).gap_share == 0.0


def test_the_kernels_are_those_of_the_last_call_and_its_times_the_median_ones():
    tuning = [(0.0, 9.0, "tried"), (9.0, 10.0, "kernel")]
    found = census._census([tuning, [(20.0, 22.0, "kernel")], [(30.0, 33.0, "kernel")]])
    assert found == census.Census(("kernel",), busy_s=3.0, span_s=3.0)
