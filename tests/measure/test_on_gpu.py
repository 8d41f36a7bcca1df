"""What only a GPU can show; skipped, with this reason, where there is none."""

from statistics import median

import pytest
import torch

from anatomy.chapters.harnesses.stopwatches import cupti
from anatomy.comparison import compare
from anatomy.measure import census, sampling, stopwatch_for
from anatomy.table.errors import DisagreementError, MeasurementError

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
    x = torch.rand(1 << 20, device=DEVICE)
    kept = (x + 1).clone()
    del kept  # its block goes back to the allocator, right answer inside
    with pytest.raises(DisagreementError):
        compare({"lazy": lambda: torch.empty_like(x)}, reference=lambda: x.double() + 1)


def test_spans_of_one_chunk_are_all_queued_before_the_first_begins(watch):
    x = torch.rand(1, device=DEVICE)
    queued = []
    begun = torch.cuda.Event()

    def first():
        begun.record()
        return x + 1

    def ask():
        queued.append(begun.query())
        return x + 1

    sampler = sampling.prepare(watch, [lambda: x + 1], "gpu_cold")
    hold_s = sampling.HOLD_MARGIN_S + sampling.CHUNK * sampler.hold_s * 2
    calls = [first, *[ask] * (sampling.CHUNK - 1)]
    watch.spans(calls, cold=True, hold_s=hold_s)  # once to warm up
    queued.clear()
    spans, leaked = watch.spans(calls, cold=True, hold_s=hold_s)
    assert not leaked and len(spans) == sampling.CHUNK
    assert not any(queued), "the first call had begun while later ones were queued"


def test_the_clock_adds_a_few_microseconds(watch):
    known = watch.calibration
    assert known.null_record_s is not None, "CUPTI must see the null kernel here"
    assert 1e-6 < known.clock_s < 6e-6
    assert all(1e-6 < watch.clock_now() < 6e-6 for _ in range(5))
    assert 0.3e-6 < known.null_record_s < 3e-6 and known.event_pair_s < known.null_kernel_s


def test_a_cold_add_of_one_element_takes_what_its_kernel_takes():
    x = torch.rand(1, device=DEVICE)
    row = compare({"add": lambda: x + 1}, device=DEVICE, quantity="gpu_cold").table.iloc[0]
    assert 0.5e-6 < row.median_s < 3e-6 and not row.launch_inclusive


@pytest.mark.parametrize("mebibytes", [16, 40])
def test_a_cold_figure_of_some_microseconds_is_that_of_the_record(watch, mebibytes):
    x = torch.rand(mebibytes * 2**18, device=DEVICE)
    out = torch.empty_like(x)

    def call():
        return torch.mul(x, 2.0, out=out)

    row = compare({"mul": call}, device=DEVICE, quantity="gpu_cold").table.iloc[0]
    rounds = [median(cupti.cold(call, watch)) for _ in range(3)]
    assert 5e-6 < row.median_s < 60e-6
    assert row.median_s == pytest.approx(sorted(rounds)[1], rel=0.05)


@pytest.mark.parametrize("quantity", ["gpu_cold", "gpu_warm"])
def test_a_callable_without_kernels_is_refused(quantity):
    x = torch.rand(8, device=DEVICE)
    with pytest.raises(MeasurementError, match="Nothing ran on cuda:0's current stream"):
        compare({"view": lambda: x.view(2, 4)}, device=DEVICE, quantity=quantity)


def test_work_on_another_stream_is_noticed(watch):
    x = torch.rand(2**28, device=DEVICE)
    side = torch.cuda.Stream()

    def aside():
        with torch.cuda.stream(side):
            return x * 2

    for call in (aside, lambda: x * 2):
        watch.wall([call] * 3)
    assert watch.leaves_work(aside) and not watch.leaves_work(lambda: x * 2)


def test_a_comparison_prints_itself_with_a_share_of_the_limit():
    x = torch.rand(2**27, device=DEVICE)
    out = torch.empty_like(x)
    result = compare(
        {"copy": lambda: out.copy_(x), "twice": lambda: out.copy_(x).copy_(x)},
        device=DEVICE,
        bytes={"copy": 8 * x.numel(), "twice": 16 * x.numel()},
        op="copy",
    )
    text = str(result)
    assert "of copy" in text and "noise floor" in text
    assert list(result.table.limit[:2]) == ["copy", "copy"] and not result.table.note.any()
    assert result.table.verdict[1] == "slower"
    assert result.ceilings is None or result.ceilings.get("copy") is not None


def test_settling_of_short_calls_ends(watch):
    x = torch.rand(1, device=DEVICE)
    begun = watch.now()
    result = compare({"add": lambda: x + 1}, device=DEVICE, budget_s=1.0)
    assert not any("not steady" in warning for warning in result.warnings)
    assert watch.now() - begun < 5.0
