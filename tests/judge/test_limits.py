"""Ceilings say what they bound, how they are known, and what share of them a row reached."""

import math

import pandas as pd
import pytest

from anatomy.judge.limits import (
    LEAST_SCALE,
    Ceiling,
    Ceilings,
    bound,
    datasheet,
    datasheets,
    from_datasheet,
    ridge,
    share,
)
from anatomy.record import recording
from anatomy.record.recording import ceilings
from anatomy.table.errors import RecordingError
from tests.fakes.toy_recording import made

# Operations of one SM in one clock, by architecture: the widths of its units, from the makers'
# whitepapers. Peaks must be SMs x width x clock; that is how they came about.
WIDTHS = {
    "nvidia-a100-80-sxm": {"fp16": 2048, "bf16": 2048, "tf32": 1024, "fp32": 128},
    "nvidia-h100-sxm": {"fp16": 4096, "bf16": 4096, "tf32": 2048, "fp8": 8192, "fp32": 256},
    "nvidia-h200": {"fp16": 4096, "bf16": 4096, "tf32": 2048, "fp8": 8192, "fp32": 256},
    "nvidia-rtx-4090": {"fp16": 512, "bf16": 512, "tf32": 256, "fp8": 1024, "fp32": 256},
    "nvidia-rtx-5070": {"fp16": 512, "bf16": 512, "tf32": 256, "fp8": 1024, "fp32": 256},
    "nvidia-rtx-5090": {"fp16": 512, "bf16": 512, "tf32": 256, "fp8": 1024, "fp32": 256},
}


@pytest.mark.parametrize(
    ("slug", "dtype"), [(slug, dtype) for slug, widths in WIDTHS.items() for dtype in widths]
)
def test_each_peak_is_its_units_times_its_clock(slug, dtype):
    sheet = datasheets()[slug]
    product = sheet.sm_count * WIDTHS[slug][dtype] * sheet.peak_clock_mhz[dtype] * 1e6
    assert math.isclose(sheet.flops_per_s[dtype], product, rel_tol=0.005)


@pytest.mark.parametrize(("slug", "mhz"), [("nvidia-a100-80-sxm", 1593), ("nvidia-h100-sxm", 2619)])
def test_the_bandwidth_of_hbm_is_its_pins_times_two_bits_a_clock(slug, mhz):
    sheet = datasheets()[slug]
    assert math.isclose(sheet.hbm_bytes_per_s(mhz), sheet.dram_bytes_per_s, rel_tol=0.002)
    assert sheet.hbm_bytes_per_s(None) is None
    assert datasheets()["nvidia-rtx-4090"].hbm_bytes_per_s(mhz) is None, "it has no HBM"


# Links of NVLink and what each carries in one direction, from the same whitepapers.
@pytest.mark.parametrize(("gpu", "links"), [("NVIDIA A100-SXM4-80GB", 12), ("NVIDIA H200", 18)])
def test_the_bandwidth_between_gpus_is_that_of_all_links_in_one_direction(gpu, links):
    assert datasheet(gpu).link_bytes_per_s == links * 25e9
    assert datasheet("NVIDIA GeForce RTX 5070").link_bytes_per_s is None


@pytest.mark.parametrize("slug", datasheets())
def test_every_datasheet_is_whole(slug):
    sheet = datasheets()[slug]
    assert len(sheet.source) > 20 and sheet.name.startswith("NVIDIA ")
    assert 5e11 < sheet.dram_bytes_per_s < 1e13
    assert {"fp16", "bf16", "tf32", "fp32"} <= set(sheet.flops_per_s)
    assert set(sheet.peak_clock_mhz) <= set(sheet.flops_per_s)
    assert bool(sheet.derived) == bool(sheet.derivation)
    assert set(sheet.derived) <= {*sheet.flops_per_s, "dram_bytes_per_s"}
    # A width is the same in fp16 and bf16, twice that of tf32 and half that of fp8.
    peaks = sheet.flops_per_s
    assert peaks["fp16"] == peaks["bf16"]
    assert math.isclose(peaks["fp16"], 2 * peaks["tf32"], rel_tol=0.005)
    assert "fp8" not in peaks or math.isclose(peaks["fp8"], 2 * peaks["fp16"], rel_tol=0.005)


def test_a100_has_no_fp8():
    assert "fp8" not in datasheet("NVIDIA A100-SXM4-80GB").flops_per_s
    assert datasheet("NVIDIA A100-SXM4-80GB").peak_at_max_clock("fp8") is None


