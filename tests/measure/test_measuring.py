"""The sampler, asked about callables whose cost is known."""

import inspect
from itertools import pairwise
from statistics import median

import pytest
import torch

from anatomy import comparison
from anatomy.comparison import compare
from anatomy.measure import blocks, compare_raw, sampling
from anatomy.measure.clock import Flush
from anatomy.table.errors import (
    BadParameter,
    DisagreementError,
    MeasurementError,
    UnknownName,
)
from tests.fakes.fake_stopwatch import CLOCK_S, Fake, FakeStopwatch

QUIET = {"profile": False, "iters": 12, "op": "toy"}


def measure(watch, costs, **options):
    """Compare fakes of the given warm costs; returns the table by variant."""
    fakes = {name: Fake(watch, cost) for name, cost in costs.items()}
    return compare(fakes, watch=watch, **QUIET | options).table.set_index("variant")


@pytest.mark.parametrize("quantity", ["gpu_warm", "gpu_cold", "step_wall"])
@pytest.mark.parametrize("cost", [2e-6, 40e-6, 3e-3])
def test_a_known_cost_comes_back(quantity, cost):
    watch = FakeStopwatch(noise=0.01)
    row = measure(watch, {"a": cost}, quantity=quantity).loc["a"]
    # What the clock adds is taken off again; a wall period is never below the enqueue.
    expected = max(cost, 5e-6) if quantity == "step_wall" else cost
    assert row.median_s == pytest.approx(expected, rel=0.02)
    assert row.low_s <= row.median_s <= row.high_s


def test_host_enqueue_is_the_hosts_share_alone():
    table = measure(FakeStopwatch(), {"a": 3e-3}, quantity="host_enqueue", iters=200)
    row = table.loc["a"]
    assert row.median_s == pytest.approx(5e-6, rel=1e-6)
    assert row.samples >= 100 and row.median_s <= row.p99_s * (1 + 1e-6)


def test_a_cold_call_costs_what_it_costs_out_of_the_cache():
    watch = FakeStopwatch()
    fakes = {"a": Fake(watch, warm_s=50e-6, cold_s=80e-6)}
    row = compare(fakes, watch=watch, quantity="gpu_cold", **QUIET).table.iloc[0]
    assert row.median_s == pytest.approx(80e-6, rel=0.01)
    assert "flushed" in row.method


def test_a_cold_call_shorter_than_the_clock_itself_is_what_is_left_without_the_clock():
    watch = FakeStopwatch()
    fakes = {"a": Fake(watch, warm_s=0.5e-6, cold_s=1e-6)}
    row = compare(fakes, watch=watch, quantity="gpu_cold", **QUIET).table.iloc[0]
    assert row.median_s == pytest.approx(1e-6, rel=1e-3) and row.median_s < CLOCK_S


def test_a_clock_whose_own_time_jumps_is_asked_in_every_block():
    watch = FakeStopwatch(clock_jump_s=0.8e-6)
    fakes = {"a": Fake(watch, warm_s=1e-6, cold_s=2e-6)}
    row = compare(fakes, watch=watch, quantity="gpu_cold", **QUIET | {"iters": 400}).table.iloc[0]
    assert row.median_s == pytest.approx(2e-6, rel=0.01)


def test_a_clock_that_counts_in_steps_is_read_between_them():
    watch = FakeStopwatch(noise=0.01, step_s=0.1e-6)
    fakes = {"a": Fake(watch, warm_s=1e-6, cold_s=1.83e-6)}
    row = compare(fakes, watch=watch, quantity="gpu_cold", **QUIET).table.iloc[0]
    assert len(set(row.blocks_s)) > 1, "plain medians would all be one step"
    assert row.low_s <= 1.83e-6 <= row.high_s, "half a step is in doubt"
    assert row.median_s == pytest.approx(1.83e-6, abs=0.05e-6)


def test_a_callable_that_runs_nothing_on_the_gpu_is_refused():
    watch = FakeStopwatch(device=torch.device("cuda", 0))
    with pytest.raises(MeasurementError, match=r"Nothing ran on cuda:0's current stream"):
        sampling.prepare(watch, [Fake(watch, 0.0)], "gpu_cold")


def test_a_drifting_clock_does_not_tell_two_copies_apart_but_a_later_look_would():
    watch = FakeStopwatch(drift_per_s=0.05, noise=0.002)
    table = measure(watch, {"a": 1e-3, "copy": 1e-3}, quantity="gpu_warm")
    blocks_a = table.loc["a"].blocks_s
    assert max(blocks_a) / min(blocks_a) > 1.003, "the drift must be there to be survived"
    assert table.loc["copy"].verdict in ("same", "undecided")
    assert abs(table.loc["copy"].ratio - 1) < 0.002


