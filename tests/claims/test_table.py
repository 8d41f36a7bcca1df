"""What a claim reads from the rows of a table: only what can be trusted, with all of its doubt."""

from dataclasses import replace

import pytest

from anatomy.claims import Case, Cases, Measured, Unmeasured
from anatomy.claims.cases import between
from anatomy.claims.findings import span
from anatomy.claims.needs import CEILINGS, DTYPES, EVERY, SIZES, WARM, beginning, bench, best
from anatomy.claims.pace import GPU, HOST, UNKNOWN, listed, pace
from anatomy.claims.table import (
    Table,
    bytes_over,
    judged,
    over_control,
    quotient,
    rate_of,
    ratio,
    speed_up,
    time_of,
    with_verdict,
)
from anatomy.table.errors import UnknownName

ROW = {"variant": "a", "median_s": 2.0, "low_s": 1.9, "high_s": 2.2, "noise_floor": 0.01}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"verdict": "impossible", "note": "faster than the memory"}, "faster than the memory"),
        ({"median_s": None, "note": "no room"}, "no room"),
        ({"median_s": float("nan")}, "it could not be measured"),
    ],
)
def test_no_claim_reads_a_time_that_is_impossible_or_missing(row, why):
    with pytest.raises(Unmeasured, match=why):
        Table([ROW | row], {}).measured("a")


def test_a_quotient_of_two_times_has_the_doubt_of_both():
    above, below = Measured(6.0, 5.0, 8.0, floor=0.01), Measured(2.0, 1.0, 4.0, floor=0.02)
    found = quotient(above, below)
    assert (found.value, found.low, found.high) == (3.0, 5.0 / 4.0, 8.0 / 1.0)
    assert found.floor == pytest.approx(0.03), "noise of either may be in it"


def test_a_speed_up_is_the_inverse_of_the_ratio_with_its_ends_exchanged():
    row = ROW | {"ratio": 0.5, "ratio_low": 0.4, "ratio_high": 0.8, "verdict": "faster"}
    found = speed_up(row)
    assert (found.value, found.low, found.high) == (2.0, 1 / 0.8, 1 / 0.4)


def test_the_highest_rate_belongs_to_the_shortest_time():
    found = rate_of(ROW | {"flops": 38.0}, "flops", "FLOP/s")
    assert (found.value, found.low, found.high) == (19.0, 38.0 / 2.2, 38.0 / 1.9)
    assert found.unit == "FLOP/s" and found.floor == 0.01
    assert found.runs == (19.0,), "of one process"
    several = rate_of(ROW | {"flops": 38.0, "run_medians_s": [1.9, 2.0, 3.8]}, "flops", "FLOP/s")
    assert several.runs == (20.0, 19.0, 10.0)


def test_each_process_is_held_against_the_end_and_not_against_1():
    runs = (4.2, 4.3, 4.4)  # of three: at least 4, and not at least 4.19 in each
    ratio = Measured(4.3, 4.2, 4.4, runs=runs)
    assert ratio.at_least(4.0) is True and ratio.at_most(4.0) is False
    assert ratio.at_least(4.19) is None
    small = Measured(0.43, 0.42, 0.44, runs=(0.42, 0.43, 0.44))
    assert small.at_least(0.4) is True and small.at_most(0.5) is True


def test_numbers_below_1_have_their_median_on_the_logarithmic_scale_too():
    found = span([Measured(value, value, value) for value in (0.1, 0.4)])
    assert found.value == pytest.approx(0.2) and (found.low, found.high) == (0.1, 0.4)
    mixed = span([Measured(value, value, value) for value in (-0.1, 0.3)])
    assert mixed.value == pytest.approx(0.1)


def test_the_ends_of_a_group_say_where_they_were_seen():
    def case(width: int, value: float) -> Case:
        return Case({"dtype": "bf16", "width": width}, True, Measured(value, value, value))

    cases = Cases([case(256, 0.5), case(512, 4.0), case(1024, 1.5)])
    assert cases.ends("dtype") == "bf16 0.500× (256) to 4.00× (512)"
    assert Cases([case(256, 0.5)]).ends("dtype") == "bf16 0.500× (256)"


@pytest.mark.parametrize("columns", [{}, {"op": "add"}])
def test_a_row_that_is_not_there_is_told_with_those_that_are(columns):
    table = Table([ROW | {"op": "matmul"}], {})
    with pytest.raises(UnknownName, match="in a recording"):
        table.row("b", **columns)