def test_what_no_datasheet_states_is_labelled():
    sheet = datasheet("NVIDIA GeForce RTX 5070")
    assert sheet.cite("fp16").startswith("derived from ")
    assert sheet.cite("dram_bytes_per_s").startswith("derived from ")
    assert sheet.dram_bytes_per_s == 28e9 * 192 / 8
    known = from_datasheet("NVIDIA GeForce RTX 5070").values()
    assert all(each.source.startswith("derived from ") for each in known)
    assert datasheet("NVIDIA H200").cite("fp16") == datasheet("NVIDIA H200").source


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA H200", "nvidia-h200"),
        ("nvidia-h200", "nvidia-h200"),
        ("nvidia-h200-x4", "nvidia-h200"),
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-sxm"),
        ("NVIDIA A100-SXM4-80GB", "nvidia-a100-80-sxm"),
        ("nvidia-a100-sxm4-80gb", "nvidia-a100-80-sxm"),
        ("NVIDIA B200", "nvidia-b200"),
        ("NVIDIA GeForce RTX 4090", "nvidia-rtx-4090"),
        ("nvidia-geforce-rtx-5070", "nvidia-rtx-5070"),
        ("GeForce RTX 5090", "nvidia-rtx-5090"),
    ],
)
def test_a_gpu_is_known_by_the_drivers_name_and_by_its_slug(name, slug):
    assert datasheet(name).slug == slug


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA H200 NVL",
        "NVIDIA H100 PCIe",
        "NVIDIA A100-SXM4-40GB",
        "NVIDIA A100 80GB PCIe",
        "NVIDIA GeForce RTX 5070 Ti",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GB200",
        "cpu-some-model",
        "",
        None,
    ],
)
def test_a_relative_with_other_peaks_is_not_taken_for_it(name):
    assert datasheet(name) is None


def test_the_bound_is_the_peak_at_the_highest_clock():
    sheet = datasheet("NVIDIA H200")
    assert round(sheet.peak_at_max_clock("bf16") / 1e12) == 1070
    assert sheet.peak_at_max_clock("fp32") == 67e12  # its figure holds at the highest clock
    assert sheet.peak_at_max_clock("fp16", max_clock_mhz=1830) == 989e12
    assert sheet.peak_at_max_clock("fp16", max_clock_mhz=1500) == 989e12
    assert sheet.peak_at_max_clock("fp64") is None


def test_a_card_whose_highest_clock_is_unknown_has_no_bound_until_the_driver_tells():
    sheet = datasheet("NVIDIA GeForce RTX 4090")
    assert sheet.peak_at_max_clock("fp16") is None
    assert math.isclose(sheet.peak_at_max_clock("fp16", max_clock_mhz=2 * 2520), 2 * 165.2e12)
    assert datasheet("NVIDIA B200").peak_at_max_clock("fp16", max_clock_mhz=1965) is None


# Ceilings.

ROWS = [
    {"op": "copy", "limit": "copy", "median_s": 1.0, "bytes": 4.2e12},
    {"op": "copy", "limit": "copy", "median_s": 2.0, "bytes": 8.0e12},
    {"op": "read", "limit": "read", "median_s": 1.0, "bytes": 4.4e12},
    {"op": "matmul fp16", "limit": "matmul fp16", "median_s": 1.0, "flops": 7e14, "bytes": 1},
    {"op": "matmul fp16", "limit": "matmul fp16", "median_s": 2.0, "flops": 15e14, "bytes": 1},
    {"op": "matmul fp16", "limit": "matmul fp16", "median_s": 1.0, "flops": 9e14, "note": "Wrong."},
    {
        "op": "matmul fp16",
        "limit": "matmul fp16",
        "median_s": 1.0,
        "flops": 9e15,
        "verdict": "impossible",
    },
    {"op": "matmul bf16", "limit": "matmul bf16", "note": "Out of memory."},
]
DEFAULTS = {"device": "cuda:0"}


def save(root, rows, slug="nvidia-h200", gpu="NVIDIA H200", **params):
    machine = made()["machine"] | {"slug": slug, "gpu": gpu}
    data = made(experiment="limits.ceilings", machine=machine, rows=rows, params=DEFAULTS | params)
    return recording.save(data, root, defaults=DEFAULTS)


def test_a_measured_ceiling_is_the_best_row_and_the_makers_figure_fills_the_gaps(tmp_path):
    save(tmp_path, ROWS)
    found = ceilings(tmp_path, "nvidia-h200")
    assert found.get("copy") == Ceiling(
        "copy", 4.2e12, "B/s", "measured", "nvidia-h200/limits.ceilings/default.json"
    )
    assert found.get("read").value == 4.4e12
    assert (found.get("matmul fp16").value, found.get("matmul fp16").kind) == (7.5e14, "measured")
    assert (found.get("matmul bf16").value, found.get("matmul bf16").kind) == (989e12, "datasheet")
    assert "H200" in found.get("matmul bf16").source
    assert found.measured
    assert {ceiling.name for ceiling in found} >= {"copy", "read", "matmul fp8", "matmul tf32"}


def test_a_quick_look_gives_no_ceilings(tmp_path):
    save(tmp_path, ROWS, scale=0.01)  # its copies stay in the cache
    assert not ceilings(tmp_path, "nvidia-h200").measured
    save(tmp_path, [ROWS[1] | {"bytes": 1e6}], scale=1.0)
    assert ceilings(tmp_path, "nvidia-h200").get("copy").source.endswith("/scale=1.0.json")
    save(tmp_path, ROWS, scale=LEAST_SCALE)
    assert ceilings(tmp_path, "nvidia-h200").get("copy").value == 4.2e12


