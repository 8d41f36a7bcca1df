"""The clock of a GPU, on a card in virtual time: what it sees, and what it must not overlook."""

import pytest
import torch

from anatomy.comparison import compare
from anatomy.measure import account, sampling, stopwatch, stopwatch_for
from anatomy.measure.comparison import settle
from anatomy.table.errors import DeviceError, MeasurementError
from tests.fakes import fake_gpu
from tests.fakes.fake_driver import FIRST
from tests.fakes.fake_gpu import CLOCK_S, STAMP_S, FakeGpu

COST_S = 20e-6


@pytest.fixture
def card(monkeypatch):
    """Installs a fake card: `card(launch_s=...)`."""
    fake_gpu.forget()
    yield lambda **options: FakeGpu(**options).install(monkeypatch)
    fake_gpu.forget()


@pytest.fixture
def gpu(card):
    return card()


@pytest.fixture
def watch(gpu):
    return stopwatch_for("cuda:0")


def test_a_sleep_is_as_long_as_it_was_asked_to_be(gpu, watch):
    gpu.sleeps.clear()
    watch.hold(0.0)
    assert not gpu.sleeps, "no time at all is no kernel either"
    watch.hold(5e-3)
    assert gpu.sleeps[0] == pytest.approx(5e-3, rel=0.01)


def test_spans_of_one_chunk_are_all_queued_before_the_first_begins(gpu, watch):
    gpu.events.clear()
    spans, leaked = watch.spans([gpu.callable(COST_S)] * 8, cold=True, hold_s=2e-3)
    starts, ends = gpu.events[::2], gpu.events[1::2]
    assert len(starts) == len(ends) == 8 and not leaked
    assert max(event.queued_s for event in gpu.events) < starts[0].time_s
    assert all(end.time_s < start.time_s for end, start in zip(ends[:-1], starts[1:], strict=True))
    assert spans == pytest.approx([COST_S + CLOCK_S] * 8)


def test_each_span_is_of_its_own_call_and_a_cold_one_has_a_flush_before_it(gpu, watch):
    costs = [10e-6, 30e-6, 20e-6]
    gpu.kernels.clear()
    spans, _ = watch.spans([gpu.callable(c) for c in costs], cold=True, hold_s=1e-3)
    assert [span - CLOCK_S for span in spans] == pytest.approx(costs)
    names = [name for *_, name in gpu.kernels]
    assert names == ["void at::cuda::spin_kernel(long)", *["reduce", "reduce", "kernel"] * 3]
    gpu.kernels.clear()
    watch.spans([gpu.callable(COST_S)], cold=False, hold_s=1e-3)
    assert [name for *_, name in gpu.kernels][1:] == ["kernel"]


def test_a_sleep_that_was_too_short_is_told(gpu, watch):
    calls = [gpu.callable(COST_S, host_s=50e-6)] * 8
    assert watch.spans(calls, cold=False, hold_s=100e-6)[1]
    assert not watch.spans(calls, cold=False, hold_s=1e-3)[1]
    assert watch.batch(calls, hold_s=100e-6)[1]
    assert not watch.batch(calls, hold_s=1e-3)[1]
    assert not watch.spans(calls, cold=False, hold_s=0.0)[1], "nothing was to be hidden"
    assert not watch.batch(calls, hold_s=0.0)[1]


def test_a_batch_is_one_span_around_all_calls(gpu, watch):
    total, _ = watch.batch([gpu.callable(COST_S)] * 10, hold_s=1e-3)
    assert total == pytest.approx(10 * (COST_S + CLOCK_S - STAMP_S) + STAMP_S, rel=1e-6)


def test_the_hosts_times_begin_with_an_idle_device_and_the_wall_ends_with_one(gpu, watch):
    gpu.launch(5e-3)
    assert watch.enqueue(gpu.callable(COST_S)) == pytest.approx(gpu.launch_s, abs=0.2e-6)
    gpu.launch(5e-3)
    assert watch.enqueue(gpu.callable(COST_S, syncs=True)) < 2 * COST_S, "it waits for itself alone"
    gpu.launch(5e-3)
    assert watch.wall([gpu.callable(1e-3)] * 2) == pytest.approx(2e-3, rel=0.01)


