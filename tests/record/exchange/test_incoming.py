"""What becomes of each recording of a set, and that all of it is written or nothing."""

import json
import os
import re

import pytest

from anatomy.record import loading, occasions, recording, signatures
from anatomy.record.exchange import incoming
from anatomy.record.provenance import canonical
from anatomy.table.errors import RecordingError
from tests.record.exchange.sets import PLACE, save


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "here").mkdir()
    return tmp_path / "set", tmp_path / "here"


def fate(folders):
    (found,) = incoming.look(*folders)
    return found.word, found.why


def snapshot(root):
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_what_is_not_here_is_added_with_its_bytes(folders):
    file = save(folders[0])
    assert fate(folders) == (incoming.ADDED, "It was not recorded here.")
    (written,) = incoming.take(incoming.look(*folders), folders[1])
    assert written.read_bytes() == file.read_bytes()
    assert fate(folders) == (incoming.KEPT, "It is here already.")
    assert list(folders[1].glob(".*")) == []


def test_another_machine_is_simply_added(folders):
    save(folders[1], day=25)
    save(folders[0], slug="other-gpu", day=20)
    incoming.take(incoming.look(*folders), folders[1])
    assert recording.machines(folders[1]) == ["other-gpu", "toy-gpu"]


@pytest.mark.parametrize(
    ("day", "current", "present_current", "word", "why"),
    [
        (22, True, True, incoming.REPLACED, "The one here is older, of 2026-11-21."),
        (20, True, True, incoming.KEPT, "The one here is newer, of 2026-11-21."),
        (20, True, False, incoming.REPLACED, "The one here was made by other code."),
        (22, False, True, incoming.KEPT, "The one here was made by the present code."),
    ],
)
def test_present_code_wins_and_then_the_newer_one(
    folders, day, current, present_current, word, why
):
    save(folders[1], day=21, current=present_current)
    save(folders[0], day=day, current=current)
    found = fate(folders)
    assert found[0] == word and found[1].startswith(why)
    incoming.take(incoming.look(*folders), folders[1])
    started = recording.load(folders[1] / PLACE).data["started_at"]
    assert started[:10] == f"2026-11-{day if word == incoming.REPLACED else 21}"


def test_one_of_other_code_is_added_and_says_so(folders):
    save(folders[0], current=False)
    assert fate(folders)[1].endswith("The code that measures it has changed since.")


def test_one_here_that_can_not_be_used_gives_way(folders):
    save(folders[0])
    here = save(folders[1])
    here.write_text("{")
    assert fate(folders) == (incoming.REPLACED, "The one here can't be used.")
    incoming.take(incoming.look(*folders), folders[1])
    assert recording.load(here)


def spoiled(file, **changes):
    """Change fields of a recording's file, and hash it anew."""
    data = json.loads(file.read_text()) | changes
    data["content_sha"] = canonical.content_sha(data)
    file.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"warnings": ["see /home/somebody/notes"]}, "holds an absolute path"),
        ({"warnings": "none"}, "must be a list"),
        ({"seconds": 1e200}, "a number beyond"),
        ({"params": {"nonesuch": 1}}, "wrong place|can't show it"),
        ({"experiment": "contiguity.nonesuch"}, "wrong place"),
        ({"schema": 99}, "schema 99"),
    ],
)
def test_what_can_not_be_trusted_is_refused_with_its_reason(folders, changes, why):
    spoiled(save(folders[0]), **changes)
    word, said = fate(folders)
    assert word == incoming.REFUSED and re.search(why, said) and "Make it anew" not in said


def test_what_was_edited_or_lies_elsewhere_is_refused(folders):
    file = save(folders[0])
    text = file.read_text()
    file.write_text(text.replace("2026-11-21", "2026-11-22"))
    assert "was changed after it was recorded" in fate(folders)[1]
    file.write_text(text)
    elsewhere = folders[0] / "other-gpu" / "contiguity.bench" / "default.json"
    elsewhere.parent.mkdir(parents=True)
    file.rename(elsewhere)
    assert "is in the wrong place" in fate(folders)[1]


def test_an_experiment_that_this_version_has_not_is_refused(folders):
    file = save(folders[0])
    place = folders[0] / "toy-gpu" / "contiguity.gone" / file.name
    place.parent.mkdir()
    file.rename(place)
    spoiled(place, experiment="contiguity.gone")
    word, why = fate(folders)
    assert word == incoming.REFUSED and why.startswith("This version can't show it: There is no")


@pytest.mark.parametrize("fails_at", range(1, 8))
def test_a_failure_on_the_way_leaves_the_folder_as_it_was(folders, monkeypatch, fails_at):
    save(folders[1], day=21)
    for slug in ("toy-gpu", "other-gpu", "third-gpu"):
        save(folders[0], slug=slug, day=22)
    before, replace, count = snapshot(folders[1]), os.replace, [0]

    def failing(*paths):
        count[0] += 1
        if count[0] == fails_at:
            raise OSError(28, "No space left on device")
        replace(*paths)

    monkeypatch.setattr(os, "replace", failing)
    found = incoming.look(*folders)
    if fails_at <= 5:  # one is joined with the one here, which goes aside, and three come
        with pytest.raises(RecordingError, match=r"No space left on device\. Nothing was changed"):
            incoming.take(found, folders[1])
        assert snapshot(folders[1]) == before
    elif fails_at == 6:  # the recordings are there by then
        with pytest.raises(RecordingError, match=r"toy-gpu/occasions\.json could not be written"):
            incoming.take(found, folders[1])
    else:
        assert len(incoming.take(found, folders[1])) == 3


def test_what_was_measured_later_by_the_same_code_is_one_more_occasion(folders):
    for folder, day in ((1, 20), (0, 21)):
        save(folders[folder], day=day)
    (file,) = incoming.take(incoming.look(*folders), folders[1])
    joined = recording.load(file).data
    assert joined["started_at"].startswith("2026-11-21")
    assert [each["started_at"][:10] for each in joined["occasions"]] == ["2026-11-20"]


def test_a_broken_recording_beside_it_keeps_no_set_out(folders):
    save(folders[0])
    broken = folders[1] / "toy-gpu" / "tensor_layout.report" / "default.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{")
    (file,) = incoming.take(incoming.look(*folders), folders[1])
    assert recording.load(file) and broken.read_text() == "{"


def test_earlier_occasions_of_both_sides_are_kept_in_their_order(folders):
    save(folders[1], day=20)
    save(folders[0], day=19)
    file = save(folders[0] / "elsewhere", day=21)
    defaults = signatures.signature("contiguity.bench").defaults
    later = occasions.adding(recording.load(file).data, folders[0], defaults)
    file.unlink()
    recording.save(later, folders[0], defaults=defaults)
    (joined,) = incoming.take(incoming.look(*folders), folders[1])
    told = recording.load(joined).data["occasions"]
    assert [each["started_at"][8:10] for each in told] == ["19", "20"]


def test_one_named_by_defaults_of_another_day_makes_room_for_the_new_name(folders, monkeypatch):
    old = save(folders[1], day=20)
    other = old.with_name("dtype=fp16.json")  # as if fp16 had not been the default
    old.rename(other)
    save(folders[0], day=22)
    incoming.take(incoming.look(*folders), folders[1])
    assert [loading.place(each) for each in loading.files(folders[1])] == [PLACE]
