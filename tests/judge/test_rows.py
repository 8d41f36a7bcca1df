"""Ratios over another control, of one process and of several."""

import pytest

from anatomy import judge
from anatomy.judge import limits, merging, rows
from anatomy.table.errors import BadParameter, MeasurementError, UnknownName


def timed(variant, times, control="a", **more):
    return {
        "variant": variant,
        "role": "control" if variant == control else "variant",
        "control": None if variant == control else control,
        "blocks_s": [tile * times for tile in (1.0, 1.001, 0.999, 1.0, 1.002, 0.998)],
        "median_s": times,
        "noise_floor": 0.001,
        "ratio": None if variant == control else times,
        "ratio_low": None if variant == control else times,
        "ratio_high": None if variant == control else times,
        "verdict": "control" if variant == control else "slower",
    } | more


def tables(*ratios):
    """One table per ratio: c takes so many times as long as b, and b twice as long as a."""
    return [[timed("a", 1.0), timed("b", 2.0), timed("c", 2.0 * ratio)] for ratio in ratios]


def test_another_control_is_compared_block_by_block():
    a, b, c = rows.against(tables(1.5)[0], "b")
    assert (a["variant"], a["verdict"]) == ("a", "control")
    assert c["control"] == "b" and c["ratio"] == pytest.approx(1.5) and c["verdict"] == "slower"
    assert b["ratio"] == pytest.approx(1.0) and "run_ratios" not in c


def test_one_process_claims_nothing_under_two_percent_of_another_control():
    assert rows.against(tables(1.012)[0], "b")[2]["verdict"] == "undecided"


def test_three_processes_do_and_say_what_each_found():
    found = rows.against(merging.merged(tables(1.012, 1.011, 1.013)), "b")[2]
    assert found["ratio"] == pytest.approx(1.012) and found["verdict"] == "slower"
    assert found["run_ratios"] == pytest.approx([1.012, 1.011, 1.013])


def test_processes_that_disagree_claim_nothing():
    found = rows.against(merging.merged(tables(1.012, 0.995, 1.013)), "b")[2]
    assert found["verdict"] == "undecided"
    assert found["ratio_low"] < 1.0 < found["ratio_high"]


def test_processes_whose_blocks_do_not_pair_up_are_refused():
    found = merging.merged(tables(1.012, 1.011))
    found[2]["run_blocks"] = [7, 5]
    with pytest.raises(MeasurementError, match="paired block by block"):
        rows.against(found, "b")


def test_a_speed_up_is_the_inverse_ratio_and_its_low_end_that_of_the_high_one():
    assert rows.speedup({"ratio": 0.5, "ratio_low": 0.4, "ratio_high": 0.8}) == (2.0, 1.25, 2.5)
    assert rows.speedup({"ratio": 0.5}) == (2.0, None, None)
    assert rows.speedup({"role": "control", "ratio": None}) == (1.0, None, None)


def test_an_envelope_is_not_called_an_interval_of_95_percent():
    envelopes = [{"interval": "envelope", "runs": runs} for runs in (2, 3)]
    assert rows.interval_name([{"interval": "exact", "runs": 9}]) == "95% interval"
    assert rows.interval_name([{}, *envelopes]) == "envelope of 3 processes"


def test_a_row_without_blocks_stays_as_it_is():
    lost = {"variant": "d", "role": "variant", "control": "a", "note": "No FP8 here."}
    assert rows.against([*tables(1.5)[0], lost], "b")[3] == lost


TABLE = [
    {"width": 64, "op": "sum", "variant": "a", "flag": True, "median_s": 1.0, "case": "wide"},
    {"width": 128, "op": "sum", "variant": "ab", "flag": False, "median_s": 2.0, "case": "wide"},
    {"width": 128, "op": "max", "variant": "a", "median_s": 3.0, "case": "tall"},
]


@pytest.mark.parametrize(
    ("where", "times"),
    [
        (None, [1, 2, 3]),
        ({"op": "sum"}, [1, 2]),
        ({"variant": ["a", "ab"], "width": 128}, [2, 3]),
        ({"variant": "*b"}, [2]),
        ({"width": (64,)}, [1]),
        ({"flag": True}, [1]),
    ],
)
def test_rows_are_chosen_by_one_value_or_several_of_each_column(where, times):
    assert [row["median_s"] for row in rows.meeting(TABLE, where)] == times


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"opp": "sum"}, "no column 'opp'"),
        ({"op": "min"}, "no op 'min'"),
        ({"op": ["sum", "min"]}, "no op 'min'"),
        ({"flag": 1}, "no flag '1'"),
        ({"op": "max", "width": 64}, "no width '64'"),
    ],
)
def test_a_value_that_no_row_has_is_an_error(where, says):
    with pytest.raises(UnknownName, match=says):
        rows.meeting(TABLE, where)


