"""Ceilings of a machine: the best measured on it, and else those that its maker states."""

import pytest

from anatomy.record import recording
from anatomy.table.errors import RecordingError
from tests.fakes import synthetic


def ceilings_of(root, slug, gpu, **params):
    """Save a made up ceiling, of its copies, as of a machine with such a GPU."""
    file = synthetic.MAKERS["limits.ceilings"](root)
    data = recording.load(file).data
    file.unlink()
    data["machine"] |= {"slug": slug, "gpu": gpu}
    data["params"] |= params
    data["params"] = {name: value for name, value in data["params"].items() if value is not None}
    data["rows"] = [row for row in data["rows"] if "copy" in (row.get("limit"), row["op"])]
    return recording.save(data, root)


def kinds(ceilings):
    return {each.kind for each in ceilings}


def test_ceilings_are_those_measured_on_the_machine_and_else_its_makers(tmp_path):
    file = ceilings_of(tmp_path, "nvidia-h200", "NVIDIA H200")
    four = recording.ceilings(tmp_path, "nvidia-h200-x4")
    assert four.machine == "nvidia-h200-x4" and kinds(four) == {"measured", "datasheet"}
    assert four.get("copy").source == f"nvidia-h200/limits.ceilings/{file.name}"
    assert kinds(recording.ceilings(tmp_path / "none", "nvidia-h200")) == {"datasheet"}
    assert kinds(recording.ceilings(tmp_path, "toy-gpu")) == set()


def test_the_makers_ceilings_are_found_by_the_gpu_or_by_the_name_of_its_machine(tmp_path):
    ceilings_of(tmp_path, "my-box", "NVIDIA H200")
    ceilings_of(tmp_path, "nvidia-h200", "Toy GPU")
    for slug in ("my-box", "nvidia-h200"):
        assert kinds(recording.ceilings(tmp_path, slug)) == {"measured", "datasheet"}


def test_a_cpu_is_one_machine_however_it_is_called(tmp_path):
    ceilings_of(tmp_path, "cpu-some-x4", None)
    assert kinds(recording.ceilings(tmp_path, "cpu-some-x4")) == {"measured"}
    assert kinds(recording.ceilings(tmp_path, "cpu-some")) == set()


@pytest.mark.parametrize(
    ("scale", "counts"), [(0.49, False), (0.5, True), (1.0, True), (None, True)]
)
def test_a_quick_look_is_no_ceiling(tmp_path, scale, counts):
    ceilings_of(tmp_path, "my-box", "Toy GPU", scale=scale)
    assert recording.ceilings(tmp_path, "my-box").measured == counts


def test_rows_are_held_against_the_ceilings_beside_them_and_ceilings_against_the_makers(tmp_path):
    file = ceilings_of(tmp_path, "my-box", "NVIDIA H200")
    itself = recording.load(file).data
    assert kinds(recording.circumstances(itself, file).ceilings()) == {"datasheet"}
    other = itself | {"experiment": "contiguity.bench"}
    assert kinds(recording.circumstances(other, file).ceilings()) == {"measured", "datasheet"}
    assert recording.circumstances(other, file).method == other["method"] != {}
    assert recording.circumstances(itself | {"method": None}, file).method == {}


def test_ceilings_that_can_not_be_read_are_not_known(tmp_path, monkeypatch):
    monkeypatch.setenv("ANATOMY_RECORDINGS", str(tmp_path))
    file = ceilings_of(tmp_path, "my-box", "Toy GPU")
    assert recording.known_ceilings("my-box").measured
    assert recording.known_ceilings("my-box", tmp_path / "none").measured is False
    file.write_text("{")
    assert recording.known_ceilings("my-box") is None
    with pytest.raises(RecordingError):
        recording.ceilings(tmp_path, "my-box")
