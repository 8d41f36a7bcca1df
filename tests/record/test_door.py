"""One door: a recording is a plain file in its own place, within limits, or one sentence refuses it
and names it, whoever asks: a load, a page, a command, or what is published."""

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from anatomy.record import loading, recording
from anatomy.record.provenance.canonical import content_sha
from anatomy.table.errors import RecordingError
from tests.fakes import synthetic
from tests.fakes.toy_recording import DEFAULTS, made

PLACE = r"^nvidia-h200/contiguity\.bench/m=2048\.json "


@pytest.fixture
def saved(tmp_path):
    return recording.save(made(), tmp_path, defaults=DEFAULTS)


def sealed(file, change):
    """Edit a saved recording and make its content_sha right again."""
    data = json.loads(file.read_text())
    change(data)
    data["content_sha"] = content_sha(data)
    file.write_text(json.dumps(data))


def refused(file, match):
    """Both ways through the door refuse the file with one sentence, at once."""
    for enter in (recording.load, loading.published):
        said = []

        def ask(enter=enter, said=said):
            with pytest.raises(RecordingError, match=match) as caught:
                enter(file)
            said.append(str(caught.value))

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(60)
        assert said, f"{enter.__name__} took it for another, or waits"
        assert "\n" not in said[0] and "pytorch-gpu-anatomy record " in said[0]


@pytest.mark.parametrize(
    ("place", "match"),
    [
        ("nvidia-a100/contiguity.bench/m=2048", r"place: its machine\.slug is 'nvidia-h200'"),
        ("nvidia-h200/contiguity.other/m=2048", r"place: its experiment is 'contiguity\.bench'"),
        ("nvidia-h200/contiguity.bench/m=1024", r"place: its name is not of its params"),
        ("nvidia-h200/contiguity.bench/m=2048,n=7", r"place: its name is not of its params"),
        ("nvidia-h200/contiguity.bench/copy", r"place: its name is not of its params"),
        ("nvidia-h200/contiguity.bench/m=2048-0123abcd", r"place: its name is not of its params"),
    ],
)
def test_a_copy_in_another_place_is_refused(tmp_path, saved, place, match):
    copy = tmp_path / f"{place}.json"
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(saved.read_bytes())
    refused(copy, match)


def test_another_machine_in_the_content_is_refused(saved):
    sealed(saved, lambda data: data["machine"].update(slug="nvidia-b200"))
    refused(saved, rf"{PLACE}is in the wrong place: its machine\.slug is 'nvidia-b200'")


def test_a_name_that_was_shortened_or_changed_is_still_of_its_parameters(tmp_path):
    many = {f"parameter_{i}": i for i in range(30)}
    for params in (many, {"device": "cuda/1"}, {"way": "a b", "m": 1.5}, {"cold": None}):
        file = recording.save(made(params=params), tmp_path, defaults={"cold": 1})
        assert recording.load(file).params == params
    file = recording.save(made(params=many), tmp_path, defaults={})
    other = file.with_name(file.name.replace("parameter_1=1,", "parameter_1=2,"))
    os.replace(file, other)
    refused(other, "its name is not of its params")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda data: data.update(columns=5), "columns is 5; it must be a list"),
        (lambda data: data.update(columns=["op", 3]), r"columns\[1\] is 3; it must be text"),
        (lambda data: data["columns"].remove("variant"), "columns lacks 'variant'"),
        (lambda data: data["method"].update(x=10**101), r"a number beyond 1e\+100"),
        (lambda data: data["rows"][0].update(median_s=-1e101), r"a number beyond 1e\+100"),
        (lambda data: data["rows"][0].update(note="\ud83d"), "surrogates not allowed"),
    ],
)
def test_what_nobody_could_reckon_with_or_print_is_refused(saved, change, match):
    sealed(saved, change)
    refused(saved, rf"{PLACE}can't be used: .*{match}")


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('"seconds": 3.25', '"seconds": 1e999', r"a number beyond 1e\+100"),
        ('"seconds": 3.25', '"seconds": NaN', "it holds NaN"),
        ('"seconds": 3.25', '"seconds": 1' + "0" * 5000, "can't be used: "),
        ('"note": "FP8 needs sm_89."', '"note": {"$text": []}, "a": 1', r"the text \[\], which is"),
        ('"seconds": 3.25', '"a": ' + '{"a":' * 600 + "1" + "}" * 600, "more than 32 deep"),
        ('"seconds": 3.25', '"a": ' + "[" * 600 + "]" * 600, "more than 32 deep"),
    ],
)
def test_what_json_lets_pass_is_refused(saved, old, new, match):
    text = saved.read_text().replace(old, new).replace('"texts": {', '"x": {')
    assert new in text
    saved.write_text(text.replace('"warnings":', '"texts": {}, "warnings":'))
    refused(saved, f"{PLACE}.*{match}")


