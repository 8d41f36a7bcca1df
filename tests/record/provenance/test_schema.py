"""What a recording must hold, and what it must never hold."""

import pytest

from anatomy.record import recording
from anatomy.record.provenance import schema
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


# Field -> what it must be. With a question mark it may be null.
FIELDS = {
    **dict.fromkeys(("experiment", "machine.slug", "code.hash", "started_at"), "text"),
    **dict.fromkeys(("machine.gpu", "machine.card", "machine.driver", "code.commit"), "text?"),
    **dict.fromkeys(("software.torch", "software.cuda"), "text?"),
    **dict.fromkeys(("params", "machine", "software", "method", "code"), "an object"),
    **{"noise_floor": "an object", "conditions": "an object?", "seconds": "a number"},
    **dict.fromkeys(("code.files", "rows", "warnings"), "a list"),
    "code.dirty": "true or false?",
}
LACKING = object()


def whole(field="", value=None):
    """A recording of this schema, with another value in one field."""
    data = made(schema=1)
    holder, _, name = field.rpartition(".")
    inside = data[holder] if holder else data
    if value is LACKING:
        del inside[name]
    elif name:
        inside[name] = value
    return data


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_there_and_of_its_kind_or_null_where_that_may_be(field):
    kind = FIELDS[field].removesuffix("?")
    if kind != FIELDS[field]:
        schema.check(whole(field, None))
    else:
        with pytest.raises(ValueError, match=f"^{field} is null; it must be {kind}"):
            schema.check(whole(field, None))
    if field != "experiment":
        with pytest.raises(ValueError, match=f"^the field {field} is missing"):
            schema.check(whole(field, LACKING))
    for value in ({"a": 1}, 7.5, "text", True, []):
        words = {dict: "an object", float: "a number", str: "text", bool: "true or false"}
        if words.get(type(value), "a list") != kind:
            with pytest.raises(ValueError, match=rf"^{field} is .*; it must be {kind}"):
                schema.check(whole(field, value))


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "its schema is 0"), (None, "its schema is None"), (2, "it has schema 2"), (1.5, "is 1.5")],
)
def test_another_schema_is_told(number, said):
    with pytest.raises(ValueError, match=said):
        schema.check(whole("schema", number))


def test_numbers_that_json_has_no_word_for_are_refused():
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"^seconds is (nan|inf); JSON has no such number"):
            schema.check(whole("seconds", value))


@pytest.mark.parametrize(
    "row",
    [
        {"low_s": 1.0, "median_s": 1.0, "high_s": 1.0},
        {"low_s": None, "median_s": 2.0, "high_s": 3.0},
        {"samples": 240, "flops": 2.5, "blocks_s": None, "variant": None, "nobody_knows": "a"},
        {"runs": 2, "run_ratios": None, "run_blocks": None, "blocks_s": [1.0]},
        {"runs": 2, "run_medians_s": [1.0, 2.0], "run_blocks": [0, 1], "blocks_s": [1.0]},
    ],
)
def test_rows_that_are_as_declared_pass(row):
    schema.check(whole("rows", [row]))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"median_s": 2.0, "high_s": 1.0}, "low_s, median_s, high_s are out of order"),
        ({"samples": "240"}, "samples is '240'; it must be a number"),
        ({"variant": 7}, "variant is 7; it must be text"),
        ({"runs": 2, "run_blocks": [1], "blocks_s": [1.0]}, "run_blocks has 1 values of 2 runs"),
        ({"runs": 1, "run_medians_s": []}, "run_medians_s has 0 values of 1 runs"),
        ({"runs": 1, "run_blocks": [1]}, "do not add up"),
        ({"run_medians_s": ["a"], "runs": 1}, r"run_medians_s\[0\] is 'a'"),
        ({"run_blocks": [True], "runs": 1}, r"run_blocks\[0\] is True"),
    ],
)
def test_rows_that_are_not_as_declared_name_their_place(row, said):
    with pytest.raises(ValueError, match=rf"^rows\[1\].*{said}"):
        schema.check(whole("rows", [{}, row]))


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


def test_a_field_of_the_recording_itself_is_found_too(tmp_path):
    with pytest.raises(RecordingError, match="the recording has a field called 'hostname'"):
        recording.save(made(hostname="x"), tmp_path, defaults=DEFAULTS)


@pytest.mark.parametrize("name", ["adas", "max_"])
def test_a_name_of_four_letters_tells_who(tmp_path, monkeypatch, name):
    monkeypatch.setattr("getpass.getuser", lambda: name)
    with pytest.raises(RecordingError, match="this user's name"):
        recording.save(made(warnings=[f"by {name}"]), tmp_path, defaults=DEFAULTS)


COMMON = ["root", "user", "users", "admin", "ubuntu", "debian", "runner", "localhost", "docker"]


@pytest.mark.parametrize("name", COMMON)
def test_a_name_that_thousands_share_tells_nobody_apart(tmp_path, monkeypatch, name):
    monkeypatch.setattr("socket.gethostname", lambda: name)
    recording.save(made(warnings=[f"on {name}"]), tmp_path, defaults=DEFAULTS)


@pytest.mark.parametrize("field", ["slug", "gpu", "cpu"])
def test_a_host_may_be_called_what_the_machine_is_called(tmp_path, monkeypatch, field):
    monkeypatch.setattr("socket.gethostname", lambda: "Gauss")
    machine = made()["machine"] | {field: "the-gauss-4"}
    recording.save(made(machine=machine, warnings=["on gauss"]), tmp_path, defaults=DEFAULTS)


def test_a_process_whose_user_has_no_name_can_record(tmp_path, monkeypatch):
    def nobody():
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr("getpass.getuser", nobody)
    recording.save(made(), tmp_path, defaults=DEFAULTS)