def test_what_tells_rows_apart_is_text_and_coordinates_the_variant_first_and_no_figure():
    told = "op: sum, max; variant: a, ab; case: wide, tall"
    assert rows.telling_apart(TABLE) == told
    assert rows.telling_apart(TABLE, most=9) == f"{told}; width: 64, 128; flag: True, False"
    assert rows.telling_apart(TABLE, most=1) == "op: sum, max"
    assert rows.telling_apart(TABLE[:1]) == ""


def test_rates_and_shares_follow_from_work_and_time():
    ceilings = limits.Ceilings("toy", {"copy": limits.Ceiling("copy", 8.0, "B/s", "measured", "")})
    row = {"median_s": 2.0, "low_s": 1.0, "high_s": 4.0, "bytes": 8.0, "flops": 6.0}
    copied = rows.derived(row | {"limit": "copy"}, ceilings)
    rate = {"rate": 4.0, "rate_low": 2.0, "rate_high": 8.0, "rate_unit": "B/s"}
    share = {"share": 0.5, "share_of": "copy", "limit_value": 8.0, "limit_kind": "measured"}
    assert copied == copied | rate | share
    product = rows.derived(row | {"limit": "matmul fp16"}, ceilings)
    assert (product["rate"], product["rate_unit"], product["share"]) == (3.0, "FLOP/s", None)
    assert rows.derived(row | {"limit": "copy"}, None)["share"] is None
    false = rows.derived(row | {"limit": "copy", "verdict": "impossible"}, ceilings)
    assert false["rate"] is None and false["share"] is None


def test_the_floor_of_some_rows_is_the_largest_and_0_where_none_has_one():
    assert rows.noise_floor([{"noise_floor": 0.01}, {"noise_floor": 0.02}, {}]) == 0.02
    assert rows.noise_floor([{"noise_floor": None}]) == rows.noise_floor([]) == 0.0


@pytest.mark.parametrize(
    ("quantity", "words"),
    [
        ("gpu_cold", "sum, GPU time, cold L2"),
        ("gpu_warm", "sum, GPU time, warm"),
        ("host_enqueue", "sum, host time to enqueue"),
        ("step_wall", "sum, wall time of a step"),
        ("another", "sum, another"),
        (None, "sum"),
    ],
)
def test_a_group_of_rows_is_called_after_its_operation_and_quantity(quantity, words):
    assert rows.group_name("sum", quantity) == words


def test_rows_may_be_compared_with_each_other_within_one_operation_and_quantity():
    table = [
        {"op": op, "quantity": quantity, "noise_floor": floor}
        for op, quantity, floor in (
            ("sum", "gpu_cold", 0.01),
            ("sum", "gpu_warm", 0.02),
            ("sum", "gpu_cold", 0.03),
            ("", None, None),
        )
    ]
    found = [(key, [row["noise_floor"] for row in of]) for key, of in rows.groups_of(table)]
    assert found == [
        (("sum", "gpu_cold"), [0.01, 0.03]),
        (("sum", "gpu_warm"), [0.02]),
        ((None, None), [None]),
    ]
    assert judge.noise_floors(table) == {"sum gpu_cold": 0.03, "sum gpu_warm": 0.02}


@pytest.mark.parametrize(
    ("ratio", "verdict", "said"),
    [
        (5.92, "slower", "5.9× slower"),
        (13.4, "slower", "13× slower"),
        (1 / 2.06, "faster", "2.1× faster"),
        (1.034, "slower", "3% slower"),
        (1.012, "slower", "1.2% slower"),
        (1 / 1.005, "faster", "0.5% faster"),
        (1.0504, "slower", "5% slower"),
        (1.196, "slower", "20% slower"),
        (1 / 1.21, "faster", "1.2× faster"),
        (1.001, "same", "as fast"),
        (1.03, "undecided", "about as fast (within 4%)"),
        (1 / 1.03, "undecided", "about as fast (within 4%)"),
        (1.3, "undecided", "not clearly faster or slower (1.3× to 1.3× the time)"),
    ],
)
def test_a_ratio_is_worded_by_its_verdict(ratio, verdict, said):
    row = {"ratio": ratio, "ratio_low": ratio * 0.995, "ratio_high": ratio * 1.005}
    assert rows.speed_in_words(row | {"verdict": verdict}) == said
    over = {"speedup": 1 / ratio, "speedup_low": 0.995 / ratio, "speedup_high": 1.005 / ratio}
    assert rows.speed_in_words(over | {"verdict": verdict}, "speedup") == said


