"""Tables of several processes become one: nothing is dropped, and what differs is said."""

import pytest

from anatomy.judge import merging, replication
from anatomy.table import columns
from anatomy.table.errors import MeasurementError

TILES = (1.0, 1.001, 0.999, 1.0, 1.002, 0.998)


def row(variant="fused", time_s=1.012e-4, ratio=1.012, **more):
    control = ratio is None
    return {
        "op": "softmax",
        "variant": variant,
        "role": "control" if control else "variant",
        "control": None if control else "plain",
        "quantity": "gpu_cold",
        "device": "cuda",
        "median_s": time_s,
        "low_s": 0.999 * time_s,
        "high_s": 1.001 * time_s,
        "p5_s": 0.99 * time_s,
        "p95_s": 1.01 * time_s,
        "p99_s": 1.02 * time_s,
        "samples": 60,
        "blocks_s": [tile * time_s for tile in TILES],
        "samples_s": [time_s, time_s],
        "method": "event pair around 4 calls",
        "launch_inclusive": False,
        "wide": False,
        "throttle": "none",
        "discarded": 0,
        "discarded_why": None,
        "enqueue_s": 5e-6,
        "sm_clock_mhz": 1980,
        "power_w": 400.0,
        "temperature_c": None,
        "noise_floor": 0.002,
        "flops": None,
        "bytes": 2**26,
        "error": 1e-4,
        "kernels": ["k1", "k2"],
        "kernels_per_call": 2,
        "busy_s": 9e-5,
        "ratio": ratio,
        "ratio_low": None if control else ratio - 0.001,
        "ratio_high": None if control else ratio + 0.001,
        "verdict": "control" if control else "undecided",
        "regime": "kernel-bound",
        "note": None,
    } | more


def plain(time_s=1e-4, **more):
    return row("plain", time_s, None, **more)


def one(*rows):
    (found,) = merging.merged([[each] for each in rows])
    return found


def test_three_processes_claim_what_one_can_not():
    tables = [[plain(), row(ratio=r)] for r in (1.012, 1.011, 1.014)]
    control, fused = merging.merged(tables)
    assert control["verdict"] == "control" and control["ratio"] is None
    assert "run_ratios" not in control
    assert fused["verdict"] == "slower" and fused["ratio"] == pytest.approx(1.012)
    assert fused["run_ratios"] == [1.012, 1.011, 1.014]
    assert (fused["ratio_low"], fused["ratio_high"]) == (1.010, 1.015)
    assert (fused["runs"], fused["run_blocks"], fused["interval"]) == (3, [6, 6, 6], "envelope")
    assert fused["blocks_s"] == tables[0][1]["blocks_s"] * 3
    for column in set(tables[0][1]) - {"verdict", "samples", "ratio", "blocks_s"}:
        if not column.startswith("ratio"):
            assert fused[column] == tables[0][1][column], column


def test_one_table_stays_as_it_is():
    table = [plain(), row()]
    assert merging.merged([table]) == table


def test_what_is_merged_can_be_merged_from_its_blocks():
    blocks = [[tile * time for tile in TILES] for time in (1.0e-4, 1.1e-4)]
    tables = [[plain(blocks_s=b), row(blocks_s=[1.02 * x for x in b])] for b in blocks]
    control, fused = merging.merged(tables)
    again = replication.ratio(fused, control)
    assert again.interval.median == pytest.approx(1.02) and len(again.runs) == 2


def test_every_measured_column_follows_from_all_processes():
    found = one(
        row(time_s=1.0e-4, power_w=300.0, throttle="none", enqueue_s=1e-6, samples_s=[1.0]),
        row(
            time_s=1.2e-4, power_w=500.0, throttle="power-limited", enqueue_s=3e-6, wide=True,
            discarded=2, discarded_why="recompile, foreign processes", error=3e-4,
            temperature_c=50.0, noise_floor=0.009, sm_clock_mhz=1800, samples=30,
            launch_inclusive=True, method="event pair around 5 calls",
        ),
        row(time_s=1.1e-4, power_w=450.0, throttle="unknown", discarded=1, busy_s=None,
            discarded_why="recompile", samples_s=[3.0]),
    )  # fmt: skip
    assert found["median_s"] == 1.1e-4 and found["run_medians_s"] == [1.0e-4, 1.2e-4, 1.1e-4]
    assert (found["low_s"], found["high_s"]) == pytest.approx((0.999e-4, 1.2012e-4))
    assert (found["p5_s"], found["p95_s"]) == pytest.approx((0.99e-4, 1.212e-4))
    assert found["p99_s"] == pytest.approx(1.224e-4)
    assert found["samples"] == 150 and found["samples_s"] == [1.0]
    assert found["discarded"] == 3
    assert found["discarded_why"] == "foreign processes, recompile"
    assert found["throttle"] == "power-limited" and found["launch_inclusive"] is True
    assert found["noise_floor"] == 0.009 and found["error"] == 3e-4
    assert (found["power_w"], found["sm_clock_mhz"], found["temperature_c"]) == (450.0, 1980, 50.0)
    assert found["enqueue_s"] == 3e-6
    assert found["busy_s"] == 9e-5 and found["wide"] is True
    assert found["method"] == "event pair around 4 calls; event pair around 5 calls"
    assert found["note"] is None