@pytest.mark.parametrize(("blocks", "exact"), [(1, False), (5, False), (6, True), (12, True)])
def test_an_interval_of_fewer_than_six_blocks_proves_nothing(blocks, exact):
    row = ROW | {"blocks_s": [2.0] * blocks, "ratio": 1.5, "verdict": "slower"}
    assert time_of(row).unit == "s"
    assert time_of(row).exact is exact and over_control(row).exact is exact
    assert time_of(ROW).exact, "it has no blocks, and was not measured block by block"
    assert time_of(row | {"runs": 3}).exact, "of several processes the envelope counts"


@pytest.mark.parametrize(
    ("row", "who"),
    [
        ({"enqueue_s": 2.0, "busy_s": 3.0, "median_s": 4.0}, GPU),  # a profile says it best
        ({"enqueue_s": 3.0, "busy_s": 3.0, "median_s": 4.0}, HOST),
        ({"enqueue_s": 4.0, "busy_s": 3.2, "median_s": 4.0}, GPU),  # the host waits for it
        ({"enqueue_s": 5.0, "median_s": 10.0}, GPU),
        ({"enqueue_s": 5.1, "median_s": 10.0}, UNKNOWN),  # hosts are half as fast for a while
        ({"enqueue_s": 7.9, "median_s": 10.0}, UNKNOWN),
        ({"enqueue_s": 8.0, "median_s": 10.0}, HOST),  # of a step, and not of its kernels
        ({"enqueue_s": 8.0, "busy_s": float("nan"), "median_s": 10.0}, HOST),
        ({"busy_s": 3.0}, UNKNOWN),
        ({"enqueue_s": 8.0}, UNKNOWN),
    ],
)
def test_whoever_needs_longer_sets_the_pace(row, who):
    assert pace(row) == who


def test_the_best_rate_is_that_of_the_fastest_row_that_could_be_measured():
    wrong = ROW | {"op": "read", "bytes": 99.0, "verdict": "impossible", "note": "Too fast."}
    good = [ROW | {"op": "read", "bytes": each, "flops": 4.0} for each in (3.8, 7.6, 1.9)]
    good.append(good[0] | {"bytes": 9.0, "median_s": 9.0})  # more, but slowly
    bench = Table([wrong, *good, wrong], {})
    found = best(bench, "read", "bytes")
    assert (found.value, found.unit, found.low) == (3.8, "B/s", 7.6 / 2.2)
    assert best(bench, "read", "flops").unit == "FLOP/s"
    with pytest.raises(Unmeasured, match=r"Too fast\."):
        best(Table([wrong, wrong | {"note": "No room."}], {}), "read", "bytes")
    with pytest.raises(UnknownName, match="'write'"):
        best(bench, "write", "bytes")


def test_cases_are_told_by_what_differs_between_their_recordings():
    params = {"dtype": "fp16", "m": 2048, "seed": 1}
    assert Table([], params).where == {"dtype": "fp16", "size": 2048}
    assert Table([], params).label == "fp16 2048" and Table([], {"seed": 1}).where == {}


def test_of_one_case_there_is_a_number_and_of_several_a_range():
    assert between([2.0]) == between([2.0, 2.0]) == "2.00×"
    assert between([2.0, 1.5, 1.7]) == "1.50× to 2.00×"
    one, two = (Case({"op": "a", "n": n}, True, Measured(n, n, n)) for n in (1.0, 2.0))
    other = Case({"op": "b", "n": 1.0}, True, Measured(4.0, 4.0, 4.0))
    lost = Case({"op": "b", "n": 2.0}, None, why="no room")
    cases = Cases([one, two, other, lost])
    assert cases.numbers_by("op") == {
        ("a",): [one.measured, two.measured],
        ("b",): [other.measured],
    }
    assert cases.spans("op").startswith("a 1.00× to 2.00× in 2 cases; b 4.0")


@pytest.mark.parametrize(("runs", "says"), [((1.03, 1.004), None), ((1.03, 1.031), True)])
def test_each_of_two_processes_must_be_beyond_what_is_claimed(runs, says):
    seen = Measured(1.03, 1.02, 1.04, floor=0.001, runs=runs)
    assert seen.at_least(1.0) is says and seen.at_most(1.0) is (says and False)


