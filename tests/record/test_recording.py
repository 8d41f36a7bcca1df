"""A recording is written whole or not at all, and read only if every bit of it can be trusted."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anatomy.record import loading, recording, signatures
from anatomy.record.provenance import canonical
from anatomy.record.provenance.schema import SCHEMA
from anatomy.table.errors import BadParameter, RecordingError, UnknownName
from tests.fakes import synthetic
from tests.fakes.toy_recording import DEFAULTS, KERNEL, made

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def saved(tmp_path):
    return recording.save(made(), tmp_path, defaults=DEFAULTS)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"blocks_s": "no"}, "convert"),
        ({"limit": -1.0}, "startswith"),
        ({"variant": []}, "hashable"),
    ],
)
def test_rows_that_can_not_be_judged_are_an_error_of_their_file_or_else_as_it_came(wrong, says):
    file = synthetic.shared() / synthetic.MACHINE / "contiguity.bench" / "default.json"
    data = recording.load(file).data
    broken = data | {"rows": [row | wrong for row in data["rows"]]}
    with pytest.raises(RecordingError, match=r"its rows can't be judged.*Make it anew"):
        recording.Recording(broken, file).rows  # noqa: B018
    with pytest.raises((AttributeError, TypeError, ValueError), match=says) as error:
        recording.Recording(broken, None).rows  # noqa: B018
    assert not isinstance(error.value, RecordingError)


def test_what_follows_from_rows_has_no_more_digits_than_a_file_keeps():
    folder = CHECKOUT / "recordings" / "nvidia-h200" / "worked_example.kernel"
    rows = recording.load(folder / "default.json").rows
    assert any(isinstance(row.get("run_ratios"), list) for row in rows)
    assert canonical.plain_fields({"rows": rows})["rows"] == rows


# The key.


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({}, "default"),
        (DEFAULTS, "default"),
        ({"m": 2048}, "m=2048"),
        ({"m": 2048, "device": "cpu"}, "device=cpu,m=2048"),
        ({"cold": True, "seed": None, "share": 0.25}, "cold=true,seed=none,share=0.25"),
        ({"m": 4096.0}, "default"),
    ],
)
def test_the_key_names_what_is_not_the_default(given, key):
    assert recording.key(given, DEFAULTS | {"cold": False, "seed": 1, "share": 1.0}) == key


def test_a_key_that_no_file_may_have_gets_a_hash_and_stays_apart():
    keys = {recording.key({"device": each}, DEFAULTS) for each in ("cuda:1", "cuda/1", "cuda-1")}
    assert len(keys) == 3
    assert all(set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789=,-") for key in keys)


def test_a_long_key_is_shortened_and_stays_apart():
    first, second = ({f"parameter_{i}": i for i in range(30)} for _ in range(2))
    second["parameter_29"] = 0
    keys = {recording.key(each, {}) for each in (first, second)}
    assert len(keys) == 2
    assert all(len(key) <= loading.LONGEST_KEY for key in keys)


def test_the_path_is_machine_experiment_key(tmp_path, saved):
    assert saved == tmp_path / "nvidia-h200" / "contiguity.bench" / "m=2048.json"
    assert recording.path(tmp_path, "nvidia-h200", "contiguity.bench", "m=2048") == saved


@pytest.mark.parametrize(
    ("machine", "experiment", "what"),
    [
        ("../up", "a.b", r"machine '\.\./up'"),
        ("", "a.b", "machine ''"),
        ("NVIDIA H200", "a.b", "machine 'NVIDIA H200'"),
        ("h", "../../etc", r"experiment '\.\./\.\./etc'"),
        ("h", "bench", "experiment 'bench'"),
    ],
)
def test_a_name_that_is_no_folder_is_refused(tmp_path, machine, experiment, what):
    with pytest.raises(RecordingError, match=f"^The {what} can't name a folder; "):
        recording.path(tmp_path, machine, experiment, "default")


# Saving.


def test_what_is_saved_is_what_is_loaded(saved):
    loaded = recording.load(saved)
    assert loaded.machine == "nvidia-h200"
    assert loaded.experiment == "contiguity.bench"
    assert loaded.params == {"device": "cuda:0", "m": 2048}
    assert loaded.warnings == ["The clock fell by 3 % (power cap)."]
    assert loaded.path == saved
    assert list(loaded.table.variant) == ["contiguous", "padded"]
    assert loaded.data["schema"] == SCHEMA
    assert loaded.data["rows"][0]["kernels"] == [KERNEL]
    assert loaded.data["rows"][0]["flops"] == 137438953472


def test_without_defaults_those_of_the_source_name_the_file(tmp_path):
    params = signatures.signature("contiguity.bench").bind(m=2048)
    assert recording.save(made(params=params), tmp_path).name == "m=2048.json"
    with pytest.raises(UnknownName, match=r"no experiment 'contiguity.bank'"):
        recording.save(made(experiment="contiguity.bank"), tmp_path)


def test_a_recording_that_lacks_a_field_is_not_written_and_says_which(tmp_path):
    for field in ("machine", "params", "rows", "experiment"):
        lacking = {name: value for name, value in made().items() if name != field}
        said = "it has no schema and experiment" if field == "experiment" else f"field {field} is"
        with pytest.raises(RecordingError, match=f"was not written, because .*{said}"):
            recording.save(lacking, tmp_path, defaults=DEFAULTS)
    assert list(tmp_path.iterdir()) == []


def test_the_columns_are_told_anew_of_the_rows_that_are_saved(tmp_path):
    file = recording.save(made(columns=["of", "before"]), tmp_path, defaults=DEFAULTS)
    row = recording.load(file).data["rows"][1]
    assert row["variant"] == "padded" and row["median_s"] is None and "before" not in row


def test_a_recording_prints_its_place_and_not_its_rows(saved):
    assert repr(recording.load(saved)) == f"Recording(path={saved!r})"


# Disks and interruptions.


def test_all_of_a_file_is_on_the_disk_before_it_takes_the_place_of_another(tmp_path, monkeypatch):
    sizes = []
    monkeypatch.setattr(os, "fsync", lambda number: sizes.append(os.fstat(number).st_size))
    file = recording.save(made(), tmp_path, defaults=DEFAULTS)
    assert sizes == [file.stat().st_size]


def test_what_another_process_is_writing_is_not_written_into(tmp_path, monkeypatch):
    monkeypatch.setattr(recording.secrets, "token_hex", lambda count: "0" * 2 * count)
    (tmp_path / ".a.00000000.tmp").write_text("its own")
    with pytest.raises(FileExistsError):
        recording.write_whole(tmp_path / "a.json", "mine")
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileExistsError(17, "File exists"), "It is a file, or in one"),
        (NotADirectoryError(20, "Not a directory"), "It is a file, or in one"),
        (OSError(30, "Read-only file system"), "Read-only file system"),
        (None, "Permission denied"),
    ],
)
def test_a_folder_in_which_nothing_can_be_saved_is_told_before(tmp_path, monkeypatch, error, said):
    if error:
        monkeypatch.setattr(Path, "mkdir", failing(error))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(RecordingError, match=rf"^Nothing can be saved in .*: {said}\. Name a"):
        recording.make_ready(tmp_path)
    monkeypatch.undo()
    recording.make_ready(tmp_path / "new" / "deep")
    assert (tmp_path / "new" / "deep").is_dir()


def failing(error):
    """A call that fails as the operating system would."""

    def call(*_, **__):
        raise error

    return call


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("where", ["fsync", "replace"])
@pytest.mark.parametrize("error", [FULL, PermissionError(errno.EACCES, "Permission denied")])
def test_a_full_or_closed_disk_leaves_the_old_file_and_no_other(
    tmp_path, saved, monkeypatch, where, error
):
    before = saved.read_bytes()
    monkeypatch.setattr(os, where, failing(error))
    with pytest.raises(
        RecordingError, match=rf"could not be written: {error.strerror}.*--save DIR"
    ) as e:
        recording.save(made(seconds=9.0), tmp_path, defaults=DEFAULTS)
    assert "nvidia-h200/contiguity.bench/m=2048.json" in str(e.value)
    assert str(tmp_path) not in str(e.value)
    assert saved.read_bytes() == before
    assert [file.name for file in saved.parent.iterdir()] == [saved.name]


@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_an_interruption_leaves_the_old_file_and_no_other(tmp_path, saved, monkeypatch, where):
    before = saved.read_bytes()
    monkeypatch.setattr(os, where, failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        recording.save(made(seconds=9.0), tmp_path, defaults=DEFAULTS)
    assert saved.read_bytes() == before
    assert [file.name for file in saved.parent.iterdir()] == [saved.name]


def test_a_disk_that_fills_up_while_writing_leaves_nothing_half_written(tmp_path, monkeypatch):
    class Filling:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, text):
            self.file.write(text[: len(text) // 2])
            self.file.flush()
            raise FULL

    def filling(*args, **kwargs):
        return Filling(open(*args, **kwargs))

    monkeypatch.setattr(recording, "open", filling, raising=False)
    with pytest.raises(RecordingError, match="No space left on device"):
        recording.save(made(), tmp_path, defaults=DEFAULTS)
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_a_folder_that_is_a_file_is_a_clear_error(tmp_path):
    (tmp_path / "nvidia-h200").write_text("")
    with pytest.raises(
        RecordingError, match=r"could not be written: (Not a directory|File exists)"
    ):
        recording.save(made(), tmp_path, defaults=DEFAULTS)


def test_what_a_killed_process_left_is_removed_when_it_is_stale(tmp_path, saved):
    left = [saved.parent / ".m=2048.0123abcd.tmp", tmp_path / "nvidia-h200/.verdicts.0123abcd.tmp"]
    new, other = saved.parent / ".m=2048.89abcdef.tmp", saved.parent / ".mine.tmp"
    for file in (*left, new, other):
        file.write_text("{")
    for file in (*left, other):
        os.utime(file, (1, time.time() - 600.5))
    os.utime(new, (1, time.time() - 300))
    recording.make_ready(tmp_path)
    assert not any(file.exists() for file in left)
    assert new.exists() and other.exists() and recording.load(saved)


def test_no_machine_is_called_what_nobody_recorded(tmp_path, saved):
    assert recording.known_machine(tmp_path, "nvidia-h200") == "nvidia-h200"
    assert recording.known_machine(tmp_path / "new", "any") == "any"  # where nothing is recorded
    with pytest.raises(UnknownName, match=r"'nvidia-h20'\. Did you mean 'nvidia-h200'"):
        recording.known_machine(tmp_path, "nvidia-h20")
    (tmp_path / "nvidia-h200").rename(tmp_path / "cpu-some")  # as a contributor without a GPU has
    assert recording.known_machine(tmp_path, "nvidia-h20") == "nvidia-h20"


WITH_A_LIMIT = """
import resource, signal, sys
sys.path[:0] = sys.argv[2:]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
from anatomy.record import recording
from anatomy.table.errors import RecordingError
from tests.fakes.toy_recording import DEFAULTS, made
try:
    recording.save(made(), sys.argv[1], defaults=DEFAULTS)
