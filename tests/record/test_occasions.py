"""A new measurement of the same code adds an occasion to a recording; any other replaces it."""

import json
import shutil

import pytest

from anatomy.record import loading, occasions, reach, recorder, recording
from anatomy.record.provenance import schema
from anatomy.record.provenance.canonical import content_sha
from anatomy.record.provenance.freshness import Freshness
from anatomy.record.recorder import Item
from anatomy.table.errors import RecordingError
from tests.fakes import synthetic
from tests.fakes.later import again
from tests.record.test_recorder import record


@pytest.fixture
def file(tmp_path):
    """A recording of one occasion, alone in its folder."""
    place = tmp_path / synthetic.MACHINE / "contiguity.bench" / "default.json"
    place.parent.mkdir(parents=True)
    shutil.copy(synthetic.shared() / place.relative_to(tmp_path), place)
    return place


def slower(row):
    return 1.1


def test_another_occasion_is_added_and_the_newest_is_kept_in_full(file):
    before = recording.load(file)
    card = before.data["machine"] | {"card": "fedcba987654"}
    found = recording.load(again(file, slower, machine=card))
    (kept,) = found.data["occasions"]
    assert kept["card"] == "0123456789ab" and found.data["machine"]["card"] == "fedcba987654"
    assert kept["started_at"] == before.data["started_at"] and kept["cpu"] == "Toy CPU"
    assert set(kept) == set(schema.OCCASION) and occasions.count(found) == 2
    for place, (old, new) in enumerate(zip(before.rows, found.rows, strict=True)):
        if old["median_s"] is not None:
            assert kept["figures"]["median_s"][place] == pytest.approx(old["median_s"], rel=1e-5)
            assert new["median_s"] == pytest.approx(1.1 * old["median_s"], rel=1e-5)
            assert new["low_s"] <= old["low_s"] * (1 + 1e-5) and new["occasions"] == 2


def test_the_fifth_before_is_dropped_and_what_is_kept_is_not_widened(file):
    for day in range(20, 26):
        again(file, slower, day=day)
    found = recording.load(file)
    days = [each["started_at"][8:10] for each in found.data["occasions"]]
    assert days == ["21", "22", "23", "24"] and occasions.count(found) == 5
    kept = found.data["occasions"][-1]["figures"]
    alone = occasions.alone(found).rows
    shares = [
        (kept["high_s"][at] / kept["low_s"][at], row["high_s"] / row["low_s"])
        for at, row in enumerate(alone)
        if row.get("low_s")
    ]
    assert shares and all(old == pytest.approx(new, rel=1e-4) for old, new in shares)


@pytest.mark.parametrize(
    "changes",
    [
        {"code": {"hash": "f" * 64, "scheme": 2, "files": [], "commit": None, "dirty": None}},
        {"software": {"torch": "2.14.0+cu130", "cuda": "13.0"}},
        {"method": {"processes": 3}},
        {"machine": {"driver": "590.1"}},
    ],
)
def test_other_work_replaces_a_recording(file, changes):
    again(file, slower)
    if "machine" in changes:
        changes = {"machine": recording.load(file).data["machine"] | changes["machine"]}
    assert "occasions" not in recording.load(again(file, slower, day=23, **changes)).data


def test_a_patch_release_of_torch_and_of_the_driver_are_the_same_work(file):
    machine = recording.load(file).data["machine"] | {"driver": "580.99"}
    found = again(file, slower, machine=machine, software={"torch": "2.13.1", "cuda": None})
    assert occasions.count(recording.load(found)) == 2


def test_code_hashed_before_schemes_had_numbers_is_of_the_first(file):
    new = recording.load(file).data
    new["code"]["scheme"] = 1
    old = json.loads(json.dumps(new))
    del old["code"]["scheme"]
    assert occasions._same_work(old, new)
    new["code"]["scheme"] = 2
    assert not occasions._same_work(old, new)


def test_a_row_that_is_not_there_on_every_occasion_has_fewer(file):
    named, rows = "as_strided_view", recording.load(file).data["rows"]
    again(file, slower, rows=[dict(row) for row in rows if row["variant"] != named])
    assert all(row["occasions"] == 2 for row in recording.load(file).rows if row["median_s"])
    again(file, slower, day=23, rows=rows)
    for row in recording.load(file).rows:
        if row["median_s"] is not None:
            assert row.get("occasions") == (None if row["variant"] == named else 3)


def test_a_broken_recording_has_no_occasions_to_give(file):
    data = recording.load(file).data
    file.write_text("{")
    assert "occasions" not in occasions.adding(data, file.parents[2], {})


def occasion(**changes):
    return lambda data: data["occasions"][0].update(changes)


def figures(**changes):
    return lambda data: data["occasions"][0]["figures"].update(changes)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda data: data.update(occasions={}), "occasions is {}; it must be a list"),
        (lambda data: data.update(occasions=data["occasions"] * 5), "5 entries; 4 may be kept"),
        (lambda data: data.update(occasions=[7]), r"occasions\[0\] is 7"),
        (lambda data: data["occasions"][0].pop("card"), "'card' too much or too little"),
        (occasion(host_name="x"), "'host_name' too much or too little"),
        (occasion(started_at="once"), "no ISO time"),
        (occasion(seconds=None), "seconds is null"),
        (figures(median_s=[1.0]), r"median_s has 1 values for \d+ rows"),
        (figures(median_s="far"), "must be a list"),
        (figures(speed=[]), "figures has 'speed'"),
        (figures(ratio=None), "ratio is null"),
    ],
)
def test_occasions_are_read_as_hostile(file, edit, says):
    again(file, slower)
    data = json.loads(file.read_text())
    edit(data)
    data["content_sha"] = content_sha(data)
    file.write_text(json.dumps(data))
    with pytest.raises(RecordingError, match=says):
        loading.read(file)