@pytest.mark.parametrize("seconds", [COST_S, 2e-3, 9e-3])
def test_a_callable_that_waits_for_the_device_is_found_out(gpu, watch, seconds):
    assert watch.synchronizes(gpu.callable(seconds, syncs=True))
    assert not watch.synchronizes(gpu.callable(seconds))


@pytest.mark.parametrize("seconds", [20e-3, 10.0])
def test_a_long_callable_that_waits_for_the_device_is_found_out(gpu, watch, seconds):
    assert watch.synchronizes(gpu.callable(seconds, syncs=True))


def test_a_host_that_is_slow_does_not_pass_for_one_that_waits(gpu, watch):
    assert not watch.synchronizes(gpu.callable(COST_S, host_s=30e-3))


def test_work_on_a_side_stream_is_noticed_and_refused(gpu, watch):
    assert watch.leaves_work(gpu.callable(1e-3, stream="side"))
    assert not watch.leaves_work(gpu.callable(1e-3))
    with pytest.raises(MeasurementError, match="aside leaves work on another stream"):
        compare({"aside": gpu.callable(1e-3, stream="side")}, profile=False)


def test_a_host_that_is_interrupted_once_has_no_side_stream(gpu, watch):
    gpu.stalls = [gpu.host_s + 1e-3 + 11e-6]  # while the last event is waited for
    assert not watch.leaves_work(gpu.callable(1e-3))


def test_what_disturbs_a_block_is_counted(gpu, watch):
    before = watch.disturbances()
    assert before["foreign processes"] == 0
    gpu.device_allocs += 2
    gpu.ooms += 1
    gpu.nvml.processes[FIRST].append(1)
    after = watch.disturbances()
    assert after["device allocations"] - before["device allocations"] == 3
    assert after["foreign processes"] == 1
    gpu.allocated = 12
    assert watch.allocated() == 12
    assert watch.conditions()["sm_clock_mhz"] == 1980


def test_without_nvml_nobody_knows_and_nobody_says_none(card):
    gpu = card()
    gpu.nvml.silent.add("nvmlInit")
    watch = stopwatch_for("cuda:0")
    assert watch.conditions() is None
    assert watch.disturbances()["foreign processes"] is None
    result = compare({"a": gpu.callable(1e-4), "b": gpu.callable(2e-4)})
    assert set(result.table.throttle) == {"unknown"}
    assert result.table.verdict[1] == "slower" and result.table.ratio[1] == pytest.approx(2)
    assert result.table.sm_clock_mhz.isna().all()
    assert "none" not in str(result).lower()


@pytest.mark.parametrize("quantity", ["gpu_cold", "gpu_warm", "step_wall"])
@pytest.mark.parametrize("cost", [1e-6, COST_S, 3e-3])
def test_a_known_cost_comes_back_through_the_whole_of_it(gpu, quantity, cost):
    result = compare({"a": gpu.callable(cost)}, quantity=quantity, settle_cap_s=0.0)
    row = result.table.iloc[0]
    gap_s = 0.0 if quantity == "gpu_cold" else CLOCK_S - STAMP_S
    host_s = {"step_wall": gpu.launch_s}.get(quantity, 0.0)
    assert row.median_s == pytest.approx(max(cost + gap_s, host_s), rel=0.02)
    assert not row.launch_inclusive and row.throttle == "none"
    assert result.census["a"].kernels == ("kernel",) and result.warnings == ()


def test_a_steady_callable_of_any_length_settles(gpu, watch):
    assert settle(watch, {"a": [gpu.callable(1e-3)]}) < 1.0
    assert settle(watch, {"a": [gpu.callable(COST_S)]}) < 1.0
    assert not watch.warnings


def test_the_queue_is_never_full_where_a_sample_is_taken(gpu, watch):
    chain = gpu.callable(500e-6, kernels=300)
    sampler = sampling.prepare(watch, [chain], "gpu_cold")
    deepest = []
    monitored = watch.spans

    def spans(calls, **options):
        deepest.append(sum(300 + 7 for _ in calls))
        return monitored(calls, **options)

    watch.spans = spans
    sampler.take(16)
    assert max(deepest) < fake_gpu.QUEUED_AT_MOST and not sampler.launch_inclusive