except RecordingError as error:
    print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="only POSIX can limit the size of a file")
def test_a_file_that_the_system_itself_refuses_leaves_nothing(tmp_path):
    folders = [str(tmp_path), str(signatures.PACKAGE.parent), str(Path(__file__).parent)]
    command = [sys.executable, "-c", WITH_A_LIMIT, *folders]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert "could not be written: File too large." in ran.stdout, ran.stderr
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


# Finding.


def test_a_recording_is_found_by_its_parameters(tmp_path):
    declared = signatures.signature("contiguity.bench")
    for m in (2048, 4096):
        recording.save(made(params=declared.bind(m=m)), tmp_path)
    assert recording.find(tmp_path, "nvidia-h200", "contiguity.bench").params["m"] == 4096
    found = recording.find(tmp_path, "nvidia-h200", "contiguity.bench", m="2048")
    assert found.params["m"] == 2048
    assert recording.find(tmp_path, "nvidia-h200", "contiguity.bench", m=8192) is None
    assert recording.find(tmp_path, "nvidia-b200", "contiguity.bench") is None
    with pytest.raises(UnknownName, match=r"limits.ceilings"):
        recording.find(tmp_path, "nvidia-h200", "limits.ceiling")
    with pytest.raises(BadParameter, match="m='many'"):
        recording.find(tmp_path, "nvidia-h200", "contiguity.bench", m="many")


