"""Callables and hosts that misbehave in the middle of a measurement: no hang, no clean figure."""

import sys
from types import SimpleNamespace

import pytest
import torch

from anatomy.comparison import compare
from anatomy.measure import blocks, sampling, stopwatch
from anatomy.table.errors import DisagreementError, MeasurementError
from tests.fakes.fake_stopwatch import Fake, FakeStopwatch

QUIET = {"profile": False, "op": "toy"}


@pytest.mark.parametrize("quantity", sampling.QUANTITIES)
@pytest.mark.parametrize("kept", [0, 1, 3, 5])
def test_a_callable_that_raises_comes_out_and_the_next_comparison_works(quantity, kept):
    watch = FakeStopwatch()

    def fail(calls: int) -> None:
        if calls == (1, 2, 4, 8, 30, 200)[kept]:
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        compare({"a": Fake(watch, 1e-3, on_call=fail)}, watch=watch, quantity=quantity, **QUIET)
    fine = compare({"a": Fake(watch, 1e-3)}, watch=watch, quantity=quantity, **QUIET)
    expected = 5e-6 if quantity == "host_enqueue" else 1e-3
    assert fine.table.median_s[0] == pytest.approx(expected, rel=1e-3) and fine.warnings == ()


@pytest.mark.parametrize("quantity", sampling.QUANTITIES)
def test_an_answer_that_changes_late_gives_no_figure_in_any_quantity(quantity):
    watch = FakeStopwatch()
    fake = Fake(watch, 1e-3)

    def drift(calls: int) -> None:
        fake.result = 1.0 if calls < 60 else float("nan")

    fake.on_call = drift
    with pytest.raises(DisagreementError, match="changed its answer while it was measured"):
        compare({"a": fake}, watch=watch, quantity=quantity, iters=100, **QUIET)


@pytest.mark.parametrize("answer", [None, 1.0, (), [torch.ones(1), None], {"x": torch.ones(1)}])
def test_what_returns_no_tensor_is_refused_before_anything_is_timed(answer):
    watch = FakeStopwatch()
    with pytest.raises(DisagreementError, match=r"a returns .*; return the tensor"):
        compare({"a": lambda: answer}, watch=watch, **QUIET)
    assert watch.timed == 0


def test_what_stops_returning_a_tensor_is_refused_too():
    watch = FakeStopwatch()
    fake = Fake(watch, 1e-3)
    with pytest.raises(DisagreementError, match="returns NoneType"):
        compare({"a": lambda: fake() if fake.calls < 50 else fake() and None}, watch=watch, **QUIET)


def test_what_returns_more_tensors_later_is_a_disagreement():
    watch = FakeStopwatch()
    fake = Fake(watch, 1e-3)
    with pytest.raises(DisagreementError):
        compare({"a": lambda: [fake()] * (1 if fake.calls < 50 else 2)}, watch=watch, **QUIET)


def test_an_inference_mode_caller_leaves_nothing_that_others_cannot_use():
    def once():
        x = torch.rand(64, 64)
        return compare({"a": lambda: x @ x}, device="cpu", budget_s=0.2, settle_cap_s=0.0)

    with torch.inference_mode():
        inside = once()
    outside = once()
    assert inside.table.median_s[0] > 0 and outside.table.median_s[0] > 0


@pytest.mark.parametrize("quantity", ["host_enqueue", "step_wall"])
def test_a_host_that_shares_its_core_is_wide_or_warned_about(quantity):
    watch = FakeStopwatch(noise=0.3, interruptions=1_000_000)
    found = compare({"a": Fake(watch, 1e-3)}, watch=watch, quantity=quantity, **QUIET)
    assert any("taken away" in warning for warning in found.warnings) and found.table.wide.all()
    silent = FakeStopwatch(noise=0.3, interruptions=None)
    found = compare({"a": Fake(silent, 1e-3)}, watch=silent, quantity=quantity, **QUIET)
    assert found.table.wide.all() and not any("taken away" in each for each in found.warnings)


def test_a_gpus_own_time_is_not_the_hosts_business():
    watch = FakeStopwatch(device=torch.device("cuda", 0), interruptions=10_000)
    sampler = sampling.prepare(watch, [Fake(watch, 1e-3)], "gpu_cold")
    assert sampler.take(3) == pytest.approx([1e-3] * 3)
    from anatomy.measure import comparison

    comparison._warn_of_company(watch, "toy", "gpu_cold", 0)
    assert not watch.warnings
    comparison._warn_of_company(watch, "toy", "step_wall", 0)
    assert len(watch.warnings) == 1


def test_a_counter_that_is_missing_for_one_variant_makes_its_throttle_unknown():
    watch = FakeStopwatch(throttle={"power_cap": 0.0})
    whole, asked = watch.conditions, []

    def now_and_then():
        asked.append(1)
        found = whole()
        return found if len(asked) % 7 else found | {"throttle": {"power_cap": None}}

    watch.conditions = now_and_then
    table = compare({"a": Fake(watch, 1e-3)}, watch=watch, **QUIET).table
    assert "unknown" in set(table.throttle) and "power-limited" not in set(table.throttle)