@pytest.mark.parametrize("quantity", ["gpu_cold", "gpu_warm"])
def test_the_first_estimate_of_a_call_is_the_devices_and_not_the_hosts(gpu, watch, quantity):
    chain = gpu.callable(120e-6, kernels=100)
    assert watch.enqueue(chain) > 190e-6
    assert sampling.prepare(watch, [chain], quantity).period_s == pytest.approx(120e-6, rel=0.05)


def test_a_busy_host_leaks_into_no_cold_figure(gpu, watch):
    hog = gpu.host_s + 10
    gpu.stalls = [hog + 0.7e-3 * n for n in range(1, 400)]
    gpu.host_s, gpu.stall_s = hog, 0.3e-3
    row = compare({"a": gpu.callable(COST_S)}, profile=False, settle_cap_s=0.0).table.iloc[0]
    assert row.launch_inclusive or row.median_s == pytest.approx(COST_S, rel=0.02)


def test_a_clock_that_jumps_for_good_is_asked_again_in_the_next_block(gpu):
    def jump(made):
        gpu.gap_s = fake_gpu.LAUNCH_GAP_S + (0.8e-6 if made.calls > 200 else 0.0)

    call = gpu.callable(2e-6, each=jump)
    row = compare({"a": call}, settle_cap_s=0.0, profile=False, iters=400).table.iloc[0]
    assert call.made.calls > 1000 and row.median_s == pytest.approx(2e-6, rel=0.01)
    assert "less the clock's own time in each block" in row.method


def test_the_allocator_going_to_the_driver_costs_the_block(gpu):
    def grow(made):
        gpu.device_allocs += made.calls in (2000, 2001, 2100)

    call = gpu.callable(1e-4, each=grow)
    row = compare({"a": call}, settle_cap_s=0.0, iters=2400, profile=False).table.iloc[0]
    assert call.made.calls > 2100
    assert row.discarded >= 1 and row.discarded_why == "device allocations"


@pytest.mark.parametrize("quantity", sampling.QUANTITIES)
def test_a_callable_that_raises_leaves_nothing_behind_for_the_next(gpu, quantity):
    def boom(made):
        if made.calls == boom.at:
            raise ValueError("boom")

    for boom.at in (1, 2, 4, 7, 20, 60):
        with pytest.raises(ValueError, match="boom"):
            compare({"a": gpu.callable(1e-3, each=boom)}, quantity=quantity, iters=100)
    row = compare({"a": gpu.callable(1e-3)}, quantity=quantity).table.iloc[0]
    expected = gpu.launch_s if quantity == "host_enqueue" else 1e-3
    assert row.median_s == pytest.approx(expected, rel=0.1)


def test_a_callable_without_kernels_is_refused(gpu):
    for quantity in ("gpu_cold", "gpu_warm"):
        with pytest.raises(MeasurementError, match="Nothing ran on cuda:0"):
            idle = gpu.callable(0.0, kernels=0, host_s=5e-6)
            compare({"a": idle}, quantity=quantity, settle_cap_s=0.0)


@pytest.mark.parametrize("quantity", ["gpu_cold", "gpu_warm"])
def test_a_long_callable_without_kernels_is_refused_too(gpu, quantity):
    idle = gpu.callable(0.0, kernels=0, host_s=0.2)
    with pytest.raises(MeasurementError, match="Nothing ran on cuda:0"):
        compare({"a": idle}, quantity=quantity, profile=False)


@pytest.mark.parametrize("quantity", sampling.QUANTITIES)
def test_ten_seconds_a_call_are_three_blocks_in_each_quantity(gpu, quantity):
    call = gpu.callable(10.0)
    begun = gpu.host_s
    row = compare({"a": call}, quantity=quantity).table.iloc[0]
    assert call.made.calls < 30 and gpu.host_s - begun < 300 and row.wide
    expected = gpu.launch_s if quantity == "host_enqueue" else 10.0
    assert row.median_s == pytest.approx(expected, rel=0.1)