@pytest.mark.parametrize(
    ("ratio", "verdict", "said"),
    [
        (1.1123, "slower", "1.11× slower"),
        (1 / 1.204, "faster", "1.20× faster"),
        (1 / 5.92, "faster", "5.9× faster"),
        (1.001, "same", "as fast"),
    ],
)
def test_a_ratio_among_factors_is_a_factor(ratio, verdict, said):
    assert rows.factor_in_words({"ratio": ratio, "verdict": verdict}) == said
    assert rows.factor_in_words({"speedup": 1 / ratio, "verdict": verdict}, "speedup") == said


@pytest.mark.parametrize(
    ("ratio", "low", "high", "verdict", "said"),
    [
        (0.125, 1 / 12.1, 1 / 5.3, "faster", "8.0× faster (5.3× to 12×)"),
        (1.9, 1.3, 2.8, "slower", "1.9× slower (1.3× to 2.8×)"),
        (1.9, 1.6, 2.39, "slower", "1.9× slower"),
    ],
)
def test_a_wide_interval_is_told_wherever_its_ratio_is(ratio, low, high, verdict, said):
    row = {"ratio": ratio, "ratio_low": low, "ratio_high": high, "verdict": verdict}
    assert rows.speed_in_words(row) == said
    assert rows.speed_in_words(row, short=True) == said.partition(" (")[0]
    assert rows.factor_in_words(row).endswith(said.partition("er")[2])
    over = {"speedup": 1 / ratio, "speedup_low": 1 / high, "speedup_high": 1 / low}
    assert rows.speed_in_words(over | {"verdict": verdict}, "speedup") == said


def test_an_undecided_ratio_is_told_with_its_interval():
    row = {"ratio": 1.07, "ratio_low": 0.82, "ratio_high": 1.31, "verdict": "undecided"}
    assert rows.speed_in_words(row) == f"{rows.UNDECIDED} (0.82× to 1.3× the time)"
    assert rows.speed_in_words(row, short=True) == "undecided (0.82× to 1.3×)"
    assert rows.speed_in_words({"ratio": 1.07, "verdict": "undecided"}) == rows.UNDECIDED
    close = {"ratio": 1.0, "ratio_low": 0.995, "ratio_high": 1.004, "verdict": "undecided"}
    assert rows.speed_in_words(close, short=True) == "about as fast (within 1%)"


@pytest.mark.parametrize(
    ("low", "high", "spec", "said"),
    [
        (8.1e-6, 32e-6, "", " (8 to 32)"),
        (12.1e-6, 23e-6, "", ""),
        (-3e-6, 32e-6, "", " (-3 to 32)"),
        (0.4e-6, 32e-6, "", " (0.4 to 32)"),
        (8.1e-6, 32e-6, "us.0", " (8 to 32)"),
        (8.1e-6, 32e-6, ".1f", ""),
    ],
)
def test_a_wide_interval_is_told_of_a_time_in_its_unit(low, high, spec, said):
    row = {"median_s": 18e-6, "low_s": low, "high_s": high}
    assert rows.if_wide(row, "median_s", spec) == said


def test_no_interval_is_told_of_what_has_none_or_is_no_time():
    assert rows.if_wide({"median_s": 18e-6}, "median_s") == ""
    assert rows.if_wide({"ratio": 2.0, "ratio_low": 1.0, "ratio_high": 9.0}, "ratio") == ""


def test_without_an_interval_a_small_difference_is_not_called_none():
    assert rows.speed_in_words({"ratio": 1.012, "verdict": "slower"}) == "1.2% slower"
    with pytest.raises(BadParameter):
        rows.speed_in_words({"ratio": 1.2, "verdict": None})


@pytest.mark.parametrize(
    ("occasions", "word", "ratios", "said"),
    [
        (
            2,
            "slower",
            (1.3, 0.9, 1.7),
            "1.3× slower on both occasions (elsewhere perhaps 0.90× to 1.7×)",
        ),
        (
            3,
            "faster",
            (0.5, 0.4, 1.25),
            "2.0× faster on each of 3 occasions (elsewhere perhaps 0.80× to 2.5×)",
        ),
    ],
)
def test_what_every_occasion_found_is_said_though_another_machine_may_differ(
    occasions, word, ratios, said
):
    open_ = {"verdict": "undecided"} | dict(
        zip(("ratio", "ratio_low", "ratio_high"), ratios, strict=True)
    )
    row = open_ | {"on_each_occasion": word, "occasions": occasions}
    assert rows.speed_in_words(row) == said
    assert rows.speed_in_words(row, short=True).startswith("undecided (")
    assert rows.verdict_in_words(row) == f"{word} each time"
    assert rows.verdict_in_words(open_) == "undecided"
    over = {"ratio_before": 1.3, "verdict_before": "undecided"}  # over another row than the control
    assert rows.speed_in_words(row | over, "ratio_before") == "not clearly faster or slower"
