"""What a recording must hold, and what it must never hold."""

import pytest

from anatomy.record import recording
from anatomy.table.errors import RecordingError
from tests.fakes.toy_recording import DEFAULTS, made


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([{"uses": float("inf")}], r"rows\[0\].uses is infinite; write null"),
        ([{"a": object()}], r"rows\[0\].a is a object, which JSON can't hold"),
        ([{"median_s": 0.0}], r"rows\[0\].median_s is 0.0; a time is above 0, or null"),
        ([{"ratio": -1.5}], r"ratio is -1.5"),
        ([{"verdict": "quicker"}], "verdict is 'quicker', none of control, again, faster"),
        ([{"low_s": 2.0, "median_s": 1.0}], "low_s, median_s, high_s are out of order"),
        ([{"wide": "yes"}], "wide is 'yes'; it must be true or false or null"),
        ([{"blocks_s": [None]}], r"blocks_s\[0\] is null"),
        ([7], r"rows\[0\] is 7; it must be an object"),
        ([{"interval": "narrow"}], "interval is 'narrow', none of exact, envelope"),
        ([{"runs": 2, "run_ratios": [1.0, None]}], r"run_ratios\[1\] is null"),
        ([{"runs": 3, "run_ratios": [1.0, 1.1]}], "run_ratios has 2 values of 3 runs"),
        ([{"runs": 1, "run_blocks": [2], "blocks_s": [1.0]}], "do not add up"),
    ],
)
def test_a_malformed_row_is_not_written(tmp_path, rows, match):
    with pytest.raises(
        RecordingError, match=f"contiguity.bench was not written, because .*{match}"
    ):
        recording.save(made(rows=rows), tmp_path, defaults=DEFAULTS)
    assert list(tmp_path.iterdir()) == []


def test_rows_of_several_processes_are_written_and_read_back(tmp_path):
    row = {"median_s": 1.5, "blocks_s": [1.0, 2.0], "runs": 2.0, "run_blocks": [1, 1]}
    row |= {"run_medians_s": [1.0, 2.0], "interval": "envelope"}
    file = recording.save(made(rows=[row]), tmp_path, defaults=DEFAULTS)
    assert recording.load(file).data["rows"] == [row]
    assert isinstance(recording.load(file).data["rows"][0]["runs"], int)


# What would tell a stranger who measured, where, or on which card.

KERNELS = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul>>(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float, false>"
    "(int, float, c10::Half const*, c10::Half const*, c10::Half*)",
    "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT",
    "sm90_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k"
    "_off_kernel__5x_cublas",
    "_ZN7cutlass13device_kernelI65cutlass3x_sm90_tensorop_s64x256x16gemm_f16EEvNT_6ParamsE",
    "void cub::detail::reduce::DeviceReduceKernel<policy_hub<float, unsigned>::Policy900>(float*)",
    "Memcpy DtoD (Device -> Device)",
    "triton_poi_fused_add_mul_0",
    "void max<4>(int) / 2",
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_names_are_no_secrets(tmp_path, kernel, monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "max")
    recording.save(made(rows=[{"op": "a", "kernels": [kernel]}]), tmp_path, defaults=DEFAULTS)


@pytest.mark.parametrize(
    "text",
    [
        "812 TFLOP/s of 989 TFLOP/s, 1/2 or 3 / 4; bytes/s, FLOP/byte",
        "see https://docs.pytorch.org/docs/stable/notes/cuda.html",
        "anatomy/chapters/memory_layout/contiguity.py",
        "Linux-6.8.0-45-generic-x86_64-with-glibc2.39",
        "13.1.0.3 and 580.159.03",
        "event pair around each call / cache flushed before it",
        "power_cap at /: 3 %",
        "x@w.T and A @ B",
    ],
)
def test_units_addresses_and_versions_are_no_secrets(tmp_path, text):
    recording.save(made(warnings=[text]), tmp_path, defaults=DEFAULTS)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("/home/ada/repo/anatomy.py", "an absolute path"),
        ("loaded libcuda from /usr/lib/x86_64-linux-gnu/libcuda.so", "an absolute path"),
        ('File "/opt/app/x.py", line 3', "an absolute path"),
        ("cache=/tmp/torchinductor", "an absolute path"),
        ("file:///srv/data", "an absolute path"),
        ("PYTHONPATH=a:/srv/data", "an absolute path"),
        ("in /root/", "an absolute path"),
        ("compiled:/Users/ada/x", "an absolute path"),
        (r"C:\Users\ada\repo", "an absolute path"),
        (r"\\server\share", "an absolute path"),
        ("~/repo/x and ~ada/x", "an absolute path"),
        ("GPU-6d1f0f2e-1111-2222-3333-444455556666", "a GPU's UUID"),
        ("MIG-6d1f0f2e", "a GPU's UUID"),
        ("6d1f0f2e-1111-2222-3333-444455556666", "a UUID"),
        ("1652922012345", "a serial number"),
        ("measured on Gauss-17.", "this host's name"),
        ("on gauss-17.lab.example.org", "this host's name"),
        ("run by lovelace", "this user's name"),
        ("under /data/lovelace-home", "an absolute path|a home folder"),
    ],
)
@pytest.mark.parametrize("field", ["warnings", "rows", "machine"])
def test_who_and_where_are_never_written(tmp_path, monkeypatch, text, match, field):
    monkeypatch.setattr("socket.gethostname", lambda: "gauss-17.lab.example.org")
    monkeypatch.setattr("getpass.getuser", lambda: "lovelace")
    monkeypatch.setattr("pathlib.Path.home", lambda: "/data/lovelace-home")
    held = {
        "warnings": [text],
        "rows": [{"op": "a", "kernels": ["b", text]}],
        "machine": made()["machine"] | {"note": text},
    }
    place = {
        "warnings": r"warnings\[0\]",
        "rows": r"rows\[0\].kernels\[1\]",
        "machine": "machine.note",
    }
    with pytest.raises(RecordingError, match=rf"{place[field]} holds ({match})"):
        recording.save(made(**{field: held[field]}), tmp_path, defaults=DEFAULTS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["serial", "gpu_uuid", "hostname", "host_name", "user_name", "home"]
)
def test_a_field_that_would_hold_a_secret_is_refused(tmp_path, name):
    machine = made()["machine"] | {name: "x"}
    with pytest.raises(RecordingError, match=f"machine has a field called '{name}'"):
        recording.save(made(machine=machine), tmp_path, defaults=DEFAULTS)


def test_a_path_as_a_field_s_name_is_found_too(tmp_path):
    with pytest.raises(RecordingError, match="noise_floor holds an absolute path"):
        recording.save(made(noise_floor={"/home/ada/x": 0.1}), tmp_path, defaults=DEFAULTS)


def test_a_host_named_after_its_gpu_can_still_record(tmp_path, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "h200")
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    recording.save(made(warnings=["The root of it: an h200."]), tmp_path, defaults=DEFAULTS)


def test_a_process_whose_user_has_no_name_can_record(tmp_path, monkeypatch):
    def nobody():
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr("getpass.getuser", nobody)
    recording.save(made(), tmp_path, defaults=DEFAULTS)