NUMBER = r"median_s\[0\] is {}; it must be a number"


@pytest.mark.parametrize(
    ("number", "says"),
    [
        *((0, "is 0, and not above 0"), (-1.0, r"is -1\.0, and not above 0")),
        *((True, NUMBER.format(True)), ("1", NUMBER.format("'1'"))),
        *((1e200, "a number beyond 1e"), (float("nan"), "holds NaN")),
    ],
)
def test_a_figure_of_an_occasion_is_a_number_above_0(file, number, says):
    again(file, slower)
    data = json.loads(file.read_text())
    data["occasions"][0]["figures"]["median_s"][0] = number
    data["content_sha"] = content_sha(data)
    file.write_text(json.dumps(data))
    with pytest.raises(RecordingError, match=says):
        loading.read(file)


# How far a later occasion may lie.


def test_the_reach_of_a_machine_is_written_once_and_read_with_each_recording(file):
    root, machine = file.parents[2], synthetic.MACHINE
    assert occasions.commit(root, machine, recording.all_recordings(root)) is None
    again(file, lambda row: 1.0 if row["role"] != "variant" else 1.2)
    written = occasions.commit(root, machine, recording.all_recordings(root, machine))
    assert written == root / machine / reach.FILE and reach.read(root, machine)
    assert recording.machines(root) == [machine], "no recording"
    written.write_text(json.dumps({"reach": {"GPU": {"median_s": 3.0, "ratio": 2.0}}}))
    for row in recording.load(file).rows:
        if row["paced_by"] == "GPU":
            assert row["high_s"] / row["low_s"] > 9 and row["reach"] == 2.0


def test_ratios_of_what_the_host_paces_to_what_the_gpu_paces_have_a_reach_of_their_own(file):
    rows = recording.load(file).data["rows"]
    rows = [dict(row, launch_inclusive=row["role"] == "variant") for row in rows]
    again(file, lambda row: 1.2 if row["role"] == "variant" else 1.0, rows=rows)
    root, machine = file.parents[2], synthetic.MACHINE
    written = occasions.commit(root, machine, recording.all_recordings(root, machine))
    assert reach.read(root, machine)["GPU and host"] == {"ratio": pytest.approx(1.2, rel=0.02)}
    controls = {row["variant"] for row in rows if row["role"] == "control"}
    over_control = sum(row["role"] == "variant" and row["control"] in controls for row in rows)
    assert json.loads(written.read_text())["rows"]["GPU and host"] == {"ratio": over_control}


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"reach": {"moon": {"ratio": 1.1}}}',
        '{"reach": {"GPU": {"ratio": 0.5}}}',
        '{"reach": {"GPU": {"ratio": "1"}}}',
        '{"reach": {"GPU": {"median_s": 1e9}}}',
        '{"reach": {"GPU": {"ratio": NaN}}}',
        '{"reach": {}}' + " " * 20_000,
    ],
)
def test_a_reach_that_can_not_be_used_says_what_makes_it_anew(tmp_path, content):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / reach.FILE).write_text(content)
    with pytest.raises(RecordingError, match="occasions --machine toy --write"):
        reach.read(tmp_path, "toy")


# The recorder.


@pytest.mark.usefixtures("own_lock", "warm")
def test_measuring_again_adds_an_occasion(toylab, tmp_path):
    (first,) = record(toylab, tmp_path, ("toy.fine", {})).saved
    assert record(toylab, tmp_path, ("toy.fine", {})).saved == []
    assert record(toylab, tmp_path, ("toy.fine", {}), mode="again").saved == [first]
    assert occasions.count(recording.load(first)) == 2
    assert (first.parents[1] / reach.FILE).is_file()


@pytest.mark.usefixtures("own_lock", "warm")
def test_a_broken_recording_elsewhere_keeps_no_occasion_from_being_added(toylab, tmp_path):
    (first,) = record(toylab, tmp_path, ("toy.fine", {})).saved
    other = first.parents[1] / "contiguity.bench" / "default.json"
    other.parent.mkdir()
    other.write_text("{")
    assert record(toylab, tmp_path, ("toy.fine", {}), mode="again").saved == [first]
    assert occasions.count(recording.load(first)) == 2


def test_again_goes_on_with_what_was_measured_least_often():
    def item(state, occasions):
        return Item("toy.fine", {}, Freshness(state, ""), occasions=occasions)

    assert Item("toy.fine", {}, Freshness("missing", "")).occasions == 0
    once, twice, stale = item("current", 1), item("current", 2), item("code-changed", 3)
    assert recorder.due([twice, once, stale], "again") == [once, stale]
    assert recorder.due([twice, twice], "again") == [twice, twice]
    assert recorder.due([twice, once, stale]) == [stale]
    assert recorder.due([twice, once], "remeasure") == [twice, once]
