"""Two tables of one call: which rows meet, which figures moved, what the ratio of ends covers."""

import random
from math import inf

import pytest

from anatomy.judge import judged, shifts
from anatomy.judge.shifts import MOVED, SAME, UNDECIDED
from anatomy.table import intervals
from anatomy.table.intervals import Interval

EXPERIMENT = "contiguity.bench"


def timed(variant, scale=1.0, *, noise=0.001, role="variant", seed=1, **more):
    """A row as it is kept, with blocks around `scale` seconds."""
    drawn = random.Random(f"{variant} {seed}")
    blocks = [scale * (1 + drawn.gauss(0, noise)) for _ in range(12)]
    named = {"op": "matmul", "quantity": "gpu_warm", "variant": variant, "role": role}
    named |= {} if role == "control" else {"control": "plain"}
    return named | {"blocks_s": blocks, "launch_inclusive": False} | more


def table(sliced=1.0, *, seed=1, **more):
    """A control, a variant and the control's duplicate, judged."""
    rows = [timed("plain", 1.0, role="control", seed=seed), timed("sliced", sliced, seed=seed)]
    rows.append(timed("plain (again)", 1.0, role="again", seed=seed))
    return judged([row | more for row in rows])


def words(old, new):
    found = shifts.shifts(old, new, EXPERIMENT).figures
    return {(each.row["variant"], each.column): each.word for each in found}


def test_a_figure_beyond_its_intervals_has_moved_and_no_other():
    found = words(table(1.5), table(1.8, seed=2))
    assert found["sliced", "median_s"] == found["sliced", "ratio"] == MOVED
    assert found["plain", "median_s"] == UNDECIDED  # one process can't show that it is the same
    assert ("plain (again)", "median_s") not in found
    assert not shifts.shifts(table(), table(seed=2), EXPERIMENT).only_old


def test_the_control_that_was_may_be_another_but_then_ratios_are_not_held_together():
    other = [row | {"control": "padded"} if "control" in row else row for row in table(2.0)]
    assert set(words(table(1.5), other)) == {("plain", "median_s"), ("sliced", "median_s")}


def test_rows_that_do_not_meet_one_to_one_are_told_and_not_compared():
    old, new = table(1.5), table(1.5, seed=2)
    found = shifts.shifts(old[:1], new, EXPERIMENT)
    assert found.only_new == ["matmul, sliced, gpu_warm"] and not found.only_old
    found = shifts.shifts([*old, old[1]], new, EXPERIMENT)  # which of both is meant?
    assert len(found.only_old) == 2 and len(found.only_new) == 1
    found = shifts.shifts(table(flops=100), table(flops=200), EXPERIMENT)
    assert len(found.other_work) == 2 and not found.figures
    assert shifts.shifts(table(flops=100), table(), EXPERIMENT).figures


def test_sizes_tell_rows_apart_even_where_one_machine_has_fewer_of_them():
    old = [row for width in (1024, 2048) for row in table(1.5, width=width)]
    new = table(1.5, seed=2, width=2048)
    found = shifts.shifts(old, new, "compilation.map")
    assert {each.row["width"] for each in found.figures} == {2048}
    assert all("width=1024" in name for name in found.only_old) and len(found.only_old) == 2


@pytest.mark.parametrize("broken", [{"median_s": inf}, {"low_s": None}, {"blocks_s": None}])
def test_what_has_no_interval_to_stand_on_is_undecided(broken):
    old, new = table(1.0)[1], table(2.0)[1]
    assert shifts.verdict(new, old, "median_s")[1] == MOVED
    assert shifts.verdict(new | broken, old, "median_s")[1] == UNDECIDED
    assert shifts.verdict(new, old | {"noise_floor": None}, "median_s")[1] == UNDECIDED
    assert shifts.verdict(new | {"verdict": "impossible"}, old, "median_s")[1] == UNDECIDED


def test_a_noise_floor_of_either_table_is_a_floor_for_both():
    old, new = table(1.0)[1], table(1.1)[1]
    assert shifts.verdict(new, old, "median_s")[1] == MOVED
    assert shifts.verdict(new, old | {"noise_floor": 0.2}, "median_s")[1] == UNDECIDED


def processes(median, spread):
    """A row of three processes that differ by so much."""
    runs = [median * (1 - spread), median, median * (1 + spread)]
    ends = {"low_s": runs[0] * 0.999, "high_s": runs[2] * 1.001, "interval": "envelope"}
    return {"median_s": median, "run_medians_s": runs, "noise_floor": 0.001, **ends} | {
        "blocks_s": [median] * 36
    }


def test_several_processes_can_show_that_a_figure_is_the_same_or_moved_by_little():
    assert shifts.verdict(processes(1.0, 1e-4), processes(1.0, 1e-4), "median_s")[1] == SAME
    assert shifts.verdict(processes(1.015, 1e-4), processes(1.0, 1e-4), "median_s")[1] == MOVED
    # Beyond the ends, but the processes that are nearest to each other differ by too little.
    assert shifts.verdict(processes(1.02, 0.008), processes(1.0, 0.008), "median_s")[1] == UNDECIDED
    single = processes(1.015, 1e-4) | {"run_medians_s": None, "interval": None}
    assert shifts.verdict(single, processes(1.0, 1e-4), "median_s")[1] == UNDECIDED


def test_the_ratio_of_ends_is_the_same_in_both_directions():
    old, new = Interval(2.0, 1.9, 2.2), Interval(3.0, 2.9, 3.3, exact=False)
    there, back = shifts.over(new, old), shifts.over(old, new)
    assert there.median == 1.5 and there.low == 2.9 / 2.2 and there.high == 3.3 / 1.9
    assert back.low == pytest.approx(1 / there.high) and not there.exact
    assert there.coverage == pytest.approx(0.9)


def test_the_ratio_of_ends_covers_at_least_what_it_says():
    drawn, inside, count = random.Random(5), 0, 2000
    for _ in range(count):
        both = ([drawn.lognormvariate(0, 0.02) for _ in range(12)] for _ in range(2))
        found = shifts.over(*map(intervals.median_interval, both))
        inside += found.low <= 1.0 <= found.high
    # Independent and equally wide: far above the 90 % that hold for any two.
    assert inside / count > 0.985


def test_counts_and_the_middle_of_ratios():
    found = shifts.shifts(table(1.5), table(3.0, seed=2), EXPERIMENT).figures
    assert list(shifts.counts(found)) == list(shifts.WORDS)
    assert sum(shifts.counts(found).values()) == len(found)
    assert shifts.middle([each for each in found if each.column == "ratio"]) == pytest.approx(
        2.0, rel=0.01
    )
    assert shifts.middle([]) is None
