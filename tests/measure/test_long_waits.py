"""Calls of many milliseconds: a host that is slow after a long wait is no side stream."""

import inspect

import pytest
import torch

import anatomy
from anatomy import comparison
from anatomy.measure import stopwatch_for
from anatomy.table.errors import AnatomyError
from tests.fakes import fake_gpu
from tests.fakes.fake_gpu import FakeGpu

LONG_S, COLD_S = 50e-3, 150e-6


class ColdGpu(FakeGpu):
    """A card whose host takes long to see that it is idle, once it has waited for long."""

    def wait(self, until_s):
        self.cold = until_s - self.host_s > LONG_S / 2
        super().wait(until_s)

    def synchronize(self, device=None):
        if getattr(self, "cold", False):
            self.spend(COLD_S)
        super().synchronize(device)
        self.cold = False


@pytest.fixture
def gpu(monkeypatch):
    fake_gpu.forget()
    yield ColdGpu().install(monkeypatch)
    fake_gpu.forget()


@pytest.mark.parametrize("seconds", [20e-6, LONG_S])
def test_a_host_that_is_cold_after_a_long_call_is_not_taken_for_a_side_stream(gpu, seconds):
    assert not stopwatch_for("cuda:0").leaves_work(gpu.callable(seconds))


@pytest.mark.parametrize("seconds", [1e-3, 60e-3])
def test_work_on_a_side_stream_is_noticed_all_the_same(gpu, seconds):
    assert stopwatch_for("cuda:0").leaves_work(gpu.callable(seconds, stream="side"))


def test_a_long_call_is_measured_on_a_cold_host(gpu):
    calls, given = {"long": gpu.callable(LONG_S)}, {"profile": False, "settle_cap_s": 0.0}
    row = anatomy.compare(calls, **given).table.iloc[0]
    assert row.median_s == pytest.approx(LONG_S, rel=0.05)


def test_a_readers_compare_says_what_it_takes():
    assert inspect.signature(anatomy.compare) == inspect.signature(comparison.compare)
    assert anatomy.compare.__doc__ == comparison.compare.__doc__


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"flops": "many"}, r"flops='many': it must be a number, 0 or more"),
        ({"bytes": {"a": 1, "b": -1}}, r"bytes=-1: it must be a number"),
        ({"limit": "matmul fp61"}, r"no limit 'matmul fp61'\. Did you mean 'matmul fp16'"),
    ],
)
def test_what_can_not_be_counted_is_refused_before_anything_runs(given, says):
    calls = {name: lambda: pytest.fail("it was run") for name in "ab"}
    with pytest.raises(AnatomyError, match=says):
        anatomy.compare(calls, device="cpu", **given)


def test_a_variant_that_strays_is_told_how_to_allow_it():
    calls = {"ones": lambda: torch.ones(3), "twos": lambda: torch.full((3,), 2.0)}
    with pytest.raises(AnatomyError, match=r"twos strays .*, or allow more by allowed=\.\.\."):
        anatomy.compare(calls, device="cpu")