def test_processes_that_differ_much_are_wide_though_none_is():
    assert one(row(time_s=1.0e-4), row(time_s=1.1e-4))["wide"] is True
    assert one(row(), row())["wide"] is False


def test_unknown_throttling_is_not_called_none():
    assert one(row(throttle="none"), row(throttle="unknown"))["throttle"] == "unknown"


def test_what_should_be_equal_and_is_not_is_said():
    found = one(
        row(kernels=["a"], regime="launch-bound", base_mod_128=0, uses=2.0, uses_low=1.0, pays=True,
            note="Old driver."),
        row(kernels=["b"], base_mod_128=64, uses=4.0, uses_low=3.0, pays=False, note="Old driver."),
        row(kernels=["a"], base_mod_128=64, uses=9.0, uses_low=8.0, pays=True, note="Old driver."),
    )  # fmt: skip
    assert found["kernels"] == ["a"] and found["kernels_per_call"] == 2
    assert found["regime"] is None and found["base_mod_128"] is None and found["pays"] is None
    assert found["uses"] == 4.0 and found["uses_low"] == 1.0
    said = found["note"].split("; ")
    assert said[0] == "Old driver."
    assert "the processes launched different kernels; those of the first are named" in found["note"]
    assert "regime differs between the processes: launch-bound, kernel-bound" in said
    assert "base_mod_128 differs between the processes: 0, 64" in said
    assert "pays differs between the processes: True, False" in said


def test_a_number_that_one_process_lacks_is_no_number():
    found = one(row(uses=2.0), row(uses=None))
    assert found["uses"] is None
    assert found["note"] == "uses differs between the processes: 2.0, not measured"


def test_impossible_in_one_process_stays_impossible():
    wrong = row(ratio=1.4, verdict="impossible", note="Above the peak.")
    found = one(row(ratio=1.4), wrong, row(ratio=1.4))
    assert found["verdict"] == "impossible"
    assert found["note"] == "process 2 of 3: Above the peak."


def test_the_duplicate_of_the_control_gets_no_verdict():
    again = row("plain (again)", ratio=1.03, role="again", verdict="again")
    assert one(again, again)["verdict"] == "again"


def test_without_ratios_a_verdict_stays_only_if_all_agree():
    bare = {"variant": "a", "median_s": 1.0, "ratio": None}
    assert one(bare | {"verdict": "same"}, bare | {"verdict": "same"})["verdict"] == "same"
    assert one(bare | {"verdict": "same"}, bare | {"verdict": "slower"})["verdict"] == "undecided"


def test_a_bare_time_has_the_processes_figures_and_no_interval_it_did_not_earn():
    found = one(*({"variant": "first call", "median_s": s, "low_s": None} for s in (3.0, 1.0, 2.0)))
    assert found["median_s"] == 2.0 and found["run_medians_s"] == [3.0, 1.0, 2.0]
    assert found["low_s"] is None and found["high_s"] is None and found["interval"] is None
    six = one(*({"variant": "first call", "median_s": float(s)} for s in range(1, 7)))
    assert (six["low_s"], six["high_s"], six["interval"]) == (1.0, 6.0, "exact")


def test_rows_without_times_are_kept_as_they_are():
    layout = {"variant": "sliced", "strides": [4, 1], "shape": [4, 4]}
    assert one(layout, layout) == layout


def test_rows_are_matched_by_what_tells_them_apart_and_not_by_their_order():
    first = [plain(m=64, time_s=1e-4), plain(m=128, time_s=2e-4)]
    found = merging.merged([first, [plain(m=128, time_s=2e-4), plain(m=64, time_s=1e-4)]])
    assert [(r["m"], r["run_medians_s"]) for r in found] == [(64, [1e-4] * 2), (128, [2e-4] * 2)]


def test_what_was_measured_does_not_tell_rows_apart():
    tables = [
        [row(m=1, verdict="slower", regime="kernel-bound"), row(m=2, regime="gap-bound")],
        [row(m=1, regime="gap-bound"), row(m=2, verdict="slower", regime="kernel-bound")],
    ]
    assert [r["m"] for r in merging.merged(tables)] == [1, 2]