@pytest.mark.parametrize(
    ("slowdown", "verdict"),
    [
        (2.0, "slower"),
        (0.5, "faster"),
        (1.001, "undecided"),
        (1.015, "undecided"),
        (1.05, "slower"),
    ],
)
def test_an_effect_gets_its_word_and_below_two_percent_one_process_says_nothing(slowdown, verdict):
    table = measure(FakeStopwatch(noise=0.002), {"a": 1e-3, "b": slowdown * 1e-3})
    row = table.loc["b"]
    assert row.verdict == verdict
    assert row.ratio_low <= slowdown * 1.001 and slowdown * 0.999 <= row.ratio_high


def test_the_control_is_measured_twice_in_the_same_way_and_its_spread_is_the_floor():
    table = measure(FakeStopwatch(noise=0.01), {"a": 1e-3, "b": 2e-3})
    again = table.loc["a (again)"]
    assert again.role == "again" and again.method == table.loc["a"].method
    floor = max(abs(again.ratio_low - 1), abs(again.ratio_high - 1))
    assert set(table.noise_floor) == {floor} and floor > 0


def test_a_variant_can_have_a_control_of_its_own():
    table = measure(FakeStopwatch(), {"a": 4e-3, "half": 2e-3, "b": 3e-3}, against={"b": "half"})
    assert table.loc["b"].control == "half"
    assert table.loc["b"].ratio == pytest.approx(1.5, rel=1e-3)


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8])
def test_orders_are_balanced_first_order(count):
    orders = blocks.balanced_orders(count, seed=3)
    assert all(sorted(order) == list(range(count)) for order in orders)
    followers = [pair for order in orders for pair in pairwise(order)]
    each = len(followers) / (count * (count - 1))
    assert all(followers.count(pair) == each for pair in set(followers))
    assert len(set(followers)) == count * (count - 1)


def test_blocks_stop_only_at_the_looks():
    quiet = measure(FakeStopwatch(), {"a": 1e-3})
    noisy = measure(FakeStopwatch(noise=0.5), {"a": 1e-3})
    assert len(quiet.loc["a"].blocks_s) == 12 and not quiet.loc["a"].wide
    # These become narrow between two looks, after 15 blocks or 28, and go on until the next.
    seeds = (measure(FakeStopwatch(noise=0.03, seed=seed), {"a": 1e-3}) for seed in range(6))
    assert {len(table.loc["a"].blocks_s) for table in seeds} == {24, 48}
    # Four times as many blocks would make this half as wide, which is far from narrow.
    assert len(noisy.loc["a"].blocks_s) == 12 and noisy.loc["a"].wide


def test_a_spent_budget_ends_with_three_blocks_that_claim_nothing():
    table = measure(FakeStopwatch(noise=0.1), {"a": 1e-3, "b": 2e-3}, budget_s=1e-3)
    assert len(table.loc["a"].blocks_s) == 3 and table.wide.all()
    assert table.loc["b"].verdict == "undecided"


def test_a_callable_of_ten_seconds_is_called_no_more_often_than_three_blocks_need():
    watch = FakeStopwatch()
    fake = Fake(watch, warm_s=10.0)
    row = compare({"a": fake}, watch=watch, **QUIET).table.iloc[0]
    assert row.median_s == pytest.approx(10.0, rel=1e-3) and row.wide
    assert fake.calls < 20


def test_a_quick_comparison_is_done_in_its_budget_and_looks_at_no_width():
    watch = FakeStopwatch(noise=0.002)
    fake = Fake(watch, 1e-3)
    table = compare(
        {"a": fake}, watch=watch, budget_s=0.3, precision=0.0, settle_cap_s=0.0, **QUIET
    ).table
    assert 24 < len(table.blocks_s[0]) < 48, "narrow at the first look, and measured on"
    assert watch.now() == pytest.approx(0.3, rel=0.1)
    assert not table.wide.any() and not watch.warnings


def test_settling_is_no_part_of_the_budget():
    watch = FakeStopwatch(drift_per_s=1.0)
    fake = Fake(watch, 1e-3)
    compare({"a": fake}, watch=watch, budget_s=0.3, settle_cap_s=2.0, **QUIET)
    assert watch.now() == pytest.approx(2.3, abs=0.2)
    assert "not steady after 2 s" in watch.warnings[0]