def test_of_several_recordings_the_best_row_counts(tmp_path):
    save(tmp_path, ROWS)
    save(tmp_path, [ROWS[1] | {"bytes": 9e12}], device="cuda:1")
    found = ceilings(tmp_path, "nvidia-h200").get("copy")
    assert found.value == 4.5e12
    assert found.source.startswith("nvidia-h200/limits.ceilings/device=cuda-1")


def test_without_a_recording_the_makers_figures_stand(tmp_path):
    found = ceilings(tmp_path, "nvidia-b200")
    assert {ceiling.kind for ceiling in found} == {"datasheet"}
    assert not found.measured
    assert {found.get(name).value for name in ("copy", "read", "write")} == {8e12}


def test_several_gpus_have_the_ceilings_of_one(tmp_path):
    save(tmp_path, ROWS)
    assert ceilings(tmp_path, "nvidia-h200-x4").get("copy").value == 4.2e12


def test_a_cpu_has_measured_ceilings_or_none(tmp_path):
    assert list(ceilings(tmp_path, "cpu-toy")) == []
    assert ceilings(tmp_path, "cpu-toy").get("copy") is None
    for slug in ("cpu-toy", "cpu-athlon-x2"):
        save(tmp_path, ROWS[:1], slug=slug, gpu=None)
        assert [ceiling.kind for ceiling in ceilings(tmp_path, slug)] == ["measured"]


def test_a_broken_recording_of_ceilings_is_not_passed_over(tmp_path):
    save(tmp_path, ROWS).write_text("{")
    with pytest.raises(RecordingError, match=r"limits\.ceilings/default\.json breaks off"):
        ceilings(tmp_path, "nvidia-h200")


# Shares.

KNOWN = Ceilings(
    "toy",
    {
        "copy": Ceiling("copy", 4e12, "B/s", "measured", "a"),
        "matmul fp16": Ceiling("matmul fp16", 8e14, "FLOP/s", "measured", "b"),
    },
)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"limit": "matmul fp16", "flops": 4e14, "bytes": 1e12, "median_s": 1.0}, 0.5),
        ({"limit": "copy", "flops": 4e14, "bytes": 1e12, "median_s": 0.5}, 0.5),
        ({"limit": "copy", "bytes": 4.2e12, "median_s": 1.0}, 1.05),
        ({"limit": "read", "bytes": 1e12, "median_s": 1.0}, None),
        ({"limit": None, "bytes": 1e12, "median_s": 1.0}, None),
        ({"bytes": 1e12, "median_s": 1.0}, None),
        ({"limit": "copy", "bytes": None, "median_s": 1.0}, None),
        ({"limit": "copy", "bytes": 1e12, "median_s": None}, None),
        ({"limit": "copy", "bytes": float("nan"), "median_s": 1.0}, None),
        ({"limit": float("nan"), "bytes": 1e12, "median_s": 1.0}, None),
        ({"limit": "copy", "bytes": 0, "median_s": 1.0}, None),
    ],
)
def test_a_share_is_the_rate_over_the_ceiling_that_the_row_names(row, expected):
    for given in (row, pd.Series(row, dtype=object)):
        found = share(given, KNOWN)
        if expected is None:
            assert found is None
        else:
            assert math.isclose(found[0], expected)
            assert found[1] is KNOWN.get(row["limit"])


# Compute-bound or memory-bound.


@pytest.mark.parametrize(
    ("flops", "bytes_", "kind", "least_s"),
    [
        (8e14, 1e12, "compute-bound", 1.0),  # 800 FLOP a byte
        (4e14, 8e12, "memory-bound", 2.0),  # 50 FLOP a byte
        (8e14, 4e12, "compute-bound", 1.0),  # at the ridge
        (8e14, 4.004e12, "memory-bound", 1.001),  # just below it
        (0, 4e12, "memory-bound", 1.0),
    ],
)
def test_the_slower_of_operations_and_bytes_bounds_a_call(flops, bytes_, kind, least_s):
    for name in ("fp16", "matmul fp16"):
        found = bound(flops, bytes_, KNOWN, name)
        assert found.kind == kind
        assert math.isclose(max(found.compute_s, found.memory_s), least_s)


@pytest.mark.parametrize(
    ("flops", "bytes_", "matmul"),
    [
        (None, 1e12, "fp16"),
        (float("nan"), 1e12, "fp16"),
        (1e12, None, "fp16"),
        (1e12, 1e12, None),
        (1e12, 1e12, "fp8"),
    ],
)
def test_what_is_not_known_bounds_nothing(flops, bytes_, matmul):
    assert bound(flops, bytes_, KNOWN, matmul) is None
    assert bound(1e12, 1e12, None, "fp16") is None
    only_products = Ceilings("toy", {"matmul fp16": KNOWN.get("matmul fp16")})
    assert bound(1e12, 1e12, only_products, "fp16") is None


def test_the_ridge_is_where_operations_and_bytes_take_equally_long():
    assert math.isclose(ridge(KNOWN, "fp16"), 200)
    assert ridge(KNOWN, "bf16") is None