def test_a_time_or_rate_of_several_processes_has_what_each_of_them_found():
    row = ROW | {"run_medians_s": [1.9, 2.0, 2.1], "bytes": 38.0}
    assert time_of(row).runs == (1.9, 2.0, 2.1) and time_of(ROW).runs == (2.0,)
    assert rate_of(row, "bytes", "B/s").runs == (38.0 / 1.9, 38.0 / 2.0, 38.0 / 2.1)


@pytest.mark.parametrize("bytes_", [(None, 2), (2, None), (None, None), (2, 0)])
def test_a_ratio_of_counts_that_one_row_lacks_is_not_measured(bytes_):
    assert bytes_over({"held": 6}, {"held": 2}, "held", "no count").value == 3.0
    with pytest.raises(Unmeasured, match="no count"):
        bytes_over(*({"held": each} for each in bytes_), "held", "no count")


def test_an_inexact_number_is_on_no_side_of_anything():
    for runs in ((), (2.0,)):
        vague = Measured(2.0, 1.9, 2.1, exact=False, runs=runs)
        assert vague.at_least(1.0) is vague.at_most(1.0) is vague.within(1.0, 3.0) is None


def test_numbers_are_listed_by_who_sets_the_pace():
    one, two = (Measured(n, n, n) for n in (1.5, 2.0))
    seen = {(HOST, "all"): [one], (GPU, "all"): [one, two], (GPU, "one"): [two], ("", "x"): [two]}
    assert listed(seen) == (
        f"{UNKNOWN}: x 2.00×; {GPU}: all 1.50× to 2.00× in 2 cells, one 2.00×; {HOST}: all 1.50×"
    )


READERS = (time_of, over_control, speed_up, lambda row: rate_of(row, "flops", "FLOP/s"))


@pytest.mark.parametrize("read", READERS)
def test_nothing_is_read_from_a_row_that_cannot_be_trusted(read):
    row = ROW | {"ratio": 1.5, "flops": 8.0, "verdict": "slower"}
    assert read(row).value > 0
    with pytest.raises(Unmeasured, match="Too fast"):
        read(row | {"verdict": "impossible", "note": "Too fast"})


def test_a_ratio_over_the_control_is_read_as_it_was_recorded():
    row = ROW | {"ratio": 1.5, "ratio_low": 1.4, "ratio_high": 1.7, "verdict": "slower"}
    assert over_control(row) == Measured(1.5, 1.4, 1.7, floor=0.01, runs=(1.5,), verdict="slower")
    several = over_control(row | {"run_ratios": [1.4, 1.5, 1.6]})
    assert several.runs == (1.4, 1.5, 1.6)
    bare = over_control({"median_s": 2.0, "ratio": 1.5, "ratio_low": None, "noise_floor": 0.0})
    assert bare == Measured(1.5, 1.5, 1.5, floor=0.0, runs=(1.5,), verdict="")


def test_without_a_noise_floor_a_ratio_decides_nothing():
    row = ROW | {"ratio": 1.5, "verdict": "slower", "noise_floor": None}
    assert (over_control(row).exact, over_control(row).floor) == (False, 0.0)
    assert time_of(row) == Measured(2.0, 1.9, 2.2, "s", runs=(2.0,)), "a time takes it for none"


@pytest.mark.parametrize(
    ("blocks", "floor", "exact"),
    [(3, 0.01, False), (8, 0.01, True), (8, 0.0, True), (8, None, False)],
)
def test_a_ratio_is_as_exact_as_its_blocks_and_has_the_floor_of_its_table(blocks, floor, exact):
    above, below = ({"noise_floor": floor, "blocks_s": [time] * blocks} for time in (3.0, 2.0))
    found = ratio(above, below)
    assert (found.exact, found.floor) == (exact, floor or 0.0)
    assert found.verdict == ("slower" if exact else "undecided")
    assert found.runs == pytest.approx((1.5,))


def test_a_quotient_is_as_exact_as_both_and_one_of_each_process():
    above, below = (
        Measured(6.0, 6.0, 6.0, runs=(5.0, 6.0)),
        Measured(2.0, 2.0, 2.0, runs=(2.0, 4.0)),
    )
    assert quotient(above, below).runs == (2.5, 1.5) and quotient(above, below).exact
    for pair in ((above, replace(below, exact=False)), (replace(above, exact=False), below)):
        assert quotient(*pair).exact is False


