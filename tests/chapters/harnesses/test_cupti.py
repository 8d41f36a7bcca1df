"""The reference of the contest: what CUPTI's record of a call's kernels is taken for."""

import pytest

from anatomy.chapters.harnesses.stopwatches import cupti
from anatomy.table.errors import MeasurementError
from tests.fakes.fake_stopwatch import Fake, FakeStopwatch

COST_S = 100e-6


def test_a_reference_is_the_median_of_its_rounds_and_keeps_them():
    watch = FakeStopwatch(noise=0.001)
    begun = watch.now()
    rounds = [cupti.wall(Fake(watch, COST_S * off), watch) for off in (1.0, 1.2, 1.1)]
    assert watch.now() - begun > 3 * cupti.WARM_UP_S, "each has run for a while before"
    found = cupti.columns(rounds)
    assert found["median_s"] == pytest.approx(1.1 * COST_S, rel=0.002)
    assert found["low_s"] == pytest.approx(COST_S, rel=0.002)
    assert found["high_s"] == pytest.approx(1.2 * COST_S, rel=0.002)
    assert found["rounds_s"][1] == pytest.approx(found["high_s"], rel=1e-5)
    assert found["samples"] == 3 * cupti.RUNS and found["busy_s"] is None


class Traced(FakeStopwatch):
    """A device whose kernels are listed as a profiler would; they and the host take turns."""

    def __post_init__(self):
        super().__post_init__()
        self.kernels, self.drains = [], 0
        self.flush = lambda: self.kernel("flush", 60e-6)

    def kernel(self, name, seconds):
        self.kernels.append((self.time_s, self.time_s + seconds, name))
        self.time_s += seconds

    def hold(self, seconds):
        self.kernel("spin_kernel", seconds)

    def drain(self):
        self.drains += 1

    def wall(self, calls):
        begun = self.now()
        for call in calls:
            call()
        return self.now() - begun


@pytest.fixture
def traced(monkeypatch):
    def during(act, watch):
        watch.kernels.clear()
        act()
        return list(watch.kernels)

    monkeypatch.setattr(cupti, "kernels_during", during)
    return Traced()


@pytest.mark.parametrize("seconds", [3e-6, COST_S, 2e-3])
def test_the_cold_reference_is_the_span_of_the_calls_own_kernels(traced, seconds):
    def call():
        traced.kernel("first", 0.4 * seconds)
        traced.time_s += 0.1 * seconds  # a gap
        traced.kernel("second", 0.5 * seconds)

    found = cupti.cold(call, traced)
    assert found.seconds == pytest.approx(seconds) and found.kernels_per_call == 2
    assert found.busy_s == pytest.approx(0.9 * seconds)
    assert cupti.LEAST_CALLS <= len(found.values) <= cupti.CALLS
    assert traced.now() > cupti.WARM_UP_S


@pytest.mark.parametrize("seconds", [3e-6, COST_S, 2e-3])
def test_the_warm_reference_is_the_period_of_calls_behind_one_sleep(traced, seconds):
    def call():
        traced.kernel("only", 0.8 * seconds)
        traced.time_s += 0.2 * seconds

    found = cupti.warm(call, traced)
    assert found.seconds == pytest.approx(seconds)
    assert found.busy_s == pytest.approx(0.8 * seconds) and found.kernels_per_call == 1
    assert traced.now() > cupti.WARM_UP_S


def test_calls_of_the_cold_reference_are_queued_ahead_with_one_wait_for_many(traced, monkeypatch):
    monkeypatch.setattr(cupti, "WARM_UP_S", 0.0)
    found = cupti.cold(lambda: traced.kernel("only", 5e-6), traced)
    assert len(found.values) == cupti.CALLS and found.kernels_per_call == 1
    longest = max(end - start for start, end, name in traced.kernels if name == "spin_kernel")
    assert traced.drains < cupti.CALLS / 4 and longest > 10 * traced.calibration.queue_s


def test_kernels_that_do_not_divide_into_flushes_and_calls_are_no_reference():
    kernels = [(0.0, 1.0, "flush"), (1.0, 2.0, "call")] * 4
    assert [len(each) for each in cupti._calls(kernels, 4, flushing=1)] == [1] * 4
    for count, flushing in ((3, 1), (4, 2)):
        with pytest.raises(MeasurementError, match="8 kernels can't be those of"):
            cupti._calls(kernels, count, flushing)


def test_the_stopwatch_is_asked_with_the_profiler_off_and_on(monkeypatch):
    watch = FakeStopwatch()
    fake = Fake(watch, COST_S)

    def slower(act, watch):
        fake.warm_s *= 1.1
        act()
        fake.warm_s /= 1.1

    monkeypatch.setattr(cupti, "kernels_during", slower)
    for quantity in ("gpu_cold", "gpu_warm"):
        found = cupti.witnessed(fake, watch, quantity)
        assert found["events_s"] == pytest.approx(COST_S)
        assert found["events_profiled_s"] == pytest.approx(1.1 * COST_S)


def test_a_profiler_that_lost_events_gives_no_reference(traced, monkeypatch):
    during = cupti.kernels_during
    monkeypatch.setattr(cupti, "kernels_during", lambda act, watch: during(act, watch)[3:])
    with pytest.raises(MeasurementError, match="sleeps: it lost events"):
        cupti.cold(lambda: traced.kernel("only", COST_S), traced)
    monkeypatch.setattr(cupti, "kernels_during", lambda act, watch: [])
    with pytest.raises(MeasurementError, match="saw 0 of"):
        cupti.warm(lambda: traced.kernel("only", COST_S), traced)