def test_raw_samples_are_kept_on_demand_and_give_the_blocks_medians():
    row = measure(FakeStopwatch(noise=0.01), {"a": 1e-3}, keep_samples=True, iters=60).loc["a"]
    each = len(row.samples_s) // len(row.blocks_s)
    assert each * len(row.blocks_s) == len(row.samples_s) == row.samples and each > 1
    assert median(row.samples_s[each : 2 * each]) == pytest.approx(row.blocks_s[1], rel=1e-5)
    assert "samples_s" not in measure(FakeStopwatch(), {"a": 1e-3})


def test_iters_is_the_least_number_of_samples():
    table = measure(FakeStopwatch(), {"a": 20e-3, "b": 20e-3}, iters=200)
    assert (table.samples >= 200).all()


def test_the_sleep_grows_until_dispatch_is_hidden():
    watch = FakeStopwatch(leaks_below_s=400e-6)
    row = measure(watch, {"a": 1e-3}, quantity="gpu_cold").loc["a"]
    assert not row.launch_inclusive
    assert max(watch.holds) >= 400e-6 > min(h for h in watch.holds if h)


def test_dispatch_that_cannot_be_hidden_is_said():
    row = measure(FakeStopwatch(leaks_below_s=10.0), {"a": 1e-3}).loc["a"]
    assert row.launch_inclusive and "launch included" in row.method


def test_a_callable_that_synchronizes_is_launch_inclusive_and_nothing_waits_for_it():
    watch = FakeStopwatch()
    table = compare({"a": Fake(watch, 1e-3, syncs=True)}, watch=watch, **QUIET).table
    assert table.launch_inclusive.all()
    assert not any(watch.holds)


@pytest.mark.parametrize("counter", blocks.INVALIDATING)
def test_a_block_under_thermal_throttle_is_thrown_away_and_counted(counter):
    watch = FakeStopwatch(throttle={counter: 0.1})
    row = measure(watch, {"a": 1e-3}).loc["a"]
    assert row.discarded > 0 and counter in row.discarded_why
    assert len(row.blocks_s) == 12


def test_a_device_that_always_throttles_gives_no_figure():
    with pytest.raises(MeasurementError, match=r"blocks were disturbed: hardware_thermal"):
        measure(FakeStopwatch(throttle={"hardware_thermal": 1.0}), {"a": 1e-3})


def test_the_power_cap_is_normal_and_said():
    watch = FakeStopwatch(throttle={"power_cap": 1.0})
    row = measure(watch, {"a": 1e-3}).loc["a"]
    assert row.throttle == "power-limited" and row.discarded == 0


def test_without_counters_the_throttle_is_unknown_never_none():
    assert measure(FakeStopwatch(throttle=None), {"a": 1e-3}).loc["a"].throttle == "unknown"
    assert (
        measure(FakeStopwatch(throttle={"power_cap": 0}), {"a": 1e-3}).loc["a"].throttle == "none"
    )


def test_a_recompilation_costs_the_block_it_happens_in():
    watch = FakeStopwatch()

    def recompile(calls: int) -> None:
        watch.compiled += calls in (3000, 3500)

    fake = Fake(watch, 1e-3, on_call=recompile)
    row = compare({"a": fake}, watch=watch, **QUIET | {"iters": 2400}).table.iloc[0]
    assert fake.calls > 3500
    assert row.discarded >= 1 and row.discarded_why == "compilations"


def test_another_process_on_the_gpu_is_an_error_unless_it_is_allowed():
    with pytest.raises(
        MeasurementError, match=r"2 other processes computing on .* allow_foreign=True"
    ):
        measure(FakeStopwatch(foreign=2), {"a": 1e-3})
    assert len(measure(FakeStopwatch(foreign=2), {"a": 1e-3}, allow_foreign=True)) == 2


def test_nothing_is_timed_until_it_agrees_with_the_reference():
    watch = FakeStopwatch()
    fakes = {"right": Fake(watch, 1e-3), "wrong": Fake(watch, 1e-3, result=1.1)}
    with pytest.raises(DisagreementError, match=r"wrong strays from its reference by 1\.0e-01"):
        compare(fakes, watch=watch, **QUIET)
    assert watch.timed == 0


def test_work_on_another_stream_is_refused_for_no_event_here_can_time_it():
    with pytest.raises(MeasurementError, match=r"a leaves work on another stream.*wait_stream"):
        measure(FakeStopwatch(side_stream=True), {"a": 1e-3})


def test_a_callable_that_keeps_its_outputs_is_warned_about():
    watch = FakeStopwatch(leak_bytes=2**20)
    fakes = {"a": Fake(watch, 1e-3)}
    result = compare(fakes, watch=watch, **QUIET)
    assert any("more were allocated" in warning for warning in result.warnings)
    assert "Something keeps its outputs" in str(result)


