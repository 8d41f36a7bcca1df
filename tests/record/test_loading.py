"""A recording is read only if every bit of it can be trusted; if not, one sentence says why."""

import errno
import json
from pathlib import Path

import pytest

from anatomy.record import recording
from anatomy.record.provenance.canonical import content_sha
from anatomy.record.provenance.schema import SCHEMA
from anatomy.table.errors import RecordingError
from tests.fakes.toy_recording import DEFAULTS, made


@pytest.fixture
def saved(tmp_path):
    return recording.save(made(), tmp_path, defaults=DEFAULTS)


def rewritten(file, change, *, seal=False):
    """Edit a saved recording, and with `seal` make its content_sha right again."""
    data = json.loads(file.read_text())
    change(data)
    if seal:
        data["content_sha"] = content_sha(data)
    file.write_text(json.dumps(data))


MEND = r"Make it anew: pytorch-gpu-anatomy record contiguity\.bench$"
PLACE = r"^nvidia-h200/contiguity\.bench/m=2048\.json"


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("[1, 2]", "it is no recording"),
        ('"text"', "it is no recording"),
        ('{"nbformat": 4}', "it is no recording"),
        ("not json", r"breaks off or is no JSON \(line 1\)"),
        ('{"schema": 1, "experiment": NaN}', "holds NaN, which is no JSON"),
        ('{"schema": 1, "seconds": -Infinity}', "holds -Infinity"),
        ("[" * 200_000, "is nested too deeply|is no JSON"),
        (b"\xff\xfe\x00{}", "is no text"),
        (b"\x1f\x8b\x08\x00\x80", "is no text"),
    ],
)
def test_a_foreign_file_is_told_so_with_its_place_and_the_command(saved, content, match):
    saved.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(RecordingError, match=rf"{PLACE}.*(?:{match}).*{MEND}"):
        recording.load(saved)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_told_so(saved, share):
    text = saved.read_text()
    saved.write_text(text[: int(len(text) * share)].rstrip())
    with pytest.raises(RecordingError, match=rf"{PLACE} breaks off or is no JSON .*{MEND}"):
        recording.load(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["rows"][0].update(median_s=3.33333334e-05),
        lambda data: data["rows"].pop(),
        lambda data: data["rows"].reverse(),
        lambda data: data["machine"].update(gpu="NVIDIA H100"),
        lambda data: data["warnings"].clear(),
        lambda data: data.update(extra=1),
        lambda data: data.update(content_sha="0" * 64),
    ],
)
def test_a_hand_edited_file_is_told_so(saved, change):
    rewritten(saved, change)
    with pytest.raises(RecordingError, match=rf"{PLACE} was changed after it was recorded.*{MEND}"):
        recording.load(saved)


def test_a_new_layout_of_the_same_content_is_no_edit(saved):
    saved.write_text(json.dumps(json.loads(saved.read_text()), indent=8))
    assert recording.load(saved).experiment == "contiguity.bench"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            lambda data: data.update(schema=SCHEMA + 1),
            "has schema 2, and this version reads up to 1; update",
        ),
        (lambda data: data.update(schema="1"), "its schema is '1'"),
        (lambda data: data.update(schema=True), "its schema is True"),
        (lambda data: data.pop("rows"), "the field rows is missing"),
        (lambda data: data["machine"].pop("slug"), r"the field machine\.slug is missing"),
        (lambda data: data["code"].update(hash=7), r"code\.hash is 7; it must be text"),
        (lambda data: data.update(machine=None), "machine is null; it must be an object"),
        (lambda data: data.update(seconds="3"), "seconds is '3'; it must be a number"),
        (lambda data: data.update(seconds=True), "seconds is True; it must be a number"),
        (lambda data: data.update(started_at="yesterday"), "is no ISO time"),
        (lambda data: data.update(started_at="2026-11-21T10:00:00"), "no time zone"),
        (lambda data: data.update(warnings=[1]), r"warnings\[0\] is 1; it must be text"),
        (lambda data: data.update(rows={}), r"rows is \{\}; it must be a list"),
        (lambda data: data["rows"].append([]), r"rows\[2\] is \[\]; it must be an object"),
        (
            lambda data: data["rows"][0].update(median_s="fast"),
            r"median_s is 'fast'; it must be a number",
        ),
        (lambda data: data["rows"][0].update(role="king"), "role is 'king', none of control"),
        (lambda data: data["noise_floor"].update(x="low"), r"noise_floor\.x is 'low'"),
        (lambda data: data["rows"][0].update(kernels="a"), "kernels is 'a'; it must be a list"),
    ],
)
def test_a_field_that_is_wrong_is_named(saved, change, match):
    rewritten(saved, change, seal=True)
    with pytest.raises(RecordingError, match=rf"{PLACE} can't be used: .*{match}.*{MEND}"):
        recording.load(saved)


def test_a_recording_without_its_seal_is_refused(saved):
    rewritten(saved, lambda data: data.pop("content_sha"))
    with pytest.raises(RecordingError, match="the field content_sha is missing"):
        recording.load(saved)


def test_no_folders_name_is_taken_for_an_experiments(tmp_path):
    with pytest.raises(RecordingError, match=r"Make it anew: .* record EXPERIMENT$"):
        recording.load(tmp_path / "nvidia-h200" / "my downloads" / "default.json")


def test_a_missing_file_and_one_without_read_access_are_told_apart(tmp_path, saved, monkeypatch):
    with pytest.raises(RecordingError, match=rf"no recording nvidia-h200.*/default\.json\. {MEND}"):
        recording.load(saved.with_name("default.json"))

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(RecordingError, match=rf"{PLACE} can't be read: Permission denied.*{MEND}"):
        recording.load(saved)
