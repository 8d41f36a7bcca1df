"""Notes of what could not be measured: kept beside recordings, and never taken for one."""

import json
import os

import pytest

from anatomy.judge import limits
from anatomy.record import failures, loading, recording
from anatomy.table.errors import BadParameter, MeasurementError, RecordingError
from tests.fakes import synthetic

CALL = (synthetic.MACHINE, "contiguity.bench", {"m": 512})
WHY = MeasurementError("8192 x 8192 leaves work on another stream. Wait for it.")


def noted(root, error=WHY, **more):
    return failures.note(root, *CALL, error, torch="2.13.0", driver="580.1", **more)


def found(root, **params):
    return failures.find(root, *CALL[:2], **CALL[2] | params)


def test_a_note_is_found_again_and_says_who_failed_and_why(tmp_path):
    file = noted(tmp_path)
    assert loading.place(file) == "toy-gpu/contiguity.bench/m=512.failed.json"
    there = found(tmp_path)
    assert (there.error, there.message) == ("MeasurementError", str(WHY))
    assert (there.torch, there.driver) == ("2.13.0", "580.1")
    assert found(tmp_path, m=256) is None and found(tmp_path / "elsewhere") is None


def test_it_is_no_recording_and_a_machine_of_notes_alone_has_none(tmp_path):
    noted(tmp_path)
    failures.note(tmp_path, "toy-gpu", limits.EXPERIMENT, {}, WHY)
    assert loading.files(tmp_path) == [] and recording.machines(tmp_path) == []
    assert recording.find(tmp_path, *CALL[:2], **CALL[2]) is None
    assert list(recording.ceilings(tmp_path, "toy-gpu")) == []


def test_it_is_forgotten_and_a_later_one_replaces_it(tmp_path):
    noted(tmp_path)
    noted(tmp_path, OSError("Another reason."))
    assert found(tmp_path).message == "Another reason."
    failures.forget(tmp_path, *CALL)
    failures.forget(tmp_path, *CALL)
    assert found(tmp_path) is None


def test_one_of_other_code_has_nothing_to_say(tmp_path):
    file = noted(tmp_path)
    data = json.loads(file.read_text())
    file.write_text(json.dumps(data | {"code": {"hash": "f" * 64}}))
    assert found(tmp_path) is None


@pytest.mark.parametrize(
    "said",
    [
        "No such file: '/home/somebody/project/file.py', line 3",
        "at /opt/app/src/x.cu:12 and ~/cache/x",
        "card GPU-01234567-89ab-cdef-0123-456789abcdef fell off the bus",
    ],
)
def test_who_and_where_are_left_out(tmp_path, said):
    text = noted(tmp_path, RuntimeError(said)).read_text()
    for telling in ("somebody", "/opt/app", "~/cache", "01234567-89ab"):
        assert telling not in text
    assert "…" in found(tmp_path).message


def test_a_long_message_is_cut_and_an_empty_one_gives_its_class(tmp_path):
    noted(tmp_path, RuntimeError("word\n" * 1000))
    message = found(tmp_path).message
    assert len(message) == failures.MOST_SAID and message.endswith("…") and "\n" not in message
    noted(tmp_path, KeyboardInterrupt())
    assert found(tmp_path).reason == "KeyboardInterrupt, which said nothing more"


BROKEN = {
    "nothing": "",
    "no JSON": "{",
    "a list": "[]",
    "another schema": '{"schema": 2}',
    "NaN": '{"schema": NaN}',
    "deep": "[" * 5000 + "]" * 5000,
    "no text": json.dumps({"schema": 1, "code": {}, "params": {}, "error": 3}),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_what_is_no_note_is_passed_over(tmp_path, text):
    noted(tmp_path).write_text(text)
    assert found(tmp_path) is None


def test_only_a_plain_file_inside_the_folder_is_opened(tmp_path):
    root, outside = tmp_path / "recordings", tmp_path / "outside.json"
    file = noted(root)
    outside.write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(outside)
    assert found(root) is None
    file.unlink()
    os.mkfifo(file)  # which would be waited for
    assert found(root) is None


def test_an_impossible_call_and_a_full_disk_are_told(tmp_path, monkeypatch):
    with pytest.raises(BadParameter):
        found(tmp_path, m="many")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recording, "write_whole", refuse)
    with pytest.raises(RecordingError, match=r"m=512\.failed\.json could not be .* No space left"):
        noted(tmp_path)


def test_a_recording_can_not_take_the_name_of_a_note():
    assert loading.key({"path": "x.failed"}) != "path=x.failed"