def test_an_answer_that_changes_while_it_is_timed_is_no_answer():
    watch = FakeStopwatch()
    fake = Fake(watch, 1e-3)

    def drift(calls: int) -> None:
        fake.result = 1.0 if calls < 30 else 1.5

    fake.on_call = drift
    with pytest.raises(DisagreementError, match=r"a changed its answer while it was measured"):
        compare({"a": fake}, watch=watch, **QUIET)


def test_what_a_callable_raises_comes_out_with_its_name():
    watch = FakeStopwatch()

    def fail(calls: int) -> None:
        if watch.timed > 50:
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom") as caught:
        compare({"a": Fake(watch, 1e-3, on_call=fail)}, watch=watch, **QUIET)
    assert "while 'a' was being measured" in caught.value.__notes__[0]


def test_a_host_that_is_interrupted_says_so_where_its_time_is_the_figure():
    watch = FakeStopwatch(interruptions=1_000_000)
    measure(watch, {"a": 1e-3}, quantity="host_enqueue")
    assert any("taken away" in warning for warning in watch.warnings)


def test_an_unsteady_callable_is_measured_and_warned_about():
    watch = FakeStopwatch(noise=1.0)
    watch.time_s = 0.0
    measure(watch, {"a": 0.5})
    assert any("not steady" in warning for warning in watch.warnings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variants": {}}, "at least one variant"),
        ({"control": "b"}, "control 'b' is not among the variants a"),
        ({"against": {"a": "c"}}, "control 'c' is not among the variants a"),
        ({"quantity": "time"}, "quantity='time' is none of gpu_cold"),
        ({"flops": "many"}, "flops='many': it must be a number, 0 or more"),
        ({"flops": {"a": -1}}, "flops=-1: it must be a number, 0 or more"),
        ({"bytes": float("inf")}, "bytes=inf: it must be a number, 0 or more"),
        ({"limit": "matmul fp61"}, "no limit 'matmul fp61'. Did you mean 'matmul fp16'"),
        ({"limit": {"a": "copies"}}, "no limit 'copies'. Did you mean 'copy'"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(arguments, message):
    watch = FakeStopwatch()
    variants = arguments.pop("variants", {"a": Fake(watch, 1e-3)})
    with pytest.raises((BadParameter, UnknownName), match=message):
        compare(variants, watch=watch, **QUIET | arguments)


def test_the_real_clock_of_the_cpu_runs_the_same_protocol():
    x = torch.rand(256, 256)
    result = compare(
        {"once": lambda: x @ x, "twice": lambda: (x @ x + x @ x) / 2},
        reference=lambda: x.double() @ x.double(),
        device="cpu",
        quantity="gpu_warm",
        iters=12,
        flops={"once": 2 * 256**3, "twice": 4 * 256**3},
    )
    assert list(result.table.variant) == ["once", "twice", "once (again)"]
    assert set(result.table.device) == {"cpu"}
    assert "once" in str(result) and "noise floor" in str(result)


def test_a_flush_made_in_inference_mode_works_outside_of_it():
    with torch.inference_mode():
        flush = Flush(torch.device("cpu"))
        flush()
    flush()


def test_what_judges_gives_the_room_no_other_defaults_than_its_own():
    raw = inspect.signature(compare_raw).parameters
    judged = inspect.signature(comparison.compare).parameters
    assert {name: each.default for name, each in raw.items()} == {
        name: judged[name].default for name in raw
    }


@pytest.mark.parametrize(
    ("quantity", "sets", "device", "words"),
    [
        ("gpu_cold", 1, "cuda", "event pair around each call, flushed{less} in each block"),
        ("gpu_cold", 2, "cuda", "event pair around 4 calls over 2 sets of buffers{less}"),
        ("gpu_warm", 1, "cuda", "event pair around 4 calls back to back{less}"),
        ("gpu_warm", 1, "cpu", "host clock around 4 calls back to back"),
        ("gpu_cold", 1, "cpu", "host clock around each call, flushed"),
        ("host_enqueue", 1, "cuda", "host clock around one call, queue empty"),
        ("step_wall", 1, "cuda", "host clock around 32 calls and a synchronize"),
    ],
)
def test_a_row_says_how_its_samples_were_taken(quantity, sets, device, words):
    watch = FakeStopwatch(device=torch.device(device))
    sampler = sampling.prepare(watch, [Fake(watch, 150e-6)] * sets, quantity)
    said = sampler.method.replace("cache flushed before it", "flushed")
    assert said == words.format(less=", less the clock's own time")
    sampler.launch_inclusive = True
    assert sampler.method.endswith(", launch included")


def test_every_quantity_is_known_to_the_sampler():
    assert set(sampling.QUANTITIES) == {"gpu_cold", "gpu_warm", "host_enqueue", "step_wall"}