def test_a_file_beyond_the_limit_is_not_read_to_its_end(saved):
    with saved.open("ab") as file:
        file.truncate(2**40)  # which takes no room
    refused(saved, rf"{PLACE}has more than {loading.LARGEST_MIB} MiB")


@pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")
@pytest.mark.parametrize(
    ("make", "match"),
    [
        (Path.mkdir, "is no plain file"),
        (os.mkfifo, "is no plain file"),
        (lambda file: file.symlink_to("/dev/zero"), "is no plain file"),
        (lambda file: file.symlink_to("/etc/passwd"), "is a link that leads out of the folder"),
        (lambda file: file.symlink_to("nowhere"), "is a link to nothing"),
        (lambda file: file.symlink_to(file.name), "can't be read: Too many levels"),
    ],
)
def test_only_a_plain_file_is_opened(saved, make, match):
    saved.unlink()
    make(saved)
    refused(saved, f"{PLACE}{match}")


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
def test_a_link_inside_the_folder_is_followed_and_one_that_leaves_it_is_not(tmp_path):
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "root"
    file = recording.save(made(), elsewhere, defaults=DEFAULTS)
    root.symlink_to(elsewhere)
    assert recording.load(root / file.relative_to(elsewhere)).machine == "nvidia-h200"
    other = tmp_path / "other"
    other.mkdir()
    (other / "nvidia-h200").symlink_to(elsewhere / "nvidia-h200")
    refused(other / file.relative_to(elsewhere), "leads out of the folder")


def nested(levels):
    """Lists within each other, on the level below that of a recording's fields."""
    return [] if levels == 1 else [nested(levels - 1)]


def test_what_is_just_within_the_limits_is_taken(saved):
    sealed(saved, lambda data: data["method"].update(x=1e100, y=-1e100, deep=nested(30)))
    with saved.open("a") as file:
        file.write(" " * (16 * 2**20 - saved.stat().st_size))
    assert recording.load(saved).data["method"]["x"] == 1e100
    with saved.open("a") as file:
        file.write(" ")
    refused(saved, rf"{PLACE}has more than 16 MiB")


def test_what_is_nested_one_deeper_is_refused(saved):
    sealed(saved, lambda data: data["method"].update(deep=nested(31)))
    refused(saved, rf"{PLACE}can't be used: it is nested more than 32 deep")


# Files that are there have these names, and are found by them.
LONG = {f"parameter_{i}": i for i in range(9)}
SIX = ",".join(f"parameter_{i}={i}" for i in range(6))
NAMES = [
    ({"way": "a b"}, "way=a-b-94b0d1b7"),
    ({"m": 1.5, "cold": False}, "cold=false,m=1.5"),
    (LONG, f"{SIX},par-858fe9d4"),
    (LONG | {"p": 1}, f"p=1,{SIX}-d1498209"),
    ({"a": "b" * 94}, "a=" + "b" * 94),
    ({"a": "b" * 95}, "a=" + "b" * 85 + "-3c5d43f9"),
]


@pytest.mark.parametrize(("given", "name"), NAMES)
def test_parameters_are_named_as_ever(given, name):
    assert loading.key(given) == name


def test_what_could_not_be_read_is_not_written(tmp_path, saved):
    before = saved.read_bytes()
    deep = 1
    for _ in range(loading.DEEPEST):
        deep = [deep]
    for wrong in ({"method": {"deep": deep}}, {"seconds": 1e200}):
        with pytest.raises(RecordingError, match=r"was not written, because .*it (is|holds)"):
            recording.save(made(**wrong), tmp_path, defaults=DEFAULTS)
    assert saved.read_bytes() == before


def test_rows_that_nothing_follows_from_name_their_file(tmp_path):
    root = shutil.copytree(synthetic.shared(), tmp_path / "recordings")
    file = root / "toy-gpu/contiguity.bench/default.json"
    sealed(file, lambda data: data["rows"][0]["blocks_s"].pop())
    loaded = recording.load(file)
    with pytest.raises(RecordingError, match=r"^toy-gpu/contiguity\.bench/default\.json can't be"):
        _ = loaded.rows
