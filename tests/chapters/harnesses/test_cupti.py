"""The reference of the contest: what CUPTI's record of a call's kernels is taken for."""

from statistics import median

import pytest

from anatomy.chapters.harnesses.stopwatches import cupti
from anatomy.table.errors import MeasurementError
from tests.fakes.fake_stopwatch import Fake, FakeStopwatch

COST_S = 100e-6


def test_the_wall_reference_is_the_period_of_loops_behind_a_warm_up():
    watch = FakeStopwatch(noise=0.001)
    found = cupti.wall(Fake(watch, COST_S), watch)
    assert watch.now() > cupti.WARM_UP_S and len(found) == cupti.RUNS
    assert median(found) == pytest.approx(COST_S, rel=0.002)


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
@pytest.mark.parametrize("way", [cupti.cold, cupti.warm])
def test_a_reference_is_the_span_or_the_period_of_the_calls_own_kernels(traced, way, seconds):
    def call():
        traced.kernel("first", 0.4 * seconds)
        traced.time_s += 0.1 * seconds  # a gap
        traced.kernel("second", 0.5 * seconds)

    found = way(call, traced)
    assert found == pytest.approx([seconds] * len(found))
    assert len(found) >= cupti.LEAST_CALLS
    assert traced.now() > cupti.WARM_UP_S


def test_calls_of_the_cold_reference_are_queued_ahead_with_one_wait_for_many(traced, monkeypatch):
    monkeypatch.setattr(cupti, "WARM_UP_S", 0.0)
    found = cupti.cold(lambda: traced.kernel("only", 5e-6), traced)
    assert cupti.CALLS <= len(found) < 2 * cupti.CALLS
    longest = max(end - start for start, end, name in traced.kernels if name == "spin_kernel")
    assert traced.drains < cupti.CALLS / 4 and longest > 10 * traced.calibration.queue_s


def test_kernels_that_do_not_divide_into_flushes_and_calls_are_no_reference():
    kernels = [(0.0, 1.0, "flush"), (1.0, 2.0, "call")] * 4
    assert [len(each) for each in cupti._equal(kernels, 4, flushing=1)] == [2] * 4
    for count, flushing in ((3, 1), (4, 2)):
        with pytest.raises(MeasurementError, match="8 kernels can't be those of"):
            cupti._equal(kernels, count, flushing)


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
