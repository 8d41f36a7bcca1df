"""What no figure may be."""

import pytest

from anatomy.judge import gates
from anatomy.judge.limits import Ceiling, Ceilings
from anatomy.record import recording
from anatomy.table.errors import RecordingError

CACHE = 60 * 2**20
MEASURED = Ceilings("toy", {"copy": Ceiling("copy", 4e12, "B/s", "measured", "a recording")})


def gate(median_s=1e-3, gpu="NVIDIA H200", cache_bytes=CACHE, ceilings=lambda: MEASURED, **row):
    """Ask about a cold call of 1 ms on an H200, with what is not said unknown."""
    machine = {"gpu": gpu, "max_sm_clock_mhz": 1980}
    asked = {"quantity": "gpu_cold", "limit": "copy"} | row
    return gates.impossible(asked, median_s, machine, cache_bytes, ceilings)


def unknown():
    """The ceilings of a machine that nobody has measured."""


def test_a_product_above_the_peak_at_the_highest_clock_did_less_work_than_claimed():
    assert "H200" in gate(flops=1.2e12, limit="matmul fp16")
    # 1050 TFLOP/s is above the datasheet's 989 and below what 1980 MHz give.
    assert gate(flops=1.05e12, limit="matmul fp16") is None


def test_the_highest_clock_is_the_one_that_the_driver_tells():
    slow = gates.impossible(
        {"flops": 1.05e12, "limit": "matmul fp16"},
        1e-3,
        {"gpu": "NVIDIA H200", "max_sm_clock_mhz": 1830},
        CACHE,
        unknown,
    )
    assert "9.89e+14 FLOP/s" in slow


def test_each_number_format_has_its_own_peak():
    assert "impossible" in gate(flops=1e11, limit="matmul fp32")
    assert gate(flops=1e11, limit="matmul tf32") is None


def test_a_cold_call_that_beats_the_measured_bandwidth_did_not_touch_the_memory():
    assert "impossible" in gate(bytes=4.2e9)
    assert gate(bytes=4.05e9) is None, "the ceiling has an uncertainty of its own"


@pytest.mark.parametrize(
    "excuse", [{"quantity": "gpu_warm"}, {"cache_bytes": 5 * 10**9}, {"cache_bytes": None}]
)
def test_what_may_lie_in_a_cache_of_half_its_size_may_be_faster_than_the_memory(excuse):
    assert gate(bytes=8e9, **excuse) is None
    assert "impossible" in gate(bytes=8e9, cache_bytes=39 * 10**8)


def test_a_call_that_only_reads_is_held_against_reading_and_any_other_against_copying():
    both = [
        Ceiling("copy", 4e12, "B/s", "measured", ""),
        Ceiling("read", 5e12, "B/s", "measured", ""),
    ]
    known = Ceilings("toy", {each.name: each for each in both})
    assert gate(bytes=4.8e9, limit="read", ceilings=lambda: known) is None
    assert "5e+12 B/s" in gate(bytes=5.2e9, limit="read", ceilings=lambda: known)
    for limit in ("copy", "matmul fp16", None):
        assert "4e+12 B/s" in gate(bytes=4.8e9, limit=limit, ceilings=lambda: known)


def test_without_a_measured_ceiling_the_datasheet_is_the_gate():
    assert gate(bytes=4.7e9, ceilings=unknown) is None
    assert "impossible" in gate(bytes=5.0e9, ceilings=unknown)


@pytest.mark.parametrize("known", [{"flops": 1e9, "limit": "matmul fp16"}, {"bytes": 1e9}, {}])
@pytest.mark.parametrize("median_s", [-1e-7, 0.0])
def test_no_time_and_less_are_impossible(median_s, known):
    assert "impossible" in gate(median_s=median_s, **known)


def test_an_unknown_gpu_has_no_gate():
    assert gate(flops=1e18, bytes=1e18, limit="matmul fp16", gpu="Toy", ceilings=unknown) is None


@pytest.mark.parametrize(
    ("known", "regime"),
    [
        ({"enqueue_s": 9e-6, "period_s": 10e-6, "gap_share": 0.0}, "launch-bound"),
        ({"enqueue_s": 8.9e-6, "period_s": 10e-6, "gap_share": 0.1}, "kernel-bound"),
        ({"enqueue_s": 5e-6, "period_s": 10e-6, "gap_share": 0.11}, "gap-bound"),
        ({"enqueue_s": 5e-6, "period_s": 10e-6, "gap_share": 0.2}, "gap-bound"),
        ({"enqueue_s": 5e-6, "period_s": 10e-6, "gap_share": 0.05}, "kernel-bound"),
        ({"enqueue_s": 5e-6, "period_s": 10e-6, "gap_share": None}, None),
    ],
)
def test_a_call_is_bound_by_its_launches_its_gaps_or_its_kernels(known, regime):
    assert gates.regime(**known) == regime


def test_a_machine_without_recorded_ceilings_is_no_error(monkeypatch, tmp_path):
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(tmp_path))
    ceilings = recording.known_ceilings("nvidia-h200")
    assert not ceilings.measured and ceilings.by_name["copy"].value == 4.8e12, "the datasheet's"


def test_outside_a_checkout_the_folder_here_holds_what_was_measured(monkeypatch, tmp_path):
    monkeypatch.setattr("anatomy.record.recording.default_root", _no_checkout)
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(recording, "ceilings", lambda root, slug: asked.append((root, slug)))
    recording.known_ceilings("nvidia-h200")
    assert [(str(root), slug) for root, slug in asked] == [("recordings", "nvidia-h200")]


def _no_checkout():
    raise RecordingError("no checkout")