def test_a_recording_is_found_although_a_default_has_changed(tmp_path):
    declared = signatures.signature("contiguity.bench")
    older = declared.defaults | {"m": 2048}  # when m=2048 was the default
    file = recording.save(made(params=declared.bind(m=2048)), tmp_path, defaults=older)
    assert file.name == "default.json"
    assert recording.find(tmp_path, "nvidia-h200", "contiguity.bench") is None
    assert recording.find(tmp_path, "nvidia-h200", "contiguity.bench", m=2048).path == file


def test_a_broken_file_hides_only_itself(tmp_path):
    declared = signatures.signature("contiguity.bench")
    broken = recording.save(made(params=declared.bind(m=2048)), tmp_path)
    broken.write_text("{")
    assert recording.find(tmp_path, "nvidia-h200", "contiguity.bench", m=8192) is None
    with pytest.raises(RecordingError, match=r"m=2048\.json breaks off"):
        recording.find(tmp_path, "nvidia-h200", "contiguity.bench", m=2048)


def test_all_recordings_come_in_order_and_broken_ones_are_collected(tmp_path, saved):
    recording.save(made(params=DEFAULTS), tmp_path, defaults=DEFAULTS)
    other = made(machine=made()["machine"] | {"slug": "nvidia-a100"})
    recording.save(other, tmp_path, defaults=DEFAULTS)
    saved.with_name(".m=2048.abc.tmp").write_text("left over")
    found = recording.all_recordings(tmp_path)
    assert [(each.machine, each.path.stem) for each in found] == [
        ("nvidia-a100", "m=2048"),
        ("nvidia-h200", "default"),
        ("nvidia-h200", "m=2048"),
    ]
    assert len(recording.all_recordings(tmp_path, "nvidia-h200")) == 2
    assert recording.machines(tmp_path) == ["nvidia-a100", "nvidia-h200"]
    saved.write_text("")
    with pytest.raises(RecordingError, match="is empty"):
        recording.all_recordings(tmp_path)
    broken = []
    assert len(recording.all_recordings(tmp_path, broken=broken)) == 2
    assert [str(error).partition(" is ")[0] for error in broken] == [
        "nvidia-h200/contiguity.bench/m=2048.json"
    ]


def test_no_folder_of_recordings_holds_none(tmp_path):
    assert recording.all_recordings(tmp_path / "none") == []
    assert recording.machines(tmp_path / "none") == []


def test_the_folder_is_named_by_the_environment_or_the_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(tmp_path / "mine"))
    assert recording.default_root() == tmp_path / "mine"
    monkeypatch.delenv("ANATOMY_RECORDINGS")
    monkeypatch.setattr(signatures, "PACKAGE", tmp_path / "site-packages" / "anatomy")
    with pytest.raises(RecordingError, match=r"no checkout .* ANATOMY_RECORDINGS"):
        recording.default_root()
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "mkdocs.yml").write_text("")
    assert recording.default_root() == tmp_path / "site-packages" / "recordings"


def test_outside_of_a_checkout_recordings_are_looked_for_where_one_stands(monkeypatch, tmp_path):
    monkeypatch.delenv("ANATOMY_RECORDINGS", raising=False)
    assert recording.local_root() == recording.default_root() == CHECKOUT / "recordings"
    monkeypatch.setattr(signatures, "PACKAGE", tmp_path / "anatomy")
    assert recording.local_root() == Path("recordings")