def test_disturbances_of_any_kind_are_refused_once_most_blocks_are_lost():
    watch = FakeStopwatch()
    fake = Fake(watch, 1e-3, on_call=lambda calls: setattr(watch, "compiled", calls))
    with pytest.raises(
        MeasurementError, match=r"13 of 13 blocks were disturbed: compilations \(13"
    ):
        compare({"a": fake}, watch=watch, **QUIET)


def test_a_slow_callable_that_always_disturbs_is_given_up_in_its_budget():
    watch = FakeStopwatch()
    fake = Fake(watch, 10.0, on_call=lambda calls: setattr(watch, "compiled", calls))
    with pytest.raises(MeasurementError):
        compare({"a": fake}, watch=watch, budget_s=30.0, settle_cap_s=0.0, **QUIET)
    assert watch.now() < (blocks.PATIENCE + 2) * 30.0


def test_a_kernel_that_leaves_nothing_of_its_span_is_refused_by_a_tenth_of_a_microsecond():
    watch = FakeStopwatch(device=torch.device("cuda", 0))
    for quantity in ("gpu_cold", "gpu_warm"):
        assert sampling.prepare(watch, [Fake(watch, 0.6e-6)], quantity).period_s > 0.5e-6
    with pytest.raises(MeasurementError, match="Nothing ran"):
        sampling.prepare(watch, [Fake(watch, 0.1e-6)], "gpu_cold")


def test_the_chunk_of_a_launch_heavy_call_fits_into_the_queue():
    watch = FakeStopwatch()
    chunks = []
    whole = watch.spans
    watch.spans = lambda calls, **more: (chunks.append(len(calls)), whole(calls, **more))[1]
    for enqueue_s, least, most in ((5e-6, 16, 16), (200e-6, 7, 7), (10e-3, 1, 1)):
        sampler = sampling.prepare(watch, [Fake(watch, 20e-3, enqueue_s=enqueue_s)], "gpu_cold")
        chunks.clear()
        assert len(sampler.take(20)) == 20
        assert least <= max(chunks) <= most and sum(chunks) == 20


def test_a_batch_has_a_power_of_two_calls_that_fit_into_the_queue():
    assert sampling._calls(400e-6, 10e-6, 5e-6) == 64
    assert sampling._calls(400e-6, 1e-3, 5e-6) == 1
    assert sampling._calls(400e-6, 1.0, 5e-6) == 1
    assert sampling._calls(400e-6, 1e-6, 99e-6) == 16, "800 launches of 50 each"
    assert sampling._calls(400e-6, 1e-6, 10.0) == 1


@pytest.mark.parametrize(
    ("quantity", "cost", "calls"),
    [("gpu_cold", 1e-3, 1), ("gpu_warm", 10e-6, 64), ("step_wall", 10e-6, None)],
)
def test_the_clocks_step_is_shared_by_the_calls_of_a_batch(quantity, cost, calls):
    watch = FakeStopwatch(step_s=1e-6)
    sampler = sampling.prepare(watch, [Fake(watch, cost)], quantity)
    assert sampler.resolution_s == pytest.approx(1e-6 / calls if calls else 0.0)


def test_each_recompilation_is_counted_and_nothing_is_imported_to_count_it(monkeypatch):
    name = "torch._dynamo.utils"
    with monkeypatch.context() as patched:
        patched.delitem(sys.modules, name, raising=False)
        assert stopwatch.compilations() == 0 and name not in sys.modules
    doubled = torch.compile(lambda x: x * 2, backend="eager", dynamic=False)
    doubled(torch.ones(2))
    before = stopwatch.compilations()
    doubled(torch.ones(2))
    assert stopwatch.compilations() == before
    doubled(torch.ones(3))
    assert stopwatch.compilations() == before + 1


def test_a_host_without_counters_of_preemption_says_that_it_does_not_know(monkeypatch):
    resource = pytest.importorskip("resource")
    watch = stopwatch.Stopwatch(torch.device("cpu"))
    monkeypatch.setattr(resource, "getrusage", lambda who: SimpleNamespace(ru_nivcsw=7))
    assert watch.preemptions() == 7
    monkeypatch.setitem(sys.modules, "resource", None)
    assert watch.preemptions() is None


@pytest.mark.parametrize("sets", [1, 3])
@pytest.mark.parametrize("quantity", ["gpu_cold", "gpu_warm"])
def test_nothing_of_the_clock_is_left_in_a_sample_of_any_way(quantity, sets):
    watch = FakeStopwatch()
    sampler = sampling.prepare(watch, [Fake(watch, 2e-6)] * sets, quantity)
    assert sampler.take(2) == pytest.approx([2e-6] * 2, rel=1e-9)


def test_one_disturbed_block_ends_nothing_though_the_budget_is_spent_before_it():
    watch = FakeStopwatch()
    calls = Fake(watch, 1e-3, on_call=lambda n: setattr(watch, "compiled", int(watch.timed > 3)))
    table = compare({"a": calls}, watch=watch, budget_s=1e-9, settle_cap_s=0.0, **QUIET).table
    assert table.discarded.iloc[0] == 1
