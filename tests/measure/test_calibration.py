"""What the clock itself costs, where device, profiler or host are not as they should be."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from anatomy.comparison import compare
from anatomy.machine import host
from anatomy.measure import cache, calibration, census, stopwatch_for
from tests.fakes import fake_gpu
from tests.fakes.fake_gpu import CLOCK_S, STAMP_S, FakeGpu


@pytest.fixture
def card(monkeypatch):
    """Installs a fake card: `card(launch_s=...)`."""
    fake_gpu.forget()
    yield lambda **options: FakeGpu(**options).install(monkeypatch)
    fake_gpu.forget()


def test_what_the_clock_adds_is_the_span_less_the_record(card):
    card()
    watch = stopwatch_for("cuda:0")
    known = watch.calibration
    assert known.event_pair_s == pytest.approx(STAMP_S)
    assert known.null_record_s == pytest.approx(fake_gpu.LEAST_KERNEL_S)
    assert known.null_kernel_s == pytest.approx(fake_gpu.LEAST_KERNEL_S + CLOCK_S)
    assert known.clock_s == pytest.approx(CLOCK_S)
    assert watch.clock_now() == pytest.approx(CLOCK_S)
    assert known.probe_cold_s > 1.05 * known.probe_warm_s and not watch.warnings
    assert known.flush_s > 40e-6 and known.synchronize_s == pytest.approx(3e-6, rel=0.1)


@pytest.mark.parametrize("profiler", ["blind", RuntimeError("CUPTI is held by another tool")])
def test_without_a_record_the_empty_pair_is_taken_off_and_that_is_said(card, profiler):
    card(profiler=profiler)
    watch = stopwatch_for("cuda:0")
    assert watch.calibration.null_record_s is None
    assert watch.calibration.clock_s == watch.clock_now() == pytest.approx(STAMP_S)
    assert len(watch.warnings) == 1 and "No profiler records kernels" in watch.warnings[0]


def test_the_null_kernel_is_recorded_as_a_cold_call_is_queued(card):
    gpu = card()
    recorded, seen = gpu._recorded, []
    gpu._recorded = lambda first: seen.extend(gpu.kernels[first:]) or recorded(first)
    stopwatch_for("cuda:0")
    names = [name.split("::")[-1] for *_, name in seen]
    assert names == ["reduce", "reduce", "spin_kernel(long)"] * calibration.RECORDS


def test_a_flush_that_leaves_the_cache_full_is_told(card):
    card(l2_bytes=16 * 2**20, true_l2_bytes=256 * 2**20)
    watch = stopwatch_for("cuda:0")
    assert any("does not empty the cache of cuda:0" in warning for warning in watch.warnings)


def test_a_clock_in_steps_is_known_by_its_step(card):
    gpu = card(step_s=0.5e-6)
    watch = stopwatch_for("cuda:0")
    gpu.step_s = 32e-9
    spans = [round(n * 0.3) * 32e-9 for n in range(40)]
    assert calibration._resolution(spans) == pytest.approx(32e-9)
    assert watch.calibration.resolution_s == 0.0, "all spans alike: no step can be seen"
    assert calibration._resolution([1.0, 2.0, 3.0]) == 0.0, "all different"
    assert calibration._resolution([1.0, 3.0, 4.0] * 2) == 1.0, "each of them twice; the least step"
    assert calibration._resolution([]) == calibration._resolution([1.0] * 9) == 0.0


def test_clock_beside_lies_between_the_steps():
    known = SimpleNamespace(null_record_s=1.0, resolution_s=1.0, clock_s=9.0)
    watch = SimpleNamespace()
    watch.spans = lambda calls, **_: ([4.0] * 6 + [5.0] * 3 + [3.0] * 3, False)
    assert calibration.clock_beside(watch, known) == pytest.approx(3.0)
    watch.spans = lambda calls, **_: ([4.0] * 7 + [5.0] * 5, False)
    assert 3.0 < calibration.clock_beside(watch, known) < 3.5
    known.resolution_s = 0.0
    assert calibration.clock_beside(watch, known) == 3.0
    known.null_record_s = None
    assert calibration.clock_beside(watch, known) == 9.0


def test_a_host_too_slow_to_be_hidden_spoils_no_calibration_in_silence(card):
    card(launch_s=40e-6)
    watch = stopwatch_for("cuda:0")
    assert watch.calibration.clock_s == pytest.approx(CLOCK_S, abs=0.2e-6) or watch.warnings


def test_a_host_slowed_later_on_takes_nothing_off_a_short_kernel(card):
    gpu = card()
    stopwatch_for("cuda:0")
    gpu.launch_s = 40e-6
    row = compare({"a": gpu.callable(2e-6)}, profile=False, settle_cap_s=0.0).table.iloc[0]
    assert row.median_s == pytest.approx(2e-6, rel=0.05) or row.launch_inclusive or row.wide


def test_a_card_without_an_l2_size_is_flushed_with_the_largest(card):
    gpu = card(l2_bytes=0)
    watch = stopwatch_for("cuda:0")
    device = torch.device("cuda", 0)
    assert watch.flush.cache_bytes == 128 * 2**20 and watch.flush.bytes == 256 * 2**20
    assert watch.flush._written.bytes == 128 * 2**20 and watch.flush._read.bytes == 256 * 2**20
    assert cache.rotation(64 * 2**20, device) == 4 and cache.rotation(2**30, device) == 2
    assert cache.rotation(1, device) == 1, "so many sets that flushing is better"
    assert cache.rotation(8 * 2**20, device) == 32 and cache.rotation(8 * 2**20 - 1, device) == 1
    assert cache.rotation(0, device) == 1
    row = compare({"a": gpu.callable(1e-4)}, bytes=1e6, settle_cap_s=0.0).table.iloc[0]
    assert row.median_s == pytest.approx(1e-4, rel=0.01) and not row.note


def test_an_unknown_l2_size_is_recorded_as_unknown(card):
    card(l2_bytes=0)
    assert host.describe("cuda:0")["l2_bytes"] is None


def test_the_largest_cache_of_the_host_is_the_one_that_counts(monkeypatch):
    cpu = torch.device("cpu")
    found = [SimpleNamespace(read_text=lambda t=t: t) for t in ("48K\n", "105M\n", "2048K", "512")]
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(found))
    assert cache.last_level_cache_bytes(cpu) == 105 * 2**20
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(()))
    assert cache.last_level_cache_bytes(cpu) == cache.CPU_CACHE_BYTES
    assert cache._parse_size("2G") == 2**31 and cache._parse_size("512") == 512


def test_the_census_has_the_kernels_of_each_and_none_where_events_were_lost(card):
    gpu = card()
    watch = stopwatch_for("cuda:0")
    calls = {"one": gpu.callable(1e-5), "three": gpu.callable(3e-5, kernels=3)}
    found = census.take(calls, watch)
    assert found["one"].kernels == ("kernel",) and found["three"].kernels == ("kernel",) * 3
    assert found["one"].gap_share == pytest.approx(0.0) and 0.05 < found["three"].gap_share < 0.1
    assert found["three"].busy_s < found["three"].span_s == pytest.approx(30e-6, rel=0.1)
    whole = gpu._recorded
    gpu._recorded = lambda first: whole(first)[3:]
    assert census.take(calls, watch) is None
    assert census.take(calls, stopwatch_for("cpu")) is None
    assert census.Census((), 0.0, 0.0).gap_share == 0.0


def test_a_census_of_changing_calls_shows_the_last_one():
    runs = [[(0.0, 1.0, "tune"), (2.0, 3.0, "a")], [(0.0, 2.0, "a")], [(0.0, 1.0, "a")]]
    found = census._census(runs)
    assert found.kernels == ("a",) and found.busy_s == 2.0 and found.span_s == 2.0