def test_equal_rows_meet_in_their_order():
    tables = [[plain(time_s=1e-4), plain(time_s=2e-4)]] * 2
    assert [r["median_s"] for r in merging.merged(tables)] == [1e-4, 2e-4]


@pytest.mark.parametrize("lacking", [0, 1, 2])
def test_a_row_that_a_process_lacks_is_an_error_that_names_it(lacking):
    tables = [[plain(m=64), plain(m=128), row(m=64)] for _ in range(3)]
    del tables[lacking][1]
    expected = r"variant=plain, role=control, quantity=gpu_cold.* is missing in process \d of 3"
    with pytest.raises(MeasurementError, match=expected) as caught:
        merging.merged(tables)
    assert ("process 1 of 3" in str(caught.value)) == (lacking == 0)
    assert ("process 3 of 3" in str(caught.value)) == (lacking == 2)


def test_what_one_process_could_not_measure_is_not_measured():
    lost = {"op": "softmax", "variant": "fused", "role": "variant", "quantity": "gpu_cold"}
    lost |= {"median_s": None, "note": "Out of memory."}
    found = one(row(), lost, row())
    assert found.get("median_s") is None and found.get("ratio") is None
    assert found["note"] == "not measured in process 2 of 3: Out of memory."
    assert one(lost, lost)["note"] == "Out of memory."
    assert "no reason given" in one(row(), lost | {"note": None})["note"]


def outcome(number=1, **changes):
    return {
        "started_at": f"2026-11-21T10:0{number}:00Z",
        "machine": {"slug": "toy", "card": "abc"},
        "software": {"torch": "2.13"},
        "method": {"clock": "CUDA events", "process": "one fresh process", "start_s": 1.5,
                   "measured_s": 2.25},
        "conditions": {"before": number, "after": number + 10},
        "noise_floor": {"softmax gpu_cold": 0.001 * number},
        "rows": [plain(), row()],
        "warnings": ["Everywhere.", f"Only {number}."],
    } | changes  # fmt: skip


def test_outcomes_become_one_recording():
    found = merging.merged_outcomes([outcome(1), outcome(3), outcome(2)])
    assert found["started_at"] == "2026-11-21T10:01:00Z"
    assert found["method"] == {
        "clock": "CUDA events",
        "process": "3 fresh processes",
        "processes": 3,
        "start_s": 4.5,
        "measured_s": 6.75,
        "runs": [
            {"started_at": f"2026-11-21T10:0{n}:00Z", "start_s": 1.5, "measured_s": 2.25}
            for n in (1, 3, 2)
        ],
    }
    assert found["conditions"] == {"before": 1, "after": 12}
    assert found["noise_floor"] == {"softmax gpu_cold": 0.003}
    assert [each["runs"] for each in found["rows"]] == [3, 3]
    assert found["warnings"] == [
        "Everywhere.",
        "process 1 of 3: Only 1.",
        "process 2 of 3: Only 3.",
        "process 3 of 3: Only 2.",
    ]


def test_the_seconds_of_all_processes_are_kept_to_a_millisecond():
    one = outcome()
    one["method"] |= {"start_s": 1.0004, "measured_s": 2.0003}
    found = merging.merged_outcomes([one, one, one])["method"]
    assert (found["start_s"], found["measured_s"]) == (3.001, 6.001)


def test_of_whole_and_broken_numbers_that_differ_there_is_a_median():
    assert one(row(loss=1), row(loss=2.5), row(loss=4))["loss"] == 2.5
    assert one(row(loss=1), row(loss=2), row(loss=4))["loss"] is None, "counts must agree"


def test_one_outcome_is_left_alone():
    assert merging.merged_outcomes([outcome()]) == outcome()


@pytest.mark.parametrize(
    ("block", "told"), [("machine", {"slug": "toy", "card": "xyz"}), ("software", {"torch": "3"})]
)
def test_processes_of_two_machines_are_not_one_measurement(block, told):
    with pytest.raises(MeasurementError, match=f"Process 2 of 2 had {block}"):
        merging.merged_outcomes([outcome(), outcome(2, **{block: told})])


def test_rows_of_other_work_are_not_merged():
    with pytest.raises(MeasurementError, match=r"=fused.* has flops=3 in process 1 and flops=4"):
        one(row(flops=3), row(flops=4))
    assert one(row(flops=3), row(flops=3))["flops"] == 3


def test_a_row_that_one_process_lacks_a_count_of_keeps_the_others_word():
    assert "flops differs" in one(row(flops=3), row(flops=None))["note"]


def test_every_way_of_merging_that_a_column_asks_for_is_known():
    asked = {column.merge for column in columns.declared() if column.merge}
    assert asked == set(merging.MERGE)