TABLE = Table(
    [
        ROW | {"op": "add", "n": 1, "role": "control"},
        ROW | {"op": "add", "n": 2, "variant": "b"},
        ROW | {"op": "mul", "n": 3, "role": "again"},
        ROW | {"op": "mul", "n": 4, "variant": "b", "quantity": "gpu_warm"},
        ROW | {"op": "mul", "n": 5, "variant": "b"},
    ],
    {},
    {"machine": {"gpu": "Toy"}},
)


@pytest.mark.parametrize(
    ("columns", "numbers"),
    [
        ({}, [1, 2, 4, 5]),
        ({"op": "add"}, [1, 2]),
        ({"op": ("mul", "sub"), "variant": "b"}, [4, 5]),
        ({"op": ("add", "mul"), "n": (2, 3)}, [2]),
        ({"colour": "red"}, []),
    ],
)
def test_rows_are_selected_by_their_values_without_the_controls_duplicate(columns, numbers):
    assert [row["n"] for row in TABLE.select(**columns)] == numbers
    assert TABLE.distinct("n", **columns) == numbers
    assert len(list(TABLE)) == 5, "which is a row of the table all the same"


def test_values_are_distinct_in_the_order_of_the_table_and_none_is_no_value():
    assert TABLE.distinct("op") == ["add", "mul"] and TABLE.distinct("quantity") == ["gpu_warm"]


def test_of_several_rows_of_a_name_the_first_is_read():
    assert TABLE.row("b")["n"] == 2 and TABLE.row("b", op="mul")["n"] == 4
    with pytest.raises(UnknownName, match="no op in a recording 'sub'"):
        TABLE.row("b", op="sub")
    with pytest.raises(UnknownName, match="no variant in a recording 'c'"):
        TABLE.row("c", op="add")


def test_a_table_knows_the_machine_of_its_recording():
    assert TABLE.machine == {"gpu": "Toy"} and Table([], {}).machine == {}
    assert Table([], {}, {}).machine == {}


@pytest.mark.parametrize("verdict", ["slower", "undecided"])
def test_a_ratio_is_printed_with_its_interval_and_verdict(verdict):
    row = {"ratio": 1.5, "ratio_low": 1.4, "ratio_high": 1.6, "verdict": verdict}
    assert with_verdict(row) == f"1.5× [1.4, 1.6], {verdict}"
    assert with_verdict({"ratio": 1.5, "verdict": verdict}) == f"1.50×, {verdict}"


def test_cases_are_judged_by_the_number_that_is_read():
    rows = [
        ({"n": n}, ROW | {"ratio": n, "median_s": n and 2.0, "note": "no room"})
        for n in (1, 2, None)
    ]
    cases = judged(rows, lambda number: number.value > 1.5)
    assert [(case.outcome, case.why) for case in cases] == [
        *((False, ""), (True, ""), (None, "no room")),
    ]
    assert [case.measured.value for case in cases.measurable] == [1, 2]
    assert [case.outcome for case in judged(rows[:1], lambda time: time.unit == "s", time_of)] == [
        True
    ]


def test_the_rows_that_begin_with_an_operation_are_those_of_the_variants_named():
    rows = [
        {"op": op, "variant": variant}
        for op in ("sum of rows", "sum", "a sum", None)
        for variant in ("a", "b", "c")
    ]
    found = beginning(Table(rows, {}), "sum", "a", "c")
    assert [(row["op"], row["variant"]) for row in found] == [
        *(("sum of rows", "a"), ("sum of rows", "c"), ("sum", "a"), ("sum", "c")),
    ]


def test_the_benches_that_claims_share_are_of_square_matrices_in_each_format_and_size():
    assert {need.name for need in EVERY} == {"contiguity.bench"}
    tried = [(need.params["dtype"], need.params["m"]) for need in EVERY]
    assert tried == [(dtype, size) for dtype in DTYPES for size in SIZES]
    assert bench("fp16", 2048).params == {"dtype": "fp16", "m": 2048, "n": 2048, "k": 2048}
    assert DTYPES == ("fp16", "bf16", "tf32", "fp32") and SIZES == (2048, 4096, 8192)
    assert (CEILINGS.name, CEILINGS.params) == ("limits.ceilings", {})
    assert WARM == {"quantity": "gpu_warm"}
