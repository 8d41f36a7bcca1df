"""What only a GPU can show; skipped, with this reason, where there is none."""

import pytest
import torch

from anatomy.measuring import census, compare, sampling, stopwatch_for

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
DEVICE = "cuda:0"


@pytest.fixture(scope="module")
def watch():
    return stopwatch_for(DEVICE)


def spin(watch, seconds):
    """A callable whose kernel keeps the device busy for about `seconds`."""
    one = torch.ones(1, device=DEVICE)

    def call():
        watch.hold(seconds)
        return one

    return call


@pytest.mark.parametrize("quantity", ["gpu_warm", "gpu_cold", "step_wall"])
def test_a_kernel_of_known_length_is_as_long_as_it_is(watch, quantity):
    result = compare({"spin": spin(watch, 1e-3)}, quantity=quantity, device=DEVICE, iters=12)
    assert result.table.median_s[0] == pytest.approx(1e-3, rel=0.05)


def test_two_percent_more_cycles_are_two_percent_more_time(watch):
    table = compare(
        {"spin": spin(watch, 1e-3), "spin more": spin(watch, 1.02e-3)},
        quantity="gpu_warm",
        device=DEVICE,
    ).table
    assert table.ratio[1] == pytest.approx(1.02, abs=0.002)


def test_dispatch_is_hidden_behind_the_sleep(watch):
    x = torch.rand(64, device=DEVICE)

    def chain():
        y = x
        for _ in range(20):
            y = y + 1
        return y

    sampler = sampling.prepare(watch, [chain], "gpu_cold")
    span = min(sampler.take(20))
    assert not sampler.launch_inclusive
    assert span < sampler.enqueue_s, "twenty tiny kernels take less than their launches"


def test_a_callable_that_synchronizes_is_found_out(watch):
    x = torch.rand(64, device=DEVICE)
    assert watch.synchronizes(lambda: x.sum().item())
    assert not watch.synchronizes(lambda: x.sum())


def test_a_flush_makes_the_next_read_come_from_memory(watch):
    assert watch.calibration.probe_cold_s > 1.1 * watch.calibration.probe_warm_s


def test_the_census_names_each_kernel_of_one_call_and_the_sleep_is_none_of_them(watch):
    x = torch.rand(512, 512, device=DEVICE)
    calls = {"three": lambda: (x.t() + 1).contiguous() @ x, "one": lambda: x + 1}
    found = census.take(calls, watch)
    assert len(found["one"].kernels) == 1
    seen = found["three"]
    assert len(seen.kernels) >= 2 and not any("spin" in name for name in seen.kernels)
    assert 0 < seen.busy_s <= seen.span_s


def test_an_unwritten_output_cannot_pass_on_an_earlier_answer():
    from anatomy.errors import DisagreementError

    x = torch.rand(1 << 20, device=DEVICE)
    kept = (x + 1).clone()
    del kept  # its block goes back to the allocator, right answer inside
    with pytest.raises(DisagreementError):
        compare({"lazy": lambda: torch.empty_like(x)}, reference=lambda: x.double() + 1)