def test_a_call_that_can_not_be_hidden_is_slept_before_no_longer(gpu, watch):
    sampler = sampling.prepare(watch, [gpu.callable(20e-3, syncs=True)], "gpu_cold")
    sampler.take(1)
    gpu.sleeps.clear()
    sampler.take(1)
    assert sampler.launch_inclusive and not gpu.sleeps


def test_ten_seconds_a_call_that_waits_for_the_device_do_not_take_minutes_of_sleep(gpu):
    begun = gpu.host_s
    compare({"a": gpu.callable(10.0, syncs=True)}, profile=False)
    assert gpu.host_s - begun < 300


def test_a_process_that_comes_costs_the_block_it_came_in(gpu):
    def visit(made):
        own = gpu.nvml.processes[FIRST][0]
        gpu.nvml.processes[FIRST] = [own, 1] if 2000 <= made.calls < 2090 else [own]

    call = gpu.callable(1e-4, each=visit)
    row = compare({"a": call}, settle_cap_s=0.0, iters=2400, profile=False).table.iloc[0]
    assert row.discarded >= 1 and row.discarded_why == "foreign processes"


@pytest.mark.parametrize("after", [60, 2000])
def test_a_process_that_comes_and_stays_leaves_no_clean_figure(gpu, after):
    def come(made):
        if made.calls == after:
            gpu.nvml.processes[FIRST].append(1)

    call = gpu.callable(1e-4, each=come)
    with pytest.raises(MeasurementError, match="foreign processes"):
        compare({"a": call}, iters=2400, profile=False)


def test_a_card_that_slows_down_for_heat_throws_blocks_away(gpu):
    def heat(made):
        if made.calls in (2000, 2300):
            gpu.nvml.counters[FIRST][3] = (1, gpu.nvml.counters[FIRST][3][1] + 1000)

    call = gpu.callable(1e-4, each=heat)
    row = compare({"a": call}, settle_cap_s=0.0, iters=2400, profile=False).table.iloc[0]
    assert row.discarded == 2 and row.discarded_why == "hardware_thermal"


def test_a_leak_is_told_with_its_size(gpu):
    def keep(made):
        gpu.allocated += 2**20

    result = compare({"a": gpu.callable(1e-3, each=keep)}, profile=False)
    assert any("more were allocated" in warning for warning in result.warnings)


def test_where_another_tool_profiles_the_comparison_goes_on_without_names(card):
    gpu = card(profiler="blind")
    result = compare({"a": gpu.callable(1e-3)})
    assert result.census == {} and result.table.kernels.isna().all()


def test_a_profiler_that_is_taken_costs_the_names_and_not_the_comparison(card):
    gpu = card(profiler=RuntimeError("Profiler is already enabled on this thread"))
    assert compare({"a": gpu.callable(1e-3)}).census == {}


def test_cuda_alone_is_its_first_card_and_the_same_clock(gpu):
    assert stopwatch_for("cuda") is stopwatch_for("cuda:0")


def test_a_second_cards_clock_leaves_the_first_ones_events_where_they_belong(gpu):
    first = stopwatch_for("cuda:0")
    stopwatch_for("cuda:1")
    first.spans([gpu.callable(COST_S)], cold=True, hold_s=1e-3)
    assert gpu.current_device == 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="this host has CUDA")
def test_without_a_gpu_a_comparison_says_so_in_a_sentence():
    with pytest.raises(DeviceError, match="--device cpu"):
        compare({"a": lambda: torch.ones(1)})


def test_a_recording_keeps_the_account_of_the_clock(gpu):
    told = account("cuda:0")
    assert told["method"]["clock"] == "CUDA events"
    assert told["method"]["flush_bytes"] == 2 * told["method"]["cache_bytes"] == 120 * 2**20
    assert told["method"]["calibration"]["clock_s"] == pytest.approx(CLOCK_S)
    assert told["warnings"] == []


def test_one_stopwatch_serves_a_process(gpu):
    assert stopwatch_for("cuda:0") is stopwatch_for(torch.device("cuda", 0))
    assert stopwatch.QUEUE_LIMIT < fake_gpu.QUEUED_AT_MOST
